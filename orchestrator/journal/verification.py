"""Does the journal hold what it should: the chain, the payloads, the contents, the tables, the snapshots."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from orchestrator.core.annotations import Mark, brought_by, fields_with, gone_from
from orchestrator.core.checkpoint import Checkpoint
from orchestrator.core.errors import ArchiveMissing, JournalCorrupt, OrchestratorError, plural
from orchestrator.core.events.catalog import BY_TAG
from orchestrator.core.events.journal import CheckpointSigned
from orchestrator.core.ids import Digest, Seq
from orchestrator.core.projections.history import history
from orchestrator.journal.blobs import Blobs
from orchestrator.journal.chain_verification import SLICE, ChainVerifier
from orchestrator.journal.high_water_mark import hash_at
from orchestrator.journal.rows import UNDECODABLE, event_of, origin_of, recorded_with
from orchestrator.journal.schema import naming_trouble, open_reader, sql
from orchestrator.journal.segments import ARCHIVE, Archive, Segment, memory_database
from orchestrator.journal.signatures import Seals
from orchestrator.journal.snapshots import snapshot_problems
from orchestrator.journal.versions import add_versions, table_differences
from orchestrator.ports.journal import VerifyReport

MOST_PROBLEMS = 50

BUSY_S = 0.004
"""At a stretch, where others need the interpreter; then there is a pause."""

UNCHECKED = (
    "whoever can rewrite all of the journal can rewrite the chain: compare the head with a copy kept elsewhere",
)

_TELLING = frozenset(
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
        head, _ = connection.execute(sql("last_event")).fetchone() or (0, b"")
        seals, archive = Seals(str(journal), checkpoint), Archive(path.parent / ARCHIVE)
        with closing(memory_database()) as expected:
            return JournalVerifier(connection, archive, blobs, seals, expected, until=head, pause_s=pause_s).report()


class Claim(msgspec.Struct, frozen=True, array_like=True):
    """The last events that carried a request's id, one after the other; the last unit with it begins among them."""

    digest: str
    first: int
    last: int
    at: int  # of all: a unit has one time

    def after(self, known: Claim | None) -> Claim:
        """What holds once this came after `known`."""
        if known is None or (known.last + 1, known.at) != (self.first, self.at):
            return self
        return msgspec.structs.replace(self, first=known.first)


