"""Files through time, file by file instead of path by path; and which of their versions an undo is about.

An undo takes back the versions that the chosen changes made, as far as they are still in effect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from typing import TypeAlias

import msgspec

from orchestrator.core.errors import NothingToChange
from orchestrator.core.events.base import OUTSIDE, Recorded
from orchestrator.core.events.files import ChangeApplied, path_changes
from orchestrator.core.globs import Globs
from orchestrator.core.ids import AgentName, Digest, Seq, WorkspacePath
from orchestrator.core.positions import Timestamp
from orchestrator.core.projections.versions import VersionRow

UNKNOWN = Digest("unknown")
"""Of a content that was never hashed; equal to no content's hash."""

Key: TypeAlias = tuple[WorkspacePath, Seq]
"""One row of history: a path, and the version that it got."""


Modes: TypeAlias = Mapping[WorkspacePath, tuple[tuple[Seq, int], ...]]
"""Permission bits that changed without a new version: by path the position and the bits, oldest first."""


class Step(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One thing that happened to a file. A content of None: it was not there."""

    path: WorkspacePath  # afterwards, or until it was removed
    was: WorkspacePath  # the path before
    seq: Seq
    changes: tuple[Seq, ...]  # of each of its rows: the intent, or the external event itself
    agent: AgentName | None
    before: Digest | None
    after: Digest | None
    mode_before: int | None
    mode_after: int | None
    keys: tuple[Key, ...]  # its rows: two for a move

    @property
    def change(self) -> Seq:
        """Names the change."""
        return self.changes[0]


class Lineage:
    """One file, from its making to now or to its removal; steps oldest first."""

    def __init__(self, modes: Modes) -> None:
        self.steps: list[Step] = []
        self.path: WorkspacePath | None = None  # the present one; None: removed
        self.over: Lineage | None = None  # the file that the last step moved it over
        self._modes = modes

    @property
    def names(self) -> frozenset[WorkspacePath]:
        """Every path that it ever had."""
        return frozenset(name for step in self.steps for name in (step.path, step.was))

    def take(self, row: VersionRow) -> None:
        """What happened next."""
        last = self.steps[-1] if self.steps else None
        before = last.after if last else None
        after = (row.digest or UNKNOWN) if row.present else None
        self.steps.append(
            Step(
                path=row.path,
                was=last.path if last else row.path,
                seq=row.seq,
                changes=(row.change or row.seq,),
                agent=row.agent,
                before=before,
                after=after,
                mode_before=self._mode_before(last, row.seq) if last and before is not None else None,
                mode_after=row.mode if row.present else None,
                keys=((row.path, row.seq),),
            )
        )
        self.path = row.path if row.present else None
        self.over = None

    def _mode_before(self, last: Step, seq: Seq) -> int | None:
        """What its permission bits had become when the next thing happened."""
        later = [mode for at, mode in self._modes.get(last.path, ()) if last.seq < at < seq]
        return later[-1] if later else last.mode_after

    def also(self, key: Key, change: Seq) -> None:
        """The last step has this row too; an external move is two events."""
        last = self.steps[-1]
        changes = last.changes if change in last.changes else (*last.changes, change)
        self.steps[-1] = msgspec.structs.replace(last, keys=(*last.keys, key), changes=changes)
        if self.over is not None:
            self.over.also(key, change)


def lineages(histories: Mapping[WorkspacePath, Iterable[VersionRow]], modes: Modes) -> tuple[Lineage, ...]:
    """The files that were at these paths at some time.

    `histories` holds, for each path, all its rows; a path that a file was moved to or from must be
    in it too, else its story ends or begins there.
    """
    files = _Files(modes)
    rows = sorted((row for path in histories.values() for row in path), key=_order)
    for _, rows_of_one in groupby(rows, key=lambda row: row.seq):
        files.take(tuple(rows_of_one))
    return tuple(files.found)


class _Files:
    """All files so far: those that are present, and those that left, by path."""

    def __init__(self, modes: Modes) -> None:
        self.found: list[Lineage] = []
        self._modes = modes
        self._present: dict[WorkspacePath, Lineage] = {}
        self._left: dict[WorkspacePath, Lineage] = {}  # moved away or removed

    def take(self, rows: tuple[VersionRow, ...]) -> None:
        """One change. Files that take each other's places: all have left before any arrives."""
        sources = {row.moved_from for row in rows if row.present and row.moved_from is not None}
        leaving = {source: self._present.pop(source) for source in sources if source in self._present}
        self._left |= leaving
        for row in rows:
            if row.present:
                self._arrive(row, leaving)
            elif row.path in self._present:
                lineage = self._left[row.path] = self._present.pop(row.path)
                lineage.take(row)
            elif row.path in self._left:
                self._left[row.path].also((row.path, row.seq), row.change or row.seq)

    def _arrive(self, row: VersionRow, leaving: dict[WorkspacePath, Lineage]) -> None:
        """The path holds a file: the one that was there, one that was moved there, or a new one."""
        source, gone, replaced = row.moved_from, None, None
        mover = leaving.pop(source, None) if source is not None else None
        removed = self._left.get(source) if source is not None else None
        if mover is None and removed is not None and removed.path is None:
            mover, gone = removed, removed.steps.pop()  # the removal was the first half of an external move
        if mover is not None:
            replaced = self._present.get(row.path)
        if replaced is not None:  # it is removed by the move
            replaced.take(msgspec.structs.replace(row, present=False))
            self._left[row.path] = replaced
        lineage = mover or self._present.get(row.path)
        if lineage is None:
            lineage = Lineage(self._modes)
            self.found.append(lineage)
        lineage.take(row)
        lineage.over = replaced  # rows of the one are rows of the other
        if gone is not None:
            for key in gone.keys:
                lineage.also(key, gone.change)
        self._present[row.path] = lineage


def _order(row: VersionRow) -> tuple[int, bool, WorkspacePath]:
    """By position; of one change, arrivals before removals, so that a move is seen as one."""
    return row.seq, not row.present, row.path


# --- which versions an undo is about ------------------------------------------------------

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
        if self.agent == OUTSIDE and recorded.agent is not None:
            return None
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
    """What an event did, path by path; an external change is nobody's own, unless a command made it."""
    return [(item.path, recorded.seq, recorded.agent) for item in path_changes(recorded.event) if not item.directory]


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
        raise NothingToChange("no change that is still in effect fits", hint="journal_query shows what there is.")
    return [item for change, made in chosen.items() if change not in gone for item in made]


def selection(made: Iterable[Made], folders: Iterable[Collection[WorkspacePath]]) -> UndoSelection:
    """All of these versions, with the directories that were made for them."""
    keys, authors = set[Key](), dict[WorkspacePath, frozenset[str | None]]()
    for path, seq, agent in made:
        keys.add((path, seq))
        authors[path] = authors.get(path, frozenset()) | {agent}
    return UndoSelection(frozenset(keys), authors, frozenset[WorkspacePath]().union(*folders))
