"""Does the journal hold what it should: the chain, the payloads, the contents, the table of versions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from orchestrator.core.errors import JournalCorrupt, OrchestratorError
from orchestrator.core.events import chain
from orchestrator.core.events.base import Event
from orchestrator.core.events.conflicts import ApprovalRequested, ConflictFound
from orchestrator.core.events.files import (
    ChangeIntended,
    FileChangedOutside,
    FileCreatedOutside,
    FilesFound,
    StrayKept,
)
from orchestrator.core.events.keeping import ContentsCollected
from orchestrator.core.ids import Digest, Seq
from orchestrator.core.keeping import ArchiveMissing
from orchestrator.core.projections.history import VersionRow, history
from orchestrator.journal.blobs import Blobs
from orchestrator.journal.history import Versions, version_of
from orchestrator.journal.rows import event_of, link_problem, origin_of, recorded_with
from orchestrator.journal.schema import naming_trouble, open_reader, sql
from orchestrator.journal.segments import Archive, archived_end, segments_of
from orchestrator.ports import VerifyReport

TAIL = 1000
"""Events whose chain is checked at every start."""

MOST_PROBLEMS = 50

UNCHECKED = (
    "whoever can rewrite all of the journal can rewrite the chain: compare the head with a copy kept elsewhere",
)


def check_tail(connection: sqlite3.Connection) -> None:
    """Check the last events' chain. Raises JournalCorrupt, naming the first position that does not hold."""
    with naming_trouble("the journal"):
        rows = connection.execute(sql("tail"), (TAIL + 1,)).fetchall()[::-1]
        archived = archived_end(connection)
    whole = len(rows) <= TAIL
    if rows and whole:
        _demand(link_problem(rows[0], origin_of(rows[0]), archived or (0, chain.GENESIS)))
    for before, row in pairwise(rows):
        _demand(link_problem(row, origin_of(row), (before[0], before[17])))


def _demand(problem: str | None) -> None:
    if problem is not None:
        raise JournalCorrupt(problem, hint="`orchestrator journal verify` says more; restore a backup.")


def verify(path: Path, blobs: Blobs, archive: Archive) -> VerifyReport:
    """Walk over everything, archived events included, in one snapshot. Blocking.

    Cost: O(events + contents' bytes) time, O(streams + versions of files) memory.
    """
    connection = open_reader(path)
    try:
        with naming_trouble(path):
            connection.execute("BEGIN")
            return _Walk(connection, blobs, archive).report()
    finally:
        connection.close()


