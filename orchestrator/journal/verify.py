"""Does the journal hold what it should: the chain, the payloads, the contents, the table of versions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

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
from orchestrator.core.ids import Digest, Seq
from orchestrator.core.projections.history import VersionRow, history
from orchestrator.core.projections.state import first_difference
from orchestrator.journal.blobs import Blobs
from orchestrator.journal.history import Versions, version_of
from orchestrator.journal.rows import event_of, link_problem, origin_of, recorded_of, recorded_with
from orchestrator.journal.schema import naming_trouble, open_reader, sql
from orchestrator.ports import VerifyReport

TAIL = 1000
"""Events whose chain is checked at every start, at least."""

MOST_TAIL = 20_000
"""And at most; 0.3 s. What is older is checked while the daemon serves."""

MOST_PROBLEMS = 50

UNCHECKED = (
    "whoever can rewrite all of the journal can rewrite the chain: compare the head with a copy kept elsewhere",
)


def check_tail(connection: sqlite3.Connection) -> None:
    """Check the chain from the last snapshot on, at least TAIL and at most MOST_TAIL events.

    Raises JournalCorrupt, naming the first position that does not hold.
    """
    with naming_trouble("the journal"):
        (head, _) = connection.execute(sql("last_event")).fetchone() or (0, b"")
        count = max(TAIL, min(head - _last_snapshot(connection), MOST_TAIL))
        rows = connection.execute(sql("tail"), (count + 1,)).fetchall()[::-1]
    whole = len(rows) <= count
    if rows and whole:
        _demand(link_problem(rows[0], origin_of(rows[0]), (0, chain.GENESIS)))
    for before, row in pairwise(rows):
        _demand(link_problem(row, origin_of(row), (before[0], before[17])))


def _last_snapshot(connection: sqlite3.Connection) -> int:
    """0 where there is none, or where they can't be read: nothing hangs on them."""
    try:
        (seq,) = connection.execute(sql("last_snapshot")).fetchone()
    except sqlite3.DatabaseError:
        return 0
    return int(seq or 0)


def _demand(problem: str | None) -> None:
    if problem is not None:
        raise JournalCorrupt(problem, hint="`orchestrator journal verify` says more; restore a backup.")


def verify(path: Path, blobs: Blobs) -> VerifyReport:
    """Walk over everything, in one snapshot. Blocking.

    Cost: O(events + contents' bytes) time, O(streams + versions of files) memory.
    """
    connection = open_reader(path)
    try:
        with naming_trouble(path):
            connection.execute("BEGIN")
            return _Walk(connection, blobs).report()
    finally:
        connection.close()


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


def table_difference(path: Path) -> str | None:
    """The first place where file_versions is not what the events say, with both values. Blocking.

    Cost: O(events) time, O(versions of files) memory. Raises JournalCorrupt, JournalTooNew.
    """
    connection = open_reader(path)
    try:
        with naming_trouble(path):
            connection.execute("BEGIN")
            versions = Versions()
            for row in connection.execute(sql("all_events")):
                for item in history(recorded_of(row)):
                    versions.add(item)
            table = {(row[0], row[1]): version_of(row) for row in connection.execute(sql("all_versions"))}
    finally:
        connection.close()
    rebuilt = {(path, seq): row for path, rows in versions.by_path.items() for seq, row in rows.items()}
    for key in sorted(table.keys() | rebuilt.keys()):
        found = first_difference(_plain(table.get(key)), _plain(rebuilt.get(key)), f"/file_versions/{key[0]}/@{key[1]}")
        if found is not None:
            return found
    return None


def _plain(row: VersionRow | None) -> Any:
    return msgspec.to_builtins(row)


class _Walk:
    """One pass over a snapshot."""

    def __init__(self, connection: sqlite3.Connection, blobs: Blobs) -> None:
        self._db, self._blobs = connection, blobs
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
        unchecked = (*UNCHECKED, f"{self._more} more problems") if self._more else UNCHECKED
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
        for row in self._db.execute(sql("all_events")):
            self._event(row)
            yield

    def _event(self, row: Any) -> None:
        origin = origin_of(row)
        problem = link_problem(row, origin, self._end)
        if problem is not None:
            self._note(problem)
        self._end = row[0], row[17]
        stream, version = row[2], row[3]
        expected = self._streams.get(stream, 0) + 1
        self._streams[stream] = version
        if version != expected:
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
            if left.pop((row[0], row[1]), None) != version_of(row):
                self._note(f"version @{row[1]} of {row[0]} in the table is not what the events say")
            yield
        for path, seq in left:
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
