"""The check of a whole journal in short slices, for a daemon that serves meanwhile."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from orchestrator.core.errors import JournalCorrupt
from orchestrator.core.events import chain
from orchestrator.core.ids import Seq
from orchestrator.core.maintenance_errors import ArchiveMissing
from orchestrator.journal.rows import DAMAGED, EVENT_COLUMNS, UNDECODABLE, link_problem, origin_of
from orchestrator.journal.schema import naming_trouble
from orchestrator.journal.segments import Segment, segment_bytes, segments_of

SLICE = 200
"""Events; about 2 ms of the interpreter's time."""


class IncrementalVerifier:
    """The chain from the first event, archived files by their digests, then SQLite's own check of its pages.

    Nothing that the database says of earlier checks is taken: who can edit an event can edit that, too.
    """

    def __init__(self, reader: sqlite3.Connection, folder: Path, *, until: int) -> None:
        self._db, self._folder, self._until = reader, folder, until
        self._end: tuple[int, bytes] = (0, chain.GENESIS)
        self._chain = False
        self.unread: list[str] = []
        """Archived files whose events could not be checked, and why; the database vouches for their ends."""
        with naming_trouble("the journal"):
            names = reader.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
            self._tables = [name for (name,) in names if not name.startswith("sqlite_")]

    @property
    def at(self) -> Seq:
        """Up to where the chain holds."""
        return Seq(self._end[0])

    def step(self) -> bool:
        """One slice; False: all is checked. Blocking. Raises JournalCorrupt at the first thing that does not hold.

        A table's pages are one slice, in SQLite's own code, which lets other threads run.
        """
        try:
            with naming_trouble("the journal"):
                if not self._chain:
                    self._chain = not self._events()
                    return True
                if self._tables:
                    self._pages(self._tables.pop())
                return bool(self._tables)
        except UNDECODABLE as error:
            raise JournalCorrupt(f"what follows event @{self._end[0]} cannot be read: {error}", hint=DAMAGED) from error

    def _pages(self, table: str) -> None:
        (finding,) = self._db.execute(f"PRAGMA quick_check({table})").fetchone()
        if finding != "ok":
            raise JournalCorrupt(f"the journal's file is damaged, in the table {table}: {finding}", hint=DAMAGED)

    def _events(self) -> bool:
        """A slice of the chain, or one archived file; False: there is no more."""
        if self._end[0] >= self._until:
            return False
        segment = next((item for item in segments_of(self._db) if item.first == self._end[0] + 1), None)
        if segment is not None:
            self._archived(segment)
            return True
        statement = f"SELECT {EVENT_COLUMNS} FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
        rows = self._db.execute(statement, (self._end[0], self._until, SLICE)).fetchall()
        if rows and rows[0][0] > self._end[0] + 1 and self._archived_from(self._end[0] + 1):
            return True  # moved to a file between the two queries
        for row in rows:
            problem = link_problem(row, origin_of(row), self._end)
            if problem is not None:
                raise JournalCorrupt(problem, hint=DAMAGED)
            self._end = row[0], row[17]
        if not rows:
            raise JournalCorrupt(f"the events from @{self._end[0] + 1} to @{self._until} are missing", hint=DAMAGED)
        return True

    def _archived_from(self, seq: int) -> bool:
        return any(item.first == seq for item in segments_of(self._db))

    def _archived(self, segment: Segment) -> None:
        """A file is what was archived if its digest is that; its chain was checked before it was written."""
        if segment.prev_hash != self._end[1]:
            raise JournalCorrupt(
                f"the archived events @{segment.first} to @{segment.last} do not follow @{self._end[0]}", hint=DAMAGED
            )
        try:
            segment_bytes(self._folder, segment)
        except (ArchiveMissing, JournalCorrupt) as error:
            self.unread.append(f"events @{segment.first} to @{segment.last} can't be read: {error.message}")
        self._end = segment.last, segment.last_hash