def check_pages(connection: sqlite3.Connection) -> None:
    """Ask SQLite whether its pages hold together. Raises JournalCorrupt. Cost: O(size of the file)."""
    with naming_trouble("the journal"):
        (finding,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if finding != "ok":
        raise JournalCorrupt(f"the journal's file is damaged: {finding}", hint="Restore it from a backup.")


def kept_contents(event: Event) -> Iterator[Digest]:
    """The contents that an event says are in the blob store."""
    match event:
        case ChangeIntended(paths=paths) | ApprovalRequested(paths=paths):
            yield from (item.after for item in paths if item.after is not None)
        case FilesFound(entries=entries):
            yield from (found.digest for found in entries if found.kept and found.digest is not None)
        case FileChangedOutside(after=after, kept=True) | FileCreatedOutside(after=after, kept=True):
            if after is not None:
                yield after
        case ConflictFound(proposed=proposed):
            if proposed is not None:
                yield proposed
        case StrayKept(digest=digest):
            yield digest
        case _:
            return


class _Walk:
    """One pass over a snapshot."""

    def __init__(self, connection: sqlite3.Connection, blobs: Blobs, archive: Archive) -> None:
        self._db, self._blobs, self._archive = connection, blobs, archive
        self._unread = 0
        self._absent: list[str] = []
        self._problems: list[str] = []
        self._streams: dict[str, int] = {}
        self._versions = Versions()
        self._named: dict[Digest, int] = {}
        self._end: tuple[int, bytes] = (0, chain.GENESIS)
        self._more = 0

    def report(self) -> VerifyReport:
        events = self._counted(self._events())
        contents = self._counted(self._contents())
        self._counted(self._table_problems())
        self._counted(self._file_problems())
        unchecked = (*UNCHECKED, *self._absent, *((f"{self._more} more problems",) if self._more else ()))
        return VerifyReport(
            events=events,
            head=Seq(self._end[0]),
            head_hash=self._end[1].hex(),
            blobs=contents,
            problems=tuple(self._problems),
            unchecked=unchecked,
        )

    def _counted(self, walk: Iterator[None]) -> int:
        """How many steps a walk took; a page that can't be read ends it."""
        steps = 0
        try:
            for _ in walk:
                steps += 1
        except sqlite3.DatabaseError as error:
            self._note(f"the database can't be read further: {error}")
        return steps

    def _note(self, problem: str) -> None:
        if len(self._problems) < MOST_PROBLEMS:
            self._problems.append(problem)
        else:
            self._more += 1

    def _events(self) -> Iterator[None]:
        yield from self._archived()
        for row in self._db.execute(sql("all_events")):
            self._event(row)
            yield

    def _archived(self) -> Iterator[None]:
        """The files' events; of a file that is not there the chain is taken up again at its end."""
        for segment in segments_of(self._db):
            if (segment.first - 1, segment.prev_hash) != self._end:
                self._note(f"the archived events @{segment.first} to @{segment.last} do not follow @{self._end[0]}")
            try:
                rows = self._archive.rows(segment)
            except ArchiveMissing as error:
                self._absent.append(error.message)
                self._unread, rows = segment.last, ()
            except JournalCorrupt as error:
                self._note(error.message)
                self._unread, rows = segment.last, ()
            for row in rows:
                self._event(row)
                yield
            self._end = segment.last, segment.last_hash

    def _event(self, row: Any) -> None:
        origin = origin_of(row)
        problem = link_problem(row, origin, self._end)
        if problem is not None:
            self._note(problem)
        self._end = row[0], row[17]
        stream, version = row[2], row[3]
        expected = self._streams.get(stream, 0) + 1
        known = stream in self._streams or not self._unread  # some of its events may be in a file that is gone
        self._streams[stream] = version
        if version != expected and known:
            self._note(f"event @{row[0]} is number {version} of {stream}, where {expected} should be")
        try:
            recorded = recorded_with(row, event_of(row), origin)
        except OrchestratorError as error:
            self._note(error.message)
            return
        for item in history(recorded):
            self._versions.add(item)
        for digest in kept_contents(recorded.event):
            self._named.setdefault(digest, row[0])
        if isinstance(recorded.event, ContentsCollected):
            for digest in recorded.event.digests:
                self._named.pop(digest, None)

    def _contents(self) -> Iterator[None]:
        """Every content that is there, then those that events speak of as kept and that are not."""
        for digest, size, data in self._db.execute(sql("all_blobs")):
            self._named.pop(Digest(digest), None)
            try:
                self._blobs.read(Digest(digest), size, data)
            except JournalCorrupt as error:
                self._note(error.message)
            yield
        for digest, seq in self._named.items():
            self._note(f"the content {digest}, which event @{seq} names, is missing")

    def _table_problems(self) -> Iterator[None]:
        """The table of versions against its rebuild from the events."""
        left: dict[tuple[str, int], VersionRow] = {
            (path, seq): row for path, rows in self._versions.by_path.items() for seq, row in rows.items()
        }
        for row in self._db.execute(sql("all_versions")):
            expected = left.pop((row[0], row[1]), None)
            if row[1] > self._unread and expected != version_of(row):
                self._note(f"version @{row[1]} of {row[0]} in the table is not what the events say")
            yield
        for path, seq in left:
            if seq > self._unread:
                self._note(f"version @{seq} of {path} is missing in the table")

    def _file_problems(self) -> Iterator[None]:
        """SQLite's own view: pages, indexes; and requests, which name events."""
        for (finding,) in self._db.execute(f"PRAGMA integrity_check({MOST_PROBLEMS})"):
            if finding != "ok":
                self._note(f"the database: {finding}")
            yield
        for request_id, seq in self._db.execute(sql("stray_requests"), (self._end[0],)):
            self._note(f"the requests table says that {request_id!r} led to event @{seq}, which is not there")
            yield
