"""Does the journal hold what it should: the chain, the payloads, the contents, the table of versions."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from orchestrator.core.checkpoint import Checkpoint
from orchestrator.core.errors import JournalCorrupt, plural
from orchestrator.core.events import chain
from orchestrator.core.events.catalog import tag_of
from orchestrator.core.events.journal import PayloadRedacted
from orchestrator.core.ids import Digest, Seq
from orchestrator.journal.blobs import Blobs
from orchestrator.journal.high_water_mark import hash_at
from orchestrator.journal.rows import UNDECODABLE
from orchestrator.journal.schema import naming_trouble, open_reader, sql
from orchestrator.journal.segments import ARCHIVE, Archive
from orchestrator.journal.signatures import Seals
from orchestrator.journal.snapshot_verification import SnapshotReplay
from orchestrator.journal.tail import redaction_in, silence_problems
from orchestrator.journal.verification_scan import MOST_PROBLEMS, Claim, Scan, ScanResult, Signed
from orchestrator.journal.versions import Versions, table_differences
from orchestrator.journal.workers import Workers
from orchestrator.ports.journal import VerifyReport

WORTH_A_PROCESS = 50_000
"""Events; fewer are walked in the calling thread. A process takes 0.2 s to start, as long as 20,000 events."""

MOST_PROCESSES = 8

UNCHECKED = (
    "whoever can rewrite all of the journal can rewrite the chain: compare the head with a copy kept elsewhere",
)


def verify(path: Path, blobs: Blobs, checkpoint: Checkpoint | None = None) -> VerifyReport:
    """Walk over everything, archived events too, in one snapshot; with a checkpoint, compare it.

    Blocking. Raises CheckpointForeign.

    Cost: O(events + contents' bytes) time, O(streams + requests + versions of files) memory. Over 50,000
    events are walked by a process for each processor, contents and pages by this thread meanwhile.
    """
    connection = open_reader(path)
    try:
        with naming_trouble(path):
            connection.execute("BEGIN")
            (journal,) = connection.execute(sql("journal_id")).fetchone()
            seals = Seals(str(journal), checkpoint)
            return _Walk(connection, path, blobs, seals).report()
    finally:
        connection.close()


class _Walk:
    """Every check over one snapshot; the events perhaps by other processes, up to the same head."""

    def __init__(self, connection: sqlite3.Connection, path: Path, blobs: Blobs, seals: Seals) -> None:
        self._db, self._path, self._blobs, self._seals = connection, path, blobs, seals
        self._archive = Archive(path.parent / ARCHIVE)
        self._unread = 0
        self._absent: list[str] = []
        self._uncompared: list[str] = []
        self._problems: list[str] = []
        self._more = 0
        self._versions = Versions()
        self._claims: dict[tuple[str, str], Claim] = {}
        self._named: dict[Digest, int] = {}
        self._streams: dict[str, int] = {}
        self._silenced: dict[int, str] = {}
        self._silencing: dict[int, tuple[int, str]] = {}
        self._signed: list[Signed] = []
        self._end: tuple[int, bytes] = (0, chain.GENESIS)
        self._present: set[Digest] = set()

    def report(self) -> VerifyReport:
        last = self._db.execute(sql("last_event")).fetchone()
        head = last[0] if last else 0
        processes = min(MOST_PROCESSES, os.cpu_count() or 1, head // WORTH_A_PROCESS + 1)
        if processes > 1:
            with Workers(self._path, head, processes) as workers:
                contents = self._counted(self._contents())
                self._counted(self._page_problems())
                parts = workers.parts()
        else:
            parts = Scan(self._db, self._archive).parts(0, head)
            contents = self._counted(self._contents())
            self._counted(self._page_problems())
        events = sum(part.events for part in parts)
        beside, self._problems = self._problems, []  # the events' problems come first: they explain the others
        for part in parts:
            self._take(part)
        self._silence()
        for problem in (*beside, *self._seals.problems(self._signed, self._end, self._hash_of)):
            self._note(problem)
        self._counted(self._missing_contents())
        self._counted(self._table_problems())
        self._counted(self._request_problems())
        self._counted(self._snapshot_problems())
        return VerifyReport(
            events=events,
            head=Seq(self._end[0]),
            head_hash=self._end[1].hex(),
            blobs=contents,
            problems=tuple(self._problems),
            unchecked=tuple(self._unchecked()),
            proven=self._seals.proven(whole=not self._problems and not self._unread),
            unread=max(0, self._end[0] - events) if self._absent else 0,
        )

    def _unchecked(self) -> Iterator[str]:
        yield from UNCHECKED
        yield from self._absent
        yield from self._uncompared
        yield from self._seals.unchecked(Seq(self._end[0]))
        if self._silenced:
            named = ", ".join(f"@{seq}" for seq in sorted(self._silenced)[:10])
            more = f" and {len(self._silenced) - 10} more" if len(self._silenced) > 10 else ""
            yield (
                f"{plural(len(self._silenced), 'redacted payload')}, which cannot be checked: {named}{more}; "
                "the rest of each event is as its redaction left it"
            )
        if self._more:
            yield plural(self._more, "more problem")

    def _counted(self, walk: Iterator[None]) -> int:
        """How many steps a walk took; a page that can't be read ends it."""
        steps = 0
        try:
            for _ in walk:
                steps += 1
        except (sqlite3.DatabaseError, JournalCorrupt, *UNDECODABLE) as error:
            self._note(f"the database can't be read further: {error}")
        return steps

    def _note(self, problem: str) -> None:
        if len(self._problems) < MOST_PROBLEMS:
            self._problems.append(problem)
        else:
            self._more += 1

    def _hash_of(self, seq: int) -> str | None:
        return hash_at(self._db, self._archive, seq)

    def _take(self, part: ScanResult) -> None:
        """One range more, in the journal's order."""
        if part.unread:
            self._lose(part)
        for problem in part.problems:
            self._note(problem)
        self._more += part.more
        for stream, (first, last) in part.streams.items():
            known = stream in self._streams or not self._unread
            expected = self._streams.get(stream, 0) + 1
            if first != expected and known:
                self._note(f"the first event of {stream} is number {first}, where {expected} should be")
            self._streams[stream] = last
        for version in part.versions:
            self._versions.add(version)
        for learned in part.learned:
            self._versions.add(learned)
        for key, claim in part.claims.items():
            self._claims[key] = claim.after(self._claims.get(key))
        for digest in part.gone:
            self._named.pop(digest, None)
        for digest, seq in part.named.items():
            self._named.setdefault(digest, seq)
        self._silenced.update(part.silenced)
        self._silencing.update(part.silencing)
        self._signed += part.signed
        if part.events:
            self._end = part.end

    def _lose(self, part: ScanResult) -> None:
        """What archived events say that can't be read is not known: nor what of the rest hangs on it."""
        self._unread = part.unread
        self._streams.clear()
        self._claims.clear()
        self._named.clear()
        if part.absent:
            self._absent.append(part.absent)

    def _silence(self) -> None:
        """A redaction may come between the snapshots of two processes: ask once more for what no event explains."""
        if self._silenced.keys() - self._silencing.keys():
            later = open_reader(self._path)
            try:
                for seq, payload in later.execute(sql("payloads_with_tag"), (tag_of(PayloadRedacted),)):
                    event = redaction_in(payload)
                    self._silencing[event.target] = seq, event.rest_hash
            finally:
                later.close()
        told = {seq: rest for seq, rest in self._silenced.items() if seq > self._unread or seq in self._silencing}
        for problem in silence_problems(told, self._silencing):
            self._note(problem)

    def _contents(self) -> Iterator[None]:
        """Every content that is there."""
        for digest, size, data in self._db.execute(sql("all_blobs")):
            self._present.add(Digest(digest))
            try:
                self._blobs.check(Digest(digest), size, data)
            except JournalCorrupt as error:
                self._note(error.message)
            yield

    def _missing_contents(self) -> Iterator[None]:
        """Contents that events speak of as kept, that are not there, and that nobody took out."""
        for digest, seq in self._named.items():
            if digest not in self._present:
                self._note(f"the content {digest}, which event @{seq} names, is missing; a backup may have it")
                yield

    def _table_problems(self) -> Iterator[None]:
        """The table of versions against its rebuild from the events."""
        unsure: set[str] = set()
        for found in table_differences(self._db, self._versions):
            if found is not None and found.table == "file_versions" and found.seq <= self._unread:
                unsure.add(found.path)
            elif found is not None and found.path not in unsure:
                self._note(f"a table is not what the events say: {found}")
            yield

    def _snapshot_problems(self) -> Iterator[None]:
        """What starts begin from, against a replay; without all events, or with wrong ones, there is none."""
        if self._unread or self._problems:
            self._uncompared.append(
                "the snapshots that a start begins from: there is no sound replay to compare them with"
            )
            return
        replay = SnapshotReplay(self._db, self._archive)
        for problem in replay.problems():
            self._note(problem)
            yield
        self._uncompared += replay.uncompared

    def _page_problems(self) -> Iterator[None]:
        """SQLite's own view: pages, indexes."""
        for (finding,) in self._db.execute(f"PRAGMA integrity_check({MOST_PROBLEMS})"):
            if finding != "ok":
                self._note(f"the database: {finding}")
            yield

    def _request_problems(self) -> Iterator[None]:
        """The table of requests against the events that carry their ids."""
        left = dict(self._claims)
        for agent, request_id, digest, seq in self._db.execute(sql("all_requests")):
            claim = left.pop((agent, request_id), None)
            if not 0 < seq <= self._end[0]:
                self._note(f"the requests table says that {request_id!r} led to event @{seq}, which is not there")
            elif claim is None:
                if seq > self._unread:
                    self._note(f"the requests table says that {request_id!r} led to event @{seq}, which is another's")
            elif digest != claim.digest or not claim.first <= seq <= claim.last:
                self._note(f"request {request_id!r} in the requests table is not what event @{claim.first} says")
            yield
        for (_, request_id), claim in left.items():
            self._note(f"request {request_id!r} of event @{claim.first} is missing in the requests table")
