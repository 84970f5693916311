"""How a call, a change or a request came out, as one word; the one place that says which event means what."""

from __future__ import annotations

from typing import Literal

from orchestrator.core.events.base import Event
from orchestrator.core.events.catalog import tag_of
from orchestrator.core.events.conflicts import (
    ApprovalDenied,
    ApprovalExpired,
    ApprovalGranted,
    ApprovalRequested,
    ConflictFound,
    ConflictResolved,
    ConflictSuperseded,
)
from orchestrator.core.events.files import (
    CallRefused,
    ChangeAborted,
    ChangeApplied,
    ChangeDiverged,
    ChangeRefused,
    ContentSearched,
    DiffShown,
    DirectoryListed,
    ExternalFileChanged,
    ExternalFileCreated,
    ExternalFileRemoved,
    FileRead,
    MetadataRead,
    ReadRefused,
)

Outcome = Literal[
    "answered",
    "applied",
    "aborted",
    "diverged",
    "refused",
    "denied",
    "waiting",
    "granted",
    "lapsed",
    "conflict",
    "settled",
    "superseded",
    "outside",
]

MEANINGS: dict[Outcome, str] = {
    "answered": "a read, search or listing that was answered",
    "applied": "a change that is on disk",
    "aborted": "a change that did not happen",
    "diverged": "a change that met somebody else's content",
    "refused": "a call that was refused, but not by policy",
    "denied": "a call that policy forbade, or an approval that a person refused",
    "waiting": "a change or read that waits for an approval",
    "granted": "an approval that a person gave",
    "lapsed": "an approval that is void",
    "conflict": "a change that fitted nowhere",
    "settled": "a conflict that was settled",
    "superseded": "a conflict that a later change made moot",
    "outside": "a change by other hands",
}

_KINDS: dict[type[Event], tuple[Outcome, ...]] = {
    FileRead: ("answered",),
    MetadataRead: ("answered",),
    DirectoryListed: ("answered",),
    ContentSearched: ("answered",),
    DiffShown: ("answered",),
    ChangeApplied: ("applied",),
    ChangeAborted: ("aborted",),
    ChangeDiverged: ("diverged",),
    ReadRefused: ("refused", "denied"),
    ChangeRefused: ("refused", "denied"),
    CallRefused: ("refused", "denied"),
    ApprovalRequested: ("waiting",),
    ApprovalGranted: ("granted",),
    ApprovalDenied: ("denied",),
    ApprovalExpired: ("lapsed",),
    ConflictFound: ("conflict",),
    ConflictResolved: ("settled",),
    ConflictSuperseded: ("superseded",),
    ExternalFileChanged: ("outside",),
    ExternalFileCreated: ("outside",),
    ExternalFileRemoved: ("outside",),
}


def outcome_of(event: Event) -> Outcome | None:
    """None: the event says nothing of the kind, such as an intent or a session's begin."""
    match event:
        case ReadRefused(code=code) | ChangeRefused(code=code) | CallRefused(code=code):
            return "denied" if code == "denied" else "refused"
        case _:
            kinds = _KINDS.get(type(event))
            return kinds[0] if kinds else None


def tags_with(outcome: Outcome) -> tuple[str, ...]:
    """The kinds of event that can come out so."""
    return tuple(tag_of(kind) for kind, outcomes in _KINDS.items() if outcome in outcomes)