class JournalVerifier(ChainVerifier):
    """Every check, within one snapshot of the database; goes on after a problem."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        archive: Archive,
        blobs: Blobs,
        seals: Seals,
        expected: sqlite3.Connection,
        *,
        until: int,
        pause_s: float,
    ) -> None:
        super().__init__(connection, archive, until=until)
        self._blobs, self._seals, self._pause_s = blobs, seals, pause_s
        self._events = self._contents = self._more = 0
        self._lost = 0  # up to here events can't be read: nothing that hangs on them is known
        self._absent: list[str] = []
        self._uncompared: list[str] = []
        self._problems: list[str] = []
        self._expected = expected
        self._claims: dict[tuple[str, str], Claim] = {}
        self._named: dict[Digest, int] = {}  # contents that must be kept, and who says so
        self._streams: dict[str, int] = {}
        self._present: set[Digest] = set()

    def report(self) -> VerifyReport:
        """Check it all."""
        self._run(self.events())
        for problem in self.walk.redaction_problems(self._lost):
            self.note(problem)
        self._run(self._content_problems())
        self._run(self.pages())
        for problem in self._seals.problems(self.walk.end[0], self._hash_of):
            self.note(problem)
        self._run(self._missing_contents())
        self._run(self._table_problems())
        self._run(self._request_problems())
        self._run(self._snapshot_problems())
        head, tip = self.walk.end
        return VerifyReport(
            events=self._events,
            head=Seq(head),
            head_hash=tip.hex(),
            blobs=self._contents,
            problems=tuple(self._problems),
            unchecked=tuple(self._unchecked()),
            proven=self._seals.proven(whole=not self._problems and not self._lost),
            unread=max(0, head - self._events) if self._absent else 0,
        )

    def note(self, problem: str) -> None:
        """Keep the first of them, count the others."""
        if len(self._problems) < MOST_PROBLEMS:
            self._problems.append(problem)
        else:
            self._more += 1

    def _run(self, checks: Iterator[object]) -> None:
        """To the end, with pauses; a page that can't be read ends it."""
        begun = time.monotonic()
        try:
            for _ in checks:
                if self._pause_s and time.monotonic() - begun > BUSY_S:
                    time.sleep(self._pause_s)
                    begun = time.monotonic()
        except (sqlite3.DatabaseError, JournalCorrupt, *UNDECODABLE) as error:
            self.note(f"the database can't be read further: {error}")

    def _unchecked(self) -> Iterator[str]:
        yield from UNCHECKED
        yield from self._absent
        yield from self._uncompared
        yield from self._seals.unchecked(Seq(self.walk.end[0]))
        if self.walk.redacted:
            named = ", ".join(f"@{seq}" for seq in sorted(self.walk.redacted)[:10])
            more = f" and {len(self.walk.redacted) - 10} more" if len(self.walk.redacted) > 10 else ""
            yield (
                f"{plural(len(self.walk.redacted), 'redacted payload')}, which cannot be checked: {named}{more}; "
                "the rest of each event is as its redaction left it"
            )
        if self._more:
            yield plural(self._more, "more problem")

    def _hash_of(self, seq: int) -> str | None:
        return hash_at(self._db, self._archive, seq)

    # --- the events -----------------------------------------------------------------------

    def take(self, row: Any) -> None:
        """The chain, and what the event says of the rest."""
        super().take(row)
        self._events += 1
        if not self.walk.end[1]:
            return  # a value of it is of the wrong type
        seq, stream, version = row[0], row[2], row[3]
        known = self._streams.get(stream)
        expected = version if known is None and self._lost else (known or 0) + 1
        if version != expected:
            self.note(f"event @{seq} is number {version} of {stream}, where {expected} should be")
        self._streams[stream] = version
        if row[8] is not None:
            key = row[6] or "", row[8]
            self._claims[key] = Claim(row[9] or "", seq, seq, row[1]).after(self._claims.get(key))
        try:
            event = event_of(row)
        except OrchestratorError as error:
            self.note(error.message)
            return
        if row[4] not in _TELLING:
            return
        if isinstance(event, CheckpointSigned):
            self._seals.signed.append((Seq(seq), event))
        for digest in gone_from(event):
            self._named.pop(digest, None)
        for content in brought_by(event):
            if content.kept:
                self._named.setdefault(content.digest, seq)
        add_versions(self._expected, history(recorded_with(row, event, origin_of(row))))

    def archived(self, segment: Segment) -> Iterator[None]:
        """Its events; of those that can't be read nothing is known, nor what of the rest hangs on them."""
        try:
            rows = self._archive.rows(segment)
        except (ArchiveMissing, JournalCorrupt) as error:
            if isinstance(error, ArchiveMissing):
                self._absent.append(error.message)
            else:
                self.note(error.message)
            self.check_link(segment)
            self.walk.end, self._lost = (segment.last, segment.last_hash), segment.last
            self._streams.clear()
            self._claims.clear()
            self._named.clear()
            return
        for number, row in enumerate(rows, 1):
            self.take(row)
            if number % SLICE == 0:
                yield

    # --- what lies beside them ------------------------------------------------------------

    def _content_problems(self) -> Iterator[None]:
        """Every content that is there."""
        for digest, size, data in self._db.execute(sql("all_blobs")):
            self._present.add(Digest(digest))
            self._contents += 1
            try:
                self._blobs.check(Digest(digest), size, data)
            except JournalCorrupt as error:
                self.note(error.message)
            yield

    def _missing_contents(self) -> Iterator[None]:
        """Contents that events speak of as kept, that are not there, and that nobody took out."""
        for digest, seq in self._named.items():
            if digest not in self._present:
                self.note(f"the content {digest}, which event @{seq} names, is missing; a backup may have it")
                yield

    def _table_problems(self) -> Iterator[None]:
        """The tables of versions against what the events say; a row of an event that is lost can't be compared."""
        unsure: set[str] = set()
        for number, found in enumerate(table_differences(self._db, self._expected)):
            if found is not None and found.table == "file_versions" and found.seq <= self._lost:
                unsure.add(found.path)
            elif found is not None and found.path not in unsure:
                self.note(f"a table is not what the events say: {found.text}")
            if number % SLICE == 0:
                yield

    def _snapshot_problems(self) -> Iterator[None]:
        """What starts begin from, against a replay; without all events, or with wrong ones, there is none."""
        if self._lost or self._problems:
            self._uncompared.append(
                "the snapshots that a start begins from: there is no sound replay to compare them with"
            )
            return
        for problem in snapshot_problems(self._db, self._archive, self._uncompared):
            if problem is not None:
                self.note(problem)
            yield

    def pages(self) -> Iterator[None]:
        """SQLite's own view: pages, indexes."""
        for (finding,) in self._db.execute(f"PRAGMA integrity_check({MOST_PROBLEMS})"):
            if finding != "ok":
                self.note(f"the database: {finding}")
            yield

    def _request_problems(self) -> Iterator[None]:
        """The table of requests against the events that carry their ids."""
        left = dict(self._claims)
        for agent, request_id, digest, seq in self._db.execute(sql("all_requests")):
            claim = left.pop((agent, request_id), None)
            if not 0 < seq <= self.walk.end[0]:
                self.note(f"the requests table says that {request_id!r} led to event @{seq}, which is not there")
            elif claim is None:
                if seq > self._lost:
                    self.note(f"the requests table says that {request_id!r} led to event @{seq}, which is another's")
            elif digest != claim.digest or not claim.first <= seq <= claim.last:
                self.note(f"request {request_id!r} in the requests table is not what event @{claim.first} says")
            yield
        for (_, request_id), claim in left.items():
            self.note(f"request {request_id!r} of event @{claim.first} is missing in the requests table")
