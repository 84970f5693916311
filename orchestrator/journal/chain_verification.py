"""The one walk over a journal's events: by every start (its end), beside the service (all), and by `journal verify`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from orchestrator.core.errors import ArchiveMissing, JournalCorrupt
from orchestrator.core.events import chain
from orchestrator.journal.rows import DAMAGED, UNDECODABLE, ChainWalk
from orchestrator.journal.schema import naming_trouble, sql
from orchestrator.journal.segments import Archive, Segment, archived_end, segment_bytes, segments_of

TAIL = 1000
"""Events whose chain is checked at every start, at least."""

MOST_TAIL = 20_000
"""And at most; 0.3 s. What is older is checked while the daemon serves."""

SLICE = 200
"""Events; about 2 ms of the interpreter's time."""


def check_tail(connection: sqlite3.Connection) -> None:
    """Check the chain from the last snapshot on, at least TAIL and at most MOST_TAIL events.

    A redaction stands after its target, so those of a tail's events are in it. Raises JournalCorrupt, naming the
    first position that does not hold.
    """
    with naming_trouble("the journal"):
        (head, _) = connection.execute(sql("last_event")).fetchone() or (0, b"")
        count = max(TAIL, min(head - _last_snapshot(connection), MOST_TAIL))
        rows = connection.execute(sql("tail"), (count + 1,)).fetchall()[::-1]
        archived = archived_end(connection)
    try:
        walk = ChainWalk(archived or (0, chain.GENESIS))
        if len(rows) > count:
            walk.end, rows = (rows[0][0], rows[0][17]), rows[1:]
        for problem in (*map(walk.take, rows), *walk.redaction_problems()):
            if problem is not None:
                raise JournalCorrupt(problem, hint=DAMAGED)
    except UNDECODABLE as error:
        raise JournalCorrupt(f"the end of the journal cannot be read: {error}", hint=DAMAGED) from error


def _last_snapshot(connection: sqlite3.Connection) -> int:
    """0 where there is none, or where they can't be read: nothing hangs on them."""
    try:
        (seq,) = connection.execute(sql("last_snapshot")).fetchone()
    except sqlite3.DatabaseError:
        return 0
    return int(seq or 0)


class ChainVerifier:
    """The chain from the first event, archived files by their digests, then SQLite's own check of its pages.

    In slices, so that a daemon can serve meanwhile. Nothing that the database says of earlier checks is taken: who
    can edit an event can edit that, too. Blocking.
    """

    def __init__(self, connection: sqlite3.Connection, archive: Archive, *, until: int) -> None:
        self._db, self._archive, self._until = connection, archive, until
        self.walk = ChainWalk()
        self.unread: list[str] = []
        """Archived files whose events could not be checked, and why; the database vouches for their ends."""

    def note(self, problem: str) -> None:
        """Raises JournalCorrupt: the first thing that does not hold ends it."""
        raise JournalCorrupt(problem, hint=DAMAGED)

    def slices(self) -> Iterator[None]:
        """All of it, one slice at each step. Raises JournalCorrupt."""
        with naming_trouble("the journal"):
            try:
                yield from self.events()
            except UNDECODABLE as error:
                after = f"what follows event @{self.walk.end[0]}"
                raise JournalCorrupt(f"{after} cannot be read: {error}", hint=DAMAGED) from error
            yield from self.pages()

    def events(self) -> Iterator[None]:
        """Every event up to the end, archived or not; they may move into a file meanwhile."""
        while (at := self.walk.end[0]) < self._until:
            segment = self._segment_after(at)
            if segment is not None:
                yield from self.archived(segment)
                continue
            rows = self._db.execute(sql("events_between"), (at, self._until, SLICE)).fetchall()
            if not rows or rows[0][0] > at + 1:
                if self._segment_after(at) is not None:
                    continue  # moved between the two queries
                if not rows:
                    missing = f"@{at + 1}" + (f" to @{self._until}" if self._until > at + 1 else "")
                    self.note(f"missing before event @{self._until + 1}: {missing}")
                    return
            for row in rows:
                self.take(row)
            yield

    def _segment_after(self, seq: int) -> Segment | None:
        return next((item for item in segments_of(self._db) if item.first == seq + 1), None)

    def take(self, row: Any) -> None:
        """One event more."""
        problem = self.walk.take(row)
        if problem is not None:
            self.note(problem)

    def archived(self, segment: Segment) -> Iterator[None]:
        """A file is what was archived if its digest is that; its chain was checked before it was written."""
        self.check_link(segment)
        try:
            segment_bytes(self._archive.folder, segment)
        except (ArchiveMissing, JournalCorrupt) as error:
            self.unread.append(f"events @{segment.first} to @{segment.last} can't be read: {error.message}")
        self.walk.end = segment.last, segment.last_hash
        yield

    def check_link(self, segment: Segment) -> None:
        """What the table says of a file follows what came before it."""
        at, tip = self.walk.end
        if tip and segment.prev_hash != tip:
            self.note(f"the archived events @{segment.first} to @{segment.last} do not follow @{at}")

    def pages(self) -> Iterator[None]:
        """A table's pages are one slice, in SQLite's own code, which lets other threads run."""
        names = self._db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
        for table in (name for (name,) in names if not name.startswith("sqlite_")):
            (finding,) = self._db.execute(f"PRAGMA quick_check({table})").fetchone()
            if finding != "ok":
                self.note(f"the journal's file is damaged, in the table {table}: {finding}")
            yield
