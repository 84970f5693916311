"""Which versions an undo is about: those that the chosen changes made, and that are still in effect."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from orchestrator.core.decisions.lineage import Key
from orchestrator.core.errors import NothingToChange
from orchestrator.core.events.base import Recorded
from orchestrator.core.events.files import (
    ChangeApplied,
    ExternalFileChanged,
    ExternalFileCreated,
    ExternalFileRemoved,
)
from orchestrator.core.globs import Globs
from orchestrator.core.ids import Seq, WorkspacePath
from orchestrator.core.timestamps import Timestamp

Made = tuple[WorkspacePath, Seq, str | None]
"""A path, the version that it got, and by whom; None: an external change of nobody known."""


class UndoFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What a rollback chooses by; None and empty leave all through."""

    agent: str | None = None
    session: str | None = None
    task: Seq | None = None
    globs: tuple[str, ...] = ()
    since: Timestamp | None = None
    until: Timestamp | None = None

    def made(self, recorded: Recorded, globs: Globs | None) -> list[Made] | None:
        """Of what an event did, the paths that `globs` name; None where the event does not fit.

        Agent and session are the journal's to filter.
        """
        event = recorded.event
        if self.task is not None and not (isinstance(event, ChangeApplied) and event.provenance.task == self.task):
            return None
        change = change_of(recorded)  # a change took effect at its intent, so that no state lies in its middle
        if self.since is not None and not self.since.before(change, recorded.at):
            return None
        if self.until is not None and self.until.before(change, recorded.at):
            return None
        return [item for item in made_by(recorded) if globs is None or globs.match(item[0])]


class UndoSelection(msgspec.Struct, frozen=True):
    """The rows of history to undo, and whose they were."""

    keys: frozenset[Key]
    authors: dict[WorkspacePath, frozenset[str | None]]
    folders: frozenset[WorkspacePath] = frozenset()  # directories that the changes made


def made_by(recorded: Recorded) -> list[Made]:
    """What an event did, path by path."""
    match recorded.event:
        case ChangeApplied(paths=paths):
            return [(item.path, recorded.seq, recorded.agent) for item in paths if not item.directory]
        case ExternalFileChanged() | ExternalFileCreated() | ExternalFileRemoved() as event:
            return [(event.path, recorded.seq, None)]  # nobody's own: a lease's holder is only a likely author
        case _:
            return []


def change_of(recorded: Recorded) -> Seq:
    """The change that an event belongs to."""
    return recorded.event.change if isinstance(recorded.event, ChangeApplied) else recorded.seq


def undone(reverters: Iterable[tuple[Seq, tuple[Seq, ...]]]) -> dict[Seq, Seq]:
    """Changes that are undone, each with the change that undid it and is itself in effect.

    `reverters` are the changes that reverted others, newest first.
    """
    found: dict[Seq, Seq] = {}
    for change, reverts in reverters:
        if change not in found:
            found |= {seq: change for seq in reverts if seq not in found}
    return found


def in_effect(chosen: Mapping[Seq, list[Made]], reverters: Iterable[tuple[Seq, tuple[Seq, ...]]]) -> list[Made]:
    """What chosen changes made that nobody has undone. Raises NothingToChange if that is nothing.

    A change whose undo is chosen too stays: both are undone, one after the other.
    """
    gone = {change for change, reverter in undone(reverters).items() if reverter not in chosen}
    if chosen.keys() <= gone:
        raise NothingToChange(
            "no change that is still in effect fits", hint="`orchestrator log` or journal_query show what there is."
        )
    return [item for change, made in chosen.items() if change not in gone for item in made]


def selection(made: Iterable[Made], folders: Iterable[Collection[WorkspacePath]]) -> UndoSelection:
    """All of these versions, with the directories that were made for them."""
    keys, authors = set[Key](), dict[WorkspacePath, frozenset[str | None]]()
    for path, seq, agent in made:
        keys.add((path, seq))
        authors[path] = authors.get(path, frozenset()) | {agent}
    return UndoSelection(frozenset(keys), authors, frozenset[WorkspacePath]().union(*folders))
