"""Every event there is: each class of these modules that has a tag of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Final

from orchestrator.core.events import conflicts, files, journal_maintenance, sessions
from orchestrator.core.events.base import Event, Outcome, Refusal


def _events(modules: Iterable[ModuleType]) -> Iterator[type[Event]]:
    """In the order in which they are written down."""
    for module in modules:
        for found in vars(module).values():
            if isinstance(found, type) and issubclass(found, Event) and found.__module__ == module.__name__:
                yield found


def tag_of(event: Event | type[Event]) -> str:
    """The tag that the journal stores for an event."""
    tag = event.__struct_config__.tag
    if not isinstance(tag, str):
        raise TypeError(f"{event!r} has no tag")
    return tag


EVENTS: Final = tuple(_events((sessions, files, conflicts, journal_maintenance)))

BY_TAG: Final = {tag_of(event): event for event in EVENTS}

CHANGE_TAGS: Final = tuple(tag for tag, event in BY_TAG.items() if event.changes_files)
"""The events by which a file's content becomes another."""

PROPOSAL_TAGS: Final = tuple(tag for tag, event in BY_TAG.items() if event.proposes)
"""The events whose contents nobody needs once nothing waits for them."""

MEANINGS: Final[dict[Outcome, str]] = {
    "answered": "a read, search or listing that was answered",
    "applied": "a change that is on disk",
    "aborted": "a change that did not happen",
    "diverged": "a change that met somebody else's content",
    "refused": "a call that was refused, but not by policy",
    "denied": "a call that policy forbade, or an approval that a person refused",
    "waiting": "a change or read that waits for an approval",
    "granted": "an approval that a person gave",
    "expired": "an approval that is void",
    "conflict": "a change that could not be applied",
    "resolved": "a conflict that was resolved",
    "superseded": "a conflict that a later change superseded",
    "external": "an external change",
}


def outcome_of(event: Event) -> Outcome | None:
    """None: the event says nothing of the kind, such as an intent or a session's begin."""
    if isinstance(event, Refusal):
        return "denied" if event.code == "denied" else "refused"
    return event.outcomes[0] if event.outcomes else None


def tags_with(outcome: Outcome) -> tuple[str, ...]:
    """The kinds of event that can come out so."""
    return tuple(tag for tag, event in BY_TAG.items() if outcome in event.outcomes)
