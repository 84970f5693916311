"""Archived events: databases in compressed files, sealed by a digest, and the table that names them."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from orchestrator.core.errors import ArchiveMissing, JournalCorrupt
from orchestrator.core.events.base import SlimRecorded
from orchestrator.core.ids import Checksum, Seq
from orchestrator.journal.blobs import zstd
from orchestrator.journal.database_file import migrations, naming_trouble, sql
from orchestrator.journal.event_rows import DAMAGED, ChainWalk, replayed
from orchestrator.journal.state_files import publish, sync_directory
from orchestrator.ports.journal import ArchivedFile

ARCHIVE = "archive"
"""The folder in the state directory."""

MOST_EVENTS = 5000
"""In one segment: as many as are moved in one transaction, and as are held in memory to look one up."""

PIECE = 2000
"""Events of the database that a fold takes at once; a segment is one piece."""

LEVEL = 9
OPEN_SEGMENTS = 2


class Segment(ArchivedFile, frozen=True, array_like=True):
    """A row of the segments table."""

    prev_hash: bytes
    last_hash: bytes
    digest: Checksum


def segments_of(connection: sqlite3.Connection) -> tuple[Segment, ...]:
    """The table, in order. Blocking. Raises JournalCorrupt."""
    try:
        return tuple(msgspec.convert(row, type=Segment) for row in connection.execute(sql("segments")))
    except msgspec.ValidationError as error:
        raise JournalCorrupt(f"the table of archived events can't be read: {error}", hint=DAMAGED) from error


def all_rows(connection: sqlite3.Connection, archive: Archive) -> Iterator[Any]:
    """Every event as `EVENT_COLUMNS` has it, archived ones first. Blocking.

    Raises ArchiveMissing, JournalCorrupt.
    """
    for segment in segments_of(connection):
        yield from archive.rows(segment)
    yield from connection.execute(sql("all_events"))


def pieces(
    connection: sqlite3.Connection, archive: Archive, *, after: int, until: int, most: int | None = None
) -> Iterator[list[SlimRecorded]]:
    """The events of a span in order, for a fold, `most` at once; they may move into a file meanwhile. Blocking.

    Raises ArchiveMissing, JournalCorrupt, JournalTooNew.
    """
    query = sql("replay")
    with naming_trouble("the journal"):
        while after < until:
            segment = segment_with(connection, after + 1)
            if segment is not None:
                found = replayed(archive.select(segment, query, (after, until, -1)))
            else:
                found = replayed(connection.execute(query, (after, until, most or PIECE)).fetchall())
                if segment_with(connection, after + 1) is not None:
                    continue  # archived between the two queries
            if not found:
                return
            yield found
            after = found[-1].seq


def segment_with(connection: sqlite3.Connection, seq: int) -> Segment | None:
    """The segment that an event is in."""
    return next((item for item in segments_of(connection) if item.first <= seq <= item.last), None)


def archived_end(connection: sqlite3.Connection) -> tuple[int, bytes] | None:
    """Position and hash of the last archived event, on which the first in the database hangs."""
    segments = segments_of(connection)
    return (segments[-1].last, segments[-1].last_hash) if segments else None


def memory_database() -> sqlite3.Connection:
    """An empty database in memory with the tables of a journal."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    for script in migrations():
        connection.executescript(script)
    return connection


def write_segment(connection: sqlite3.Connection, folder: Path, first: int, last: int) -> Segment:
    """Put events whose chain holds into a file, synced, and read it back. The database stays as it is. Blocking.

    Raises OSError, JournalCorrupt.
    """
    rows = connection.execute(sql("events_between"), (first - 1, last, -1)).fetchall()
    walk = ChainWalk((first - 1, b""))
    for problem in map(walk.take, rows):
        if problem is not None:
            raise JournalCorrupt(problem, hint=DAMAGED)
    if walk.end[0] != last:
        raise JournalCorrupt(f"events @{first} to @{last} are not all in the database", hint=DAMAGED)
    with closing(memory_database()) as image:
        image.executemany(sql("append_event"), rows)
        data = zstd.compress(image.serialize(), LEVEL)
    name = f"{first:012d}-{last:012d}.segment.zst"
    made = Segment(Seq(first), Seq(last), name, len(data), rows[0][16], rows[-1][17], _digest(data))
    if not folder.is_dir():
        folder.mkdir(mode=0o700)
        sync_directory(folder.parent)
    publish(data, folder / f"{name}.part", folder / name)
    if Archive(folder).rows(made) != rows:
        raise JournalCorrupt(f"{folder / name} does not hold what was written to it")
    return made


def segment_bytes(folder: Path, segment: Segment) -> bytes:
    """A file as it was archived. Raises ArchiveMissing, JournalCorrupt."""
    path = folder / segment.file
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ArchiveMissing(
            f"events @{segment.first} to @{segment.last}: {path} can't be read: {error.strerror}",
            hint="Put the file back, from a backup if need be; its name must stay.",
        ) from error
    if _digest(data) != segment.digest:
        raise JournalCorrupt(
            f"{path} is not the file that was archived: its digest differs",
            hint="Put the file back from a backup, under the same name; what needs no event in it goes on.",
        )
    return data


def _digest(data: bytes) -> Checksum:
    return Checksum(f"sha256:{hashlib.sha256(data).hexdigest()}")


class Archive:
    """The archived events of one journal; remembers the files that were read last. Blocking, thread-safe."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, bytes] = {}

    def rows(self, segment: Segment) -> list[Any]:
        """All events of a segment, in `EVENT_COLUMNS`' order. Raises ArchiveMissing, JournalCorrupt."""
        rows = self.select(segment, sql("all_events"))
        first, last = rows[0], rows[-1]
        ends = first[0], last[0], first[16], last[17]
        if ends != (segment.first, segment.last, segment.prev_hash, segment.last_hash):
            raise JournalCorrupt(f"{self.folder / segment.file} holds @{ends[0]} to @{ends[1]}: it is another segment")
        return rows

    def select(self, segment: Segment, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """What a query on `events` finds in a segment. Raises ArchiveMissing, JournalCorrupt."""
        with naming_trouble(self.folder / segment.file), closing(sqlite3.connect(":memory:")) as image:
            image.deserialize(self._image(segment))
            return image.execute(query, values).fetchall()

    def _image(self, segment: Segment) -> bytes:
        known = self._read.get(segment.digest)
        if known is None:
            known = zstd.decompress(segment_bytes(self.folder, segment))
            self._read = {**dict(list(self._read.items())[1 - OPEN_SEGMENTS :]), segment.digest: known}
        return known
