"""Conflicts, approvals, and the policy in force."""

from __future__ import annotations

from typing import ClassVar, Literal

from orchestrator.core.annotations import FromContent, NewContent, Redactable
from orchestrator.core.change import Directories, Fit, PathChange, PermissionCheck, Provenance
from orchestrator.core.events.base import Event, Outcome
from orchestrator.core.ids import Checksum, Digest, Seq, WorkspacePath
from orchestrator.core.three_way import Region, ThreeWay


class ConflictSides(ThreeWay[Digest | None], frozen=True, kw_only=True):
    """The contents of a conflict, all three kept, as of one version of its file. None: absent."""

    base: Digest | None
    current: Digest | None
    proposed: NewContent[Digest | None]
    base_version: Seq | None
    current_version: Seq | None
    regions: FromContent[tuple[Region, ...]] = ()  # where they conflict


class ConflictFound(Event, frozen=True, kw_only=True, tag="conflict_found"):
    """A change that could not be applied."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("conflict",)
    proposes: ClassVar[bool] = True

    provenance: Provenance
    path: WorkspacePath
    sides: FromContent[ConflictSides]
    mode: int | None = None
    names: tuple[WorkspacePath, ...] = ()  # other names of its contents: who may not see them sees none
    why: FromContent[str] = ""  # if not because both sides changed the same lines
    fit: Fit | None = None  # it would apply like this, and policy wants it looked at first

    @property
    def ahead(self) -> bool:
        """Whether it would apply, and policy wants it looked at first."""
        return self.fit is not None

    @property
    def same_symbol(self) -> tuple[str, ...]:
        """What others changed too since the base of a change that would apply."""
        return self.fit.same_symbol if self.fit is not None else ()


class ConflictResolved(Event, frozen=True, kw_only=True, tag="conflict_resolved"):
    """A person or reviewer chose."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("resolved",)

    conflict: Seq
    choice: Literal["current", "proposed", "content"]
    by: str
    change: Seq | None = None  # the ChangeIntended that carried the choice out
    reason: Redactable[str] = ""


class ConflictSuperseded(Event, frozen=True, kw_only=True, tag="conflict_superseded"):
    """A later change of the same agent replaced the change."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("superseded",)

    conflict: Seq
    change: Seq


class ApprovalRequested(Event, frozen=True, kw_only=True, tag="approval_requested"):
    """A person must say yes to exactly this: (paths, before, after), or (path, version) for a read."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("waiting",)
    proposes: ClassVar[bool] = True

    provenance: Provenance
    paths: tuple[PathChange, ...]
    rule: str  # the policy rule that asks, and why
    permissions: tuple[PermissionCheck, ...]  # what policy is asked again once it is granted
    expires_at: int  # ms since the epoch
    fit: Fit = Fit()
    directories: Directories = Directories()
    read_version: Seq | None = None  # set for a read
    renews: Seq | None = None  # the expired request that this one follows


class ApprovalGranted(Event, frozen=True, kw_only=True, tag="approval_granted"):
    """A person said yes, once."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("granted",)

    approval: Seq
    by: str


class ApprovalDenied(Event, frozen=True, kw_only=True, tag="approval_denied"):
    """A person said no."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("denied",)

    approval: Seq
    by: str
    reason: Redactable[str] = ""


ExpiryCause = Literal["timeout", "base_changed", "policy_changed", "conflict", "error"]


class ApprovalExpired(Event, frozen=True, kw_only=True, tag="approval_expired"):
    """The request is void: its time ran out, its base moved, or policy changed its mind."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("expired",)

    approval: Seq
    cause: ExpiryCause
    message: Redactable[str] = ""


class PolicyLoaded(Event, frozen=True, kw_only=True, tag="policy_loaded"):
    """From here on this policy decides."""

    digest: Checksum
    source: str
    rules: int
