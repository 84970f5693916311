"""One pass over a range of events, archived or not: what `verify` must know of them, found without a fold.

Ranges hang together by one hash each, so several processes may take one each; run as a module
this is such a process. What it found goes to stdout.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from orchestrator.core.annotations import Mark, brought_by, fields_with, gone_from
from orchestrator.core.errors import JournalCorrupt, OrchestratorError
from orchestrator.core.events import chain
from orchestrator.core.events.base import Event
from orchestrator.core.events.catalog import BY_TAG
from orchestrator.core.events.journal import CheckpointSigned, PayloadRedacted
from orchestrator.core.ids import Digest, Seq
from orchestrator.core.maintenance_errors import ArchiveMissing
from orchestrator.core.projections.history import DigestLearned, VersionRow, history
from orchestrator.journal.rows import event_of, link_problem, mistyped, origin_of, recorded_with
from orchestrator.journal.schema import naming_trouble, open_reader, sql
from orchestrator.journal.segments import ARCHIVE, Archive, Segment, segments_of

MOST_PROBLEMS = 50

_TALLIED = frozenset(
    tag
    for tag, event in BY_TAG.items()
    if event in (CheckpointSigned, PayloadRedacted) or fields_with(event, Mark.CONTENT)
)
"""The kinds that say anything of contents (and so of versions), redactions or checkpoints."""


class Signed(msgspec.Struct, frozen=True):
    """A CheckpointSigned, and where it stands."""

    seq: Seq
    event: CheckpointSigned


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


class ScanResult(msgspec.Struct, kw_only=True):
    """What one range holds; or a piece of it, where a file of archived events can't be read."""

    events: int = 0
    unread: int = 0  # up to this event nothing is known: the piece begins behind such a file
    absent: str = ""  # that file, if it is not there at all
    end: tuple[int, bytes] = (0, chain.GENESIS)
    problems: list[str] = []
    more: int = 0  # problems that are not listed
    streams: dict[str, tuple[int, int]] = {}  # the numbers of a stream's first and last event here
    versions: list[VersionRow] = []
    learned: list[DigestLearned] = []
    claims: dict[tuple[str, str], Claim] = {}  # by agent and request id
    named: dict[Digest, int] = {}  # contents that must be kept, and who says so
    gone: list[Digest] = []  # contents that were taken out, of those named earlier
    silenced: dict[int, str] = {}  # redacted events, and the hash of what is left of each
    silencing: dict[int, tuple[int, str]] = {}  # their number → by which event, and which hash it says
    signed: list[Signed] = []

    def note(self, problem: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)
        else:
            self.more += 1


