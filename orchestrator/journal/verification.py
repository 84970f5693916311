"""Does the journal hold what it should: the chain, the payloads, the contents, the tables, the snapshots."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from orchestrator.core.annotations import Mark, brought_by, fields_with, gone_from
from orchestrator.core.errors import ArchiveMissing, JournalCorrupt, OrchestratorError, plural
from orchestrator.core.events.chain import Checkpoint
from orchestrator.core.events.codec import BY_TAG
from orchestrator.core.events.journal_maintenance import CheckpointSigned
from orchestrator.core.ids import Digest, Seq
from orchestrator.core.projections.versions import history
from orchestrator.journal.blobs import Blobs
from orchestrator.journal.database_file import naming_trouble, open_reader, sql
from orchestrator.journal.event_rows import DAMAGED, UNDECODABLE, ChainWalk, event_of, origin_of, recorded_with
from orchestrator.journal.high_water_mark import hash_at
from orchestrator.journal.segments import ARCHIVE, Archive, Segment, memory_database, segment_bytes, segment_with
from orchestrator.journal.signatures import Seals
from orchestrator.journal.snapshot_table import snapshot_problems
from orchestrator.journal.versions import add_versions, table_differences
from orchestrator.ports.journal import VerifyReport

MOST_PROBLEMS = 50

BUSY_S = 0.004
"""At a stretch, where others need the interpreter; then there is a pause."""

SLICE = 200
"""Events; about 2 ms of the interpreter's time."""

_NAMING = frozenset(
    tag for tag, event in BY_TAG.items() if event is CheckpointSigned or fields_with(event, Mark.CONTENT)
)
"""The kinds that say anything of contents (and so of versions) or checkpoints."""


def verify(path: Path, blobs: Blobs, checkpoint: Checkpoint | None = None, *, pause_s: float = 0.0) -> VerifyReport:
    """Check everything, archived events too, in one snapshot; with a checkpoint, compare it.

    Blocking; with `pause_s` it pauses every few milliseconds for others that need the interpreter.
    Raises CheckpointOfAnotherJournal.
    Cost: O(events + contents' bytes) time, O(streams + requests + versions of files) memory.
    """
    with closing(open_reader(path)) as connection, naming_trouble(path):
        connection.execute("BEGIN")
        (journal,) = connection.execute(sql("journal_id")).fetchone()
        seals, archive = Seals(str(journal), checkpoint), Archive(path.parent / ARCHIVE)
        with closing(memory_database()) as expected:
            return JournalVerifier(connection, archive, blobs, seals, expected).report(pause_s)


class ChainVerifier:
    """The chain from the first event, archived files by their digests, then SQLite's own check of its pages.

    In slices, so that a daemon can serve meanwhile: each check yields a problem, or None where a slice ends. Earlier
    results are not trusted, because whoever can edit an event can edit them too. Blocking.
    """

    def __init__(self, connection: sqlite3.Connection, archive: Archive, *, until: int) -> None:
        self._db, self._archive, self._until = connection, archive, until
        self.walk = ChainWalk()
        self.unread: list[str] = []
        """Archived files whose events could not be checked, and why; their ends are known from the database."""

    def slices(self) -> Iterator[None]:
        """All of it, one slice at each step. Raises as `require`."""
        return self.require(self.events(), self.pages())

    def require(self, *checks: Iterator[str | None]) -> Iterator[None]:
        """Checks in turn. Raises JournalCorrupt at the first thing that does not hold."""
        with naming_trouble("the journal"):
            try:
                for problem in chain(*checks):
                    if problem is not None:
                        raise JournalCorrupt(problem, hint=DAMAGED)
                    yield
            except UNDECODABLE as error:
                after = f"what follows event @{self.walk.end[0]}"
                raise JournalCorrupt(f"{after} cannot be read: {error}", hint=DAMAGED) from error

    def events(self) -> Iterator[str | None]:
        """Every event up to the end, archived or not; they may move into a file meanwhile."""
        while (at := self.walk.end[0]) < self._until:
            segment = segment_with(self._db, at + 1)
            if segment is not None:
                yield from self.archived(segment)
                continue
            rows = self._db.execute(sql("events_between"), (at, self._until, SLICE)).fetchall()
            if not rows or rows[0][0] > at + 1:
                if segment_with(self._db, at + 1) is not None:
                    continue  # moved between the two queries
                if not rows:
                    missing = f"@{at + 1}" + (f" to @{self._until}" if self._until > at + 1 else "")
                    yield f"missing before event @{self._until + 1}: {missing}"
                    return
            for row in rows:
                yield from self.take(row)
            yield None

    def take(self, row: Any) -> Iterator[str]:
        """One event more."""
        problem = self.walk.take(row)
        if problem is not None:
            yield problem

    def archived(self, segment: Segment) -> Iterator[str | None]:
        """A file is what was archived if its digest is that; its chain was checked before it was written."""
        yield self.link_problem(segment)
        try:
            segment_bytes(self._archive.folder, segment)
        except (ArchiveMissing, JournalCorrupt) as error:
            self.unread.append(f"events @{segment.first} to @{segment.last} can't be read: {error.message}")
        self.walk.end = segment.last, segment.last_hash
        yield None

    def link_problem(self, segment: Segment) -> str | None:
        """What the table says of a file must follow what came before it."""
        at, tip = self.walk.end
        if not tip or segment.prev_hash == tip:
            return None
        return f"the archived events @{segment.first} to @{segment.last} do not follow @{at}"

    def pages(self) -> Iterator[str | None]:
        """A table's pages are one slice, in SQLite's own code, which lets other threads run."""
        names = self._db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
        for table in (name for (name,) in names if not name.startswith("sqlite_")):
            (finding,) = self._db.execute(f"PRAGMA quick_check({table})").fetchone()
            yield f"the journal's file is damaged, in the table {table}: {finding}" if finding != "ok" else None


