"""Changes that wait: for another try, for a person, for permission."""

from __future__ import annotations

from typing import ClassVar, Literal

from orchestrator.core.annotations import Brought, Redactable, Revealing
from orchestrator.core.content import IntendedPath, Rung
from orchestrator.core.events.base import Event, Outcome
from orchestrator.core.events.notices import UnseenChange
from orchestrator.core.ids import Checksum, Digest, Seq, WorkspacePath
from orchestrator.core.merge_rules import AutomaticRule, ResolvedRegion
from orchestrator.core.three_way import Region, ThreeWay


class ConflictSides(ThreeWay[Digest | None], frozen=True, kw_only=True):
    """The contents of a conflict, all three kept, as of one version of its file. None: nothing stands there."""

    base: Digest | None
    current: Digest | None
    proposed: Brought[Digest | None]
    base_version: Seq | None
    current_version: Seq | None
    regions: Revealing[tuple[Region, ...]] = ()  # where they conflict


class ConflictFound(Event, frozen=True, kw_only=True, tag="conflict_found"):
    """A change that fits nowhere."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("conflict",)
    proposes: ClassVar[bool] = True

    path: WorkspacePath
    sides: Revealing[ConflictSides]
    mode: int | None = None
    operation: str = ""
    reason: Redactable[str] = ""
    task: Seq | None = None
    approval: Seq | None = None  # the granted request that no longer fitted
    reverts: tuple[Seq, ...] = ()
    names: tuple[WorkspacePath, ...] = ()  # others that contents of it stood under: who may not see them sees none
    settleable: Revealing[tuple[AutomaticRule, ...]] = ()  # rules that would have settled it, had policy let them
    same_symbol: Revealing[tuple[str, ...]] = ()  # functions and the like that somebody else changed too since its base
    why: Revealing[str] = ""  # if not because both sides changed the same lines
    ahead: bool = False  # it would apply, and policy wants it looked at first
    unseen: Revealing[tuple[UnseenChange, ...]] = ()  # what its author had read and not seen since


class ConflictResolved(Event, frozen=True, kw_only=True, tag="conflict_resolved"):
    """A person or reviewer chose."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("settled",)

    conflict: Seq
    choice: Literal["current", "proposed", "content"]
    by: str
    change: Seq | None = None  # the ChangeIntended that carried the choice out
    reason: Redactable[str] = ""


class ConflictSuperseded(Event, frozen=True, kw_only=True, tag="conflict_superseded"):
    """A later change of the same agent made the conflict moot."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("superseded",)

    conflict: Seq
    change: Seq


class ApprovalRequested(Event, frozen=True, kw_only=True, tag="approval_requested"):
    """A person must say yes to exactly this: (paths, before, after), or (path, version) for a read."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("waiting",)
    proposes: ClassVar[bool] = True

    operation: str
    paths: tuple[IntendedPath, ...]
    rule: str  # the policy rule that asks, and why
    expires_at: int  # ms since the epoch
    base: Seq | None = None
    read_version: Seq | None = None  # set for a read
    renews: Seq | None = None  # the lapsed request that this one follows
    reverts: tuple[Seq, ...] = ()
    supersedes: Seq | None = None
    settles: Seq | None = None
    on_seen_whole: Revealing[bool] = False
    task: Seq | None = None
    reason: Redactable[str] = ""
    emptied: tuple[WorkspacePath, ...] = ()  # as of ChangeIntended
    unmade: tuple[WorkspacePath, ...] = ()
    unseen: Revealing[tuple[UnseenChange, ...]] = ()  # what its author had read and not seen since
    rung: Revealing[Rung] = "current"  # how it came to fit, as of ChangeIntended; what is granted fits so
    score: Revealing[float] = 1.0
    settled: Revealing[tuple[ResolvedRegion, ...]] = ()
    same_symbol: Revealing[tuple[str, ...]] = ()


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


class ApprovalExpired(Event, frozen=True, kw_only=True, tag="approval_expired"):
    """The request is void: its time ran out, its base moved, or policy changed its mind."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("lapsed",)

    approval: Seq
    cause: Literal["expired", "base_changed", "policy_changed", "conflict", "error"]
    message: Redactable[str] = ""


class PolicyLoaded(Event, frozen=True, kw_only=True, tag="policy_loaded"):
    """From here on this policy decides."""

    digest: Checksum
    source: str
    rules: int