class Scan:
    """One walk over `after` < seq <= `last`, within one snapshot of the connection."""

    def __init__(self, connection: sqlite3.Connection, archive: Archive) -> None:
        self._db, self._archive = connection, archive

    def parts(self, after: int, last: int) -> list[ScanResult]:
        """Walk, over what is archived first. A page that can't be read ends it, and is a problem.

        Each file that can't be read begins another part. Cost: 8 µs for an event, 50 µs for an archived one.
        """
        found, part = list[ScanResult](), ScanResult()
        try:
            segments = [item for item in segments_of(self._db) if item.last > after and item.first <= last]
            part.end = self._before(after)
            for segment in segments:
                try:
                    rows = self._archive.rows(segment)
                except (ArchiveMissing, JournalCorrupt) as error:
                    found.append(part)
                    part = self._behind(segment, part.end, last, error)
                else:
                    self._walk(part, (row for row in rows if after < row[0] <= last))
            self._walk(part, self._db.execute(sql("events_between"), (after, last)))
            end = part.end[0]
            if end != last:
                part.note(f"missing before event @{last + 1}: @{end + 1}" + (f" to @{last}" if last > end + 1 else ""))
        except sqlite3.DatabaseError as error:
            part.note(f"the database can't be read further: {error}")
        return [*found, part]

    def _before(self, after: int) -> tuple[int, bytes]:
        """On what the range hangs; no hash: whoever has the range before this one says what is missing there."""
        if after == 0:
            return 0, chain.GENESIS
        row = self._db.execute(sql("event_hash"), (after,)).fetchone()
        if row is None:
            row = self._db.execute(sql("segment_ending"), (after,)).fetchone()
        return after, row[0] if row else b""

    @staticmethod
    def _behind(segment: Segment, end: tuple[int, bytes], last: int, error: OrchestratorError) -> ScanResult:
        """The chain is taken up again at the end of a file that can't be read; who has that end says so."""
        if segment.last > last:
            return ScanResult(unread=last, end=(last, b""))
        part = ScanResult(unread=segment.last, end=(segment.last, segment.last_hash))
        if isinstance(error, ArchiveMissing):
            part.absent = error.message
        else:
            part.note(error.message)
        if end[0] < segment.first and end[1] and end != (segment.first - 1, segment.prev_hash):
            part.note(f"the archived events @{segment.first} to @{segment.last} do not follow @{end[0]}")
        return part

    def _walk(self, part: ScanResult, rows: Iterable[Any]) -> None:
        """Most events of a sound journal leave nothing but their hashes: that way must be short."""
        end, streams, claims, header, link = part.end, part.streams, part.claims, chain.header_of, chain.link
        for row in rows:
            problem = mistyped(row)
            if problem is not None:
                part.note(problem)
                part.events, part.end, end = part.events + 1, (row[0], b""), (row[0], b"")
                continue
            seq, salt, digest, version = row[0], row[14], row[15], row[3]
            if (
                seq != end[0] + 1
                or row[16] != end[1]
                or sha256(salt + row[13]).digest() != digest
                or link(end[1], header(row[:13], row[19]), digest) != row[17]
                or (row[18] is None) != (row[19] is None)
                or (row[18] is not None and sha256(salt + row[18]).digest() != row[19])
            ):
                self._odd(part, row, end)
            end = seq, row[17]
            numbers = streams.get(row[2])
            if numbers is None:
                streams[row[2]] = version, version
            else:
                if version != numbers[1] + 1:
                    part.note(f"event @{seq} is number {version} of {row[2]}, where {numbers[1] + 1} should be")
                streams[row[2]] = numbers[0], version
            if row[8] is not None:
                key = row[6] or "", row[8]
                claims[key] = Claim(row[9] or "", seq, seq, row[1]).after(claims.get(key))
            try:
                event = event_of(row)
                if row[4] in _TALLIED:
                    self._told(part, row, event)
            except OrchestratorError as error:
                part.note(error.message)
            part.events += 1
            part.end = end

    def _odd(self, part: ScanResult, row: Any, end: tuple[int, bytes]) -> None:
        """An event that the short way does not let through: it is redacted, or something is wrong."""
        if chain.is_redacted(row[14]):
            part.silenced[row[0]] = chain.payload_hash(row[14], row[13]).hex()
        problem = link_problem(row, origin_of(row), end if end[1] or end[0] + 1 != row[0] else None)
        if problem is not None:
            part.note(problem)

    def _told(self, part: ScanResult, row: Any, event: Event) -> None:
        match event:
            case PayloadRedacted(target=target, rest_hash=rest_hash):
                part.silencing[target] = row[0], rest_hash
            case CheckpointSigned():
                part.signed.append(Signed(row[0], event))
            case _:
                for digest in gone_from(event):
                    part.named.pop(digest, None)
                    part.gone.append(digest)
                for content in brought_by(event):
                    if content.kept:
                        part.named.setdefault(content.digest, row[0])
                for item in history(recorded_with(row, event, origin_of(row))):
                    if isinstance(item, VersionRow):
                        part.versions.append(item)
                    else:
                        part.learned.append(item)


def main(argv: list[str]) -> None:
    """`python -m orchestrator.journal.verification_scan JOURNAL AFTER LAST`: the parts to stdout, as MessagePack."""
    path, after, last = Path(argv[0]), int(argv[1]), int(argv[2])
    connection = open_reader(path)
    with naming_trouble(path):
        connection.execute("BEGIN")
        parts = Scan(connection, Archive(path.parent / ARCHIVE)).parts(after, last)
    connection.close()
    sys.stdout.buffer.write(msgspec.msgpack.encode(parts))


if __name__ == "__main__":
    main(sys.argv[1:])