class JournalVerifier(ChainVerifier):
    """Every check, within one snapshot of the database; goes on after a problem."""

    def __init__(
        self, connection: sqlite3.Connection, archive: Archive, blobs: Blobs, seals: Seals, expected: sqlite3.Connection
    ) -> None:
        head, _ = connection.execute(sql("last_event")).fetchone() or (0, b"")
        super().__init__(connection, archive, until=head)
        self._blobs, self._seals, self._expected = blobs, seals, expected
        self._events = self._contents = 0
        self._lost = False  # events can't be read, so what hangs on all of them can't be compared
        self._uncompared: list[str] = []
        self._problems: list[str] = []
        self._claims: dict[tuple[str, str], tuple[str, int, int, int]] = {}
        """By request: its digest, and the last events with it that follow one another: first, last, and their time."""
        self._named: dict[Digest, int] = {}  # contents that must be kept, and who says so
        self._streams: dict[str, int] = {}

    def report(self, pause_s: float) -> VerifyReport:
        """Check it all, with pauses."""
        begun = time.monotonic()
        for check in self._checks():
            try:
                for problem in check:
                    if problem is not None:
                        self._problems.append(problem)
                    if pause_s and time.monotonic() - begun > BUSY_S:
                        time.sleep(pause_s)
                        begun = time.monotonic()
            except (sqlite3.DatabaseError, ArchiveMissing, JournalCorrupt, *UNDECODABLE) as error:
                self._problems.append(f"the journal can't be read further: {error}")
        head, tip = self.walk.end
        return VerifyReport(
            events=self._events,
            head=Seq(head),
            head_hash=tip.hex(),
            blobs=self._contents,
            problems=tuple(self._problems[:MOST_PROBLEMS]),
            unchecked=tuple(self._unchecked()),
            proven=self._seals.proven(whole=not self._problems and not self._lost),
            unread=max(0, head - self._events) if self.unread else 0,
        )

    def _checks(self) -> Iterator[Iterator[str | None]]:
        """In turn; what compares with all events only where all could be read, the snapshots where all else holds."""
        yield self.events()
        yield self.pages()
        yield self._seals.problems(self.walk.end[0], partial(hash_at, self._db, self._archive))
        yield self._content_problems()
        yield self.walk.redaction_problems()
        if not self._lost:
            yield self._table_problems()
            yield self._request_problems()
        if self._lost or self._problems:
            more = "earlier redactions, missing contents, stream versions, checkpoints inside, tables and "
            compared = f"{more if self._lost else 'the '}snapshots"
            self._uncompared.append(f"{compared}: not all of the events that they are compared with can be trusted")
        else:
            yield snapshot_problems(self._db, self._archive, self._uncompared)

    def _unchecked(self) -> Iterator[str]:
        forged = (
            "whoever can rewrite all of the journal can rewrite the chain: compare the head with a copy kept elsewhere"
        )
        yield from (forged, *self.unread, *self._uncompared, *self._seals.unchecked(Seq(self.walk.end[0])))
        if self.walk.redacted:
            count = plural(len(self.walk.redacted), "redacted payload")
            yield f"{count}, which cannot be checked; the rest of each event is as its redaction left it"
        if len(self._problems) > MOST_PROBLEMS:
            yield plural(len(self._problems) - MOST_PROBLEMS, "more problem")

    def take(self, row: Any) -> Iterator[str]:
        """The chain, and what the event says of the rest."""
        yield from super().take(row)
        self._events += 1
        if self._lost or not self.walk.end[1]:
            return  # events before it are lost, or a value of it is of the wrong type
        seq, stream, version = row[0], row[2], row[3]
        expected = self._streams.get(stream, 0) + 1
        if version != expected:
            yield f"event @{seq} is number {version} of {stream}, where {expected} should be"
        self._streams[stream] = version
        if row[8] is not None:
            key = row[6] or "", row[8]
            _, first, last, at = self._claims.get(key, ("", 0, 0, 0))
            self._claims[key] = row[9] or "", first if (last + 1, at) == (seq, row[1]) else seq, seq, row[1]
        try:
            event = event_of(row)
        except OrchestratorError as error:
            yield error.message
            return
        if row[4] not in _NAMING:
            return
        if isinstance(event, CheckpointSigned):
            self._seals.signed.append((Seq(seq), event))
        for digest in gone_from(event):
            self._named.pop(digest, None)
        for content in brought_by(event):
            if content.kept:
                self._named.setdefault(content.digest, seq)
        add_versions(self._expected, history(recorded_with(row, event, origin_of(row))))

    def archived(self, segment: Segment) -> Iterator[str | None]:
        """Its events; of those that can't be read only the ends are known."""
        try:
            rows = self._archive.rows(segment)
        except (ArchiveMissing, JournalCorrupt) as error:
            if isinstance(error, ArchiveMissing):
                self.unread.append(error.message)
            else:
                yield error.message
            yield self.link_problem(segment)
            self.walk.end, self._lost = (segment.last, segment.last_hash), True
            self._seals.signed.clear()
            self.walk.redacted.clear()  # their redactions may be lost; those of later events can't be
            return
        for row in rows:
            yield from self.take(row)
            yield None

    def pages(self) -> Iterator[str | None]:
        """SQLite's own view: pages, indexes."""
        for (finding,) in self._db.execute(f"PRAGMA integrity_check({MOST_PROBLEMS})"):
            yield f"the database: {finding}" if finding != "ok" else None

    def _content_problems(self) -> Iterator[str | None]:
        """Every content that is there, and those that events name as kept, that are not, and that nobody took out."""
        present: set[str] = set()
        for digest, size, data in self._db.execute(sql("all_blobs")):
            present.add(digest)
            self._contents += 1
            try:
                self._blobs.check(Digest(digest), size, data)
            except JournalCorrupt as error:
                yield error.message
            yield None
        for digest in self._named.keys() - present if not self._lost else ():
            yield f"the content {digest}, which event @{self._named[digest]} names, is missing; a backup may have it"

    def _table_problems(self) -> Iterator[str | None]:
        """The tables of versions against what the events say."""
        for found in table_differences(self._db, self._expected):
            yield f"a table is not what the events say: {found}" if found is not None else None

    def _request_problems(self) -> Iterator[str | None]:
        """The table of requests against the events that carry their ids."""
        left = dict(self._claims)
        for agent, request_id, digest, seq in self._db.execute(sql("all_requests")):
            wanted, first, last, _ = left.pop((agent, request_id), ("", 0, 0, 0))
            if digest != wanted or not 0 < first <= seq <= last:
                yield f"the requests table says of {request_id!r}, event @{seq}, what no event says"
            yield None
        for (_, request_id), (_, first, _, _) in left.items():
            yield f"request {request_id!r} of event @{first} is missing in the requests table"
