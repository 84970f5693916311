"""Files through time: what was made, changed, moved and removed, told file by file instead of path by path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import TypeAlias

import msgspec

from orchestrator.core.ids import AgentName, Digest, Seq, WorkspacePath
from orchestrator.core.projections.history import VersionRow

UNKNOWN = Digest("unknown")
"""Of a content that was never hashed; equal to no content's hash."""

Key: TypeAlias = tuple[WorkspacePath, Seq]
"""One row of history: a path, and the version that it got."""


Modes: TypeAlias = Mapping[WorkspacePath, tuple[tuple[Seq, int], ...]]
"""Permission bits that changed without a new version: by path the position and the bits, oldest first."""

NO_MODES: Modes = {}


class Step(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One thing that happened to a file. A content of None: it was not there."""

    path: WorkspacePath  # where it stood afterwards, or until it was removed
    was: WorkspacePath  # where it stood before
    seq: Seq
    changes: tuple[Seq, ...]  # of each row that tells it: its intent, or the outside event itself
    agent: AgentName | None
    before: Digest | None
    after: Digest | None
    mode_before: int | None
    mode_after: int | None
    keys: tuple[Key, ...]  # the rows that tell it: two for a move

    @property
    def change(self) -> Seq:
        """Names the change."""
        return self.changes[0]


class Lineage:
    """One file, from its making to now or to its removal; steps oldest first."""

    def __init__(self, modes: Modes) -> None:
        self.steps: list[Step] = []
        self.path: WorkspacePath | None = None  # where it stands now; None: removed
        self.over: Lineage | None = None  # the file that went as this one was moved over it in the last step
        self._modes = modes

    @property
    def names(self) -> frozenset[WorkspacePath]:
        """Every path that it ever had."""
        return frozenset(name for step in self.steps for name in (step.path, step.was))

    def take(self, row: VersionRow, path: WorkspacePath | None) -> None:
        """What happened next; `path` is where it stands then."""
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
        self.path = path
        self.over = None

    def _mode_before(self, last: Step, seq: Seq) -> int | None:
        """What its permission bits had become when the next thing happened."""
        later = [mode for at, mode in self._modes.get(last.path, ()) if last.seq < at < seq]
        return later[-1] if later else last.mode_after

    def also(self, key: Key, change: Seq) -> None:
        """The last step is told by this row too; other hands' moves are two events."""
        last = self.steps[-1]
        changes = last.changes if change in last.changes else (*last.changes, change)
        self.steps[-1] = msgspec.structs.replace(last, keys=(*last.keys, key), changes=changes)
        if self.over is not None:
            self.over.also(key, change)


def lineages(histories: Mapping[WorkspacePath, Iterable[VersionRow]], modes: Modes = NO_MODES) -> tuple[Lineage, ...]:
    """The files that stood at these paths at some time.

    `histories` holds, for each path, all its rows; a path that a file was moved to or from must be
    in it too, else its story ends or begins there.
    """
    rows = sorted((row for path in histories.values() for row in path), key=_order)
    found: list[Lineage] = []
    standing: dict[WorkspacePath, Lineage] = {}
    left: dict[WorkspacePath, Lineage] = {}  # moved away in the step before, or removed; by where they stood
    for _, group in groupby(rows, key=lambda row: row.seq):
        together = tuple(group)
        # Files that take each other's places: all have left before any arrives.
        sources = {row.moved_from for row in together if row.present and row.moved_from is not None}
        leaving = {source: standing.pop(source) for source in sources if source in standing}
        left |= leaving
        for row in together:
            if row.present:
                _came(row, found, standing, leaving, left, modes)
            elif row.path in standing:
                lineage = standing.pop(row.path)
                lineage.take(row, None)
                left[row.path] = lineage
            elif row.path in left:
                left[row.path].also((row.path, row.seq), row.change or row.seq)
    return tuple(found)


def _came(
    row: VersionRow,
    found: list[Lineage],
    standing: dict[WorkspacePath, Lineage],
    leaving: dict[WorkspacePath, Lineage],
    left: dict[WorkspacePath, Lineage],
    modes: Modes,
) -> None:
    """A file stands where the row says: the one that stood there, one that was moved there, or a new one."""
    source = row.moved_from
    parted = source is not None and source not in leaving and source in left and left[source].path is None
    arrives = parted or source in leaving
    replaced = standing.get(row.path) if arrives else None
    if replaced is not None:  # it went as this one came
        replaced.take(msgspec.structs.replace(row, present=False), None)
        left[row.path] = replaced
    gone: Step | None = None
    if source is not None and arrives:
        lineage = leaving.pop(source) if source in leaving else left[source]
        gone = lineage.steps.pop() if parted else None  # the removal was the first half of a move by other hands
    elif row.path in standing:
        lineage = standing[row.path]
    else:
        lineage = Lineage(modes)
        found.append(lineage)
    lineage.take(row, row.path)
    lineage.over = replaced  # what tells one tells both
    if gone is not None:
        for key in gone.keys:
            lineage.also(key, gone.change)
    standing[row.path] = lineage


def _order(row: VersionRow) -> tuple[int, bool, WorkspacePath]:
    """By position; of one change, what came before what went, so that a move is seen as one."""
    return row.seq, not row.present, row.path
