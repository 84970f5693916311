"""Changes that wait: for another try, for a person, for permission."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from orchestrator.core.content import IntendedPath, Rung
from orchestrator.core.events.base import Event
from orchestrator.core.events.notices import UnseenChange
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.merge_rules import AutomaticRule, ResolvedRegion


class ConflictRegion(msgspec.Struct, frozen=True, array_like=True):
    """0-based start and length of the lines that clash, in each of the three contents."""

    base_start: int
    base_len: int
    current_start: int
    current_len: int
    proposed_start: int
    proposed_len: int


class ConflictFound(Event, frozen=True, kw_only=True, tag="conflict_found"):
    """A change that fits nowhere: base, what the file holds, and what was proposed, all three kept."""

    redactable: ClassVar[tuple[str, ...]] = ("reason",)

    path: WorkspacePath
    base: Digest | None
    base_version: Seq | None
    current: Digest | None
    current_version: Seq | None
    proposed: Digest | None  # None: the proposal is that nothing stands here
    regions: tuple[ConflictRegion, ...] = ()
    mode: int | None = None
    operation: str = ""
    reason: str = ""
    task: Seq | None = None
    approval: Seq | None = None  # the granted request that no longer fitted
    reverts: tuple[Seq, ...] = ()
    names: tuple[WorkspacePath, ...] = ()  # others that contents of it stood under: who may not see them sees none
    settleable: tuple[AutomaticRule, ...] = ()  # rules that would have settled it, had policy let them
    same_symbol: tuple[str, ...] = ()  # functions and the like that somebody else changed too since its base
    why: str = ""  # if not because both sides changed the same lines
    ahead: bool = False  # it would apply, and policy wants it looked at first
    unseen: tuple[UnseenChange, ...] = ()  # what its author had read and not seen since


class ConflictResolved(Event, frozen=True, kw_only=True, tag="conflict_resolved"):
    """A person or reviewer chose."""

    redactable: ClassVar[tuple[str, ...]] = ("reason",)

    conflict: Seq
    choice: Literal["current", "proposed", "content"]
    by: str
    change: Seq | None = None  # the ChangeIntended that carried the choice out
    reason: str = ""


class ConflictSuperseded(Event, frozen=True, kw_only=True, tag="conflict_superseded"):
    """A later change of the same agent made the conflict moot."""

    conflict: Seq
    change: Seq


class ApprovalRequested(Event, frozen=True, kw_only=True, tag="approval_requested"):
    """A person must say yes to exactly this: (paths, before, after), or (path, version) for a read."""

    redactable: ClassVar[tuple[str, ...]] = ("reason",)

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
    on_seen_whole: bool = False
    task: Seq | None = None
    reason: str = ""
    emptied: tuple[WorkspacePath, ...] = ()  # as of ChangeIntended
    unmade: tuple[WorkspacePath, ...] = ()
    unseen: tuple[UnseenChange, ...] = ()  # what its author had read and not seen since
    rung: Rung = "current"  # how it came to fit, as of ChangeIntended; what is granted fits so
    score: float = 1.0
    settled: tuple[ResolvedRegion, ...] = ()
    same_symbol: tuple[str, ...] = ()


class ApprovalGranted(Event, frozen=True, kw_only=True, tag="approval_granted"):
    """A person said yes, once."""

    approval: Seq
    by: str


class ApprovalDenied(Event, frozen=True, kw_only=True, tag="approval_denied"):
    """A person said no."""

    redactable: ClassVar[tuple[str, ...]] = ("reason",)

    approval: Seq
    by: str
    reason: str = ""


class ApprovalExpired(Event, frozen=True, kw_only=True, tag="approval_expired"):
    """The request is void: its time ran out, its base moved, or policy changed its mind."""

    approval: Seq
    cause: Literal["expired", "base_changed", "policy_changed", "conflict", "error"]
    message: str = ""


class PolicyLoaded(Event, frozen=True, kw_only=True, tag="policy_loaded"):
    """From here on this policy decides."""

    digest: Digest
    source: str
    rules: int
