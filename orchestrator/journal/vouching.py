"""The check of a whole journal in short slices, for a daemon that serves meanwhile."""

from __future__ import annotations

import sqlite3

from orchestrator.core.errors import JournalCorrupt
from orchestrator.core.events import chain
from orchestrator.core.ids import Seq
from orchestrator.journal.rows import EVENT_COLUMNS, link_problem, origin_of
from orchestrator.journal.schema import naming_trouble, sql

SLICE = 200
"""Events; about 2 ms of the interpreter's time."""

HINT = "`orchestrator journal verify` says more; restore a backup."


class Vouching:
    """SQLite's own check of its pages, table by table, then the chain.

    `after`: what was vouched for up to there; then the pages are taken to hold, too. None: nothing was.
    """

    def __init__(self, reader: sqlite3.Connection, *, after: int | None, until: int) -> None:
        self._db, self._until = reader, until
        self._tables: list[str] = []
        self._end: tuple[int, bytes] = (0, chain.GENESIS)
        with naming_trouble("the journal"):
            if after is None:
                names = reader.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
                self._tables = [name for (name,) in names if not name.startswith("sqlite_")]
            elif after:
                row = reader.execute("SELECT hash FROM events WHERE seq = ?", (after,)).fetchone()
                self._end = (after, row[0]) if row else (0, chain.GENESIS)

    @property
    def at(self) -> Seq:
        """Up to where the chain holds."""
        return Seq(self._end[0])

    def step(self) -> bool:
        """One slice; False: all is checked. Blocking. Raises JournalCorrupt at the first thing that does not hold.

        A table's pages are one slice, in SQLite's own code, which lets other threads run.
        """
        with naming_trouble("the journal"):
            if self._tables:
                self._pages(self._tables.pop())
                return True
            return self._events()

    def _pages(self, table: str) -> None:
        (finding,) = self._db.execute(f"PRAGMA quick_check({table})").fetchone()
        if finding != "ok":
            raise JournalCorrupt(f"the journal's file is damaged, in the table {table}: {finding}", hint=HINT)

    def _events(self) -> bool:
        statement = f"SELECT {EVENT_COLUMNS} FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
        rows = self._db.execute(statement, (self._end[0], self._until, SLICE)).fetchall()
        for row in rows:
            if row[0] != self._end[0] + 1:
                self._skip_archived()
            problem = link_problem(row, origin_of(row), self._end)
            if problem is not None:
                raise JournalCorrupt(problem, hint=HINT)
            self._end = row[0], row[17]
        return self._end[0] < self._until and bool(rows)

    def _skip_archived(self) -> None:
        """Events in a file: the table of segments says on what the next one hangs."""
        while (segment := self._db.execute(sql("segment_from"), (self._end[0] + 1,)).fetchone()) is not None:
            self._end = segment[0], segment[1]
