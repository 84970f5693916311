"""Files through time: what was made, changed, moved and removed, file by file instead of path by path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import TypeAlias

import msgspec

from orchestrator.core.ids import AgentName, Digest, Seq, WorkspacePath
from orchestrator.core.projections.version_rows import VersionRow

UNKNOWN = Digest("unknown")
"""Of a content that was never hashed; equal to no content's hash."""

Key: TypeAlias = tuple[WorkspacePath, Seq]
"""One row of history: a path, and the version that it got."""


Modes: TypeAlias = Mapping[WorkspacePath, tuple[tuple[Seq, int], ...]]
"""Permission bits that changed without a new version: by path the position and the bits, oldest first."""

NO_MODES: Modes = {}


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


def lineages(histories: Mapping[WorkspacePath, Iterable[VersionRow]], modes: Modes = NO_MODES) -> tuple[Lineage, ...]:
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
