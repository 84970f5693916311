"""Archived events: files that say what they hold, compressed and sealed by a digest, and the table that names them."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec

from orchestrator.core.errors import JournalCorrupt
from orchestrator.core.events.base import Recorded
from orchestrator.core.ids import Checksum, Seq
from orchestrator.core.maintenance_errors import ArchiveMissing
from orchestrator.journal.blobs import zstd
from orchestrator.journal.rows import DAMAGED, ChainWalk, recorded_of
from orchestrator.journal.schema import sql, sync_directory
from orchestrator.ports.journal import EventFilter

ARCHIVE = "archive"
"""The folder in the state directory."""

FORMAT = "orchestrator segment 1"
MOST_EVENTS = 5000
"""In one segment: as many as are moved in one transaction, and as are held in memory to look one up."""

LEVEL = 9
OPEN_SEGMENTS = 2

Rows = tuple[tuple[Any, ...], ...]
"""Events in the order of `rows.EVENT_COLUMNS`."""


class Segment(msgspec.Struct, frozen=True):
    """A row of the segments table."""

    first: int
    last: int
    prev_hash: bytes
    last_hash: bytes
    file: Annotated[str, msgspec.Meta(pattern=r"\A\d{12,}-\d{12,}\.segment\.zst\Z")]  # in `ARCHIVE`, nowhere else
    digest: Checksum
    size: int


class _File(msgspec.Struct, frozen=True):
    """What a file holds: this as MessagePack, compressed by zstd."""

    format: str
    journal: str
    rows: Rows


def segments_of(connection: sqlite3.Connection) -> tuple[Segment, ...]:
    """The table, in order. Blocking. Raises JournalCorrupt."""
    try:
        return tuple(msgspec.convert(row, type=Segment) for row in map(_by_name, connection.execute(sql("segments"))))
    except msgspec.ValidationError as error:
        raise JournalCorrupt(f"the table of archived events can't be read: {error}", hint=DAMAGED) from error


def _by_name(row: Any) -> dict[str, Any]:
    return dict(zip(Segment.__struct_fields__, row, strict=True))


def all_rows(connection: sqlite3.Connection, archive: Archive) -> Iterator[Any]:
    """Every event as `rows.EVENT_COLUMNS` has it, archived ones first. Blocking.

    Raises ArchiveMissing, JournalCorrupt.
    """
    for segment in segments_of(connection):
        yield from archive.rows(segment)
    yield from connection.execute(sql("all_events"))


def archived_end(connection: sqlite3.Connection) -> tuple[int, bytes] | None:
    """Position and hash of the last archived event, on which the first in the database hangs."""
    segments = segments_of(connection)
    return (segments[-1].last, segments[-1].last_hash) if segments else None


def write_segment(connection: sqlite3.Connection, folder: Path, first: int, last: int) -> Segment:
    """Put events whose chain holds into a file, synced, and read it back. The database stays as it is. Blocking.

    Raises OSError, JournalCorrupt.
    """
    rows = tuple(connection.execute(sql("events_between"), (first - 1, last, -1)).fetchall())
    if [row[0] for row in rows] != list(range(first, last + 1)):
        raise JournalCorrupt(f"events @{first} to @{last} are not all in the database")
    for problem in map(ChainWalk((first - 1, b"")).take, rows):
        if problem is not None:
            raise JournalCorrupt(problem, hint=DAMAGED)
    (journal,) = connection.execute(sql("journal_id")).fetchone()
    data = zstd.compress(msgspec.msgpack.encode(_File(FORMAT, journal, rows)), LEVEL)
    name = f"{first:012d}-{last:012d}.segment.zst"
    made = Segment(first, last, rows[0][16], rows[-1][17], name, _digest(data), len(data))
    _publish(folder, name, data)
    if read_segment(folder, made) != rows:
        raise JournalCorrupt(f"{folder / name} does not hold what was written to it")
    return made


def _publish(folder: Path, name: str, data: bytes) -> None:
    if not folder.is_dir():
        folder.mkdir(mode=0o700)
        sync_directory(folder.parent)
    draft = folder / f"{name}.part"
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(folder / name)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_directory(folder)


def read_segment(folder: Path, segment: Segment) -> Rows:
    """A file's rows, its digest and its ends checked. Raises ArchiveMissing, JournalCorrupt.

    The chain was checked before the file was written, and the digest says that it is that file.
    """
    path = folder / segment.file
    try:
        found = msgspec.msgpack.decode(zstd.decompress(segment_bytes(folder, segment)), type=_File)
    except (zstd.ZstdError, EOFError, msgspec.MsgspecError) as error:
        raise JournalCorrupt(f"{path} can't be read as a segment: {error}") from error
    if found.format != FORMAT:
        raise JournalCorrupt(f"{path} has the format {found.format!r}; this program reads {FORMAT!r}")
    begin, end = found.rows[0], found.rows[-1]
    if (begin[0], end[0], begin[16], end[17]) != (segment.first, segment.last, segment.prev_hash, segment.last_hash):
        raise JournalCorrupt(f"{path} holds @{begin[0]} to @{end[0]}, which is another segment")
    return found.rows


def segment_bytes(folder: Path, segment: Segment) -> bytes:
    """A file as it was archived. Raises ArchiveMissing, JournalCorrupt."""
    path = folder / segment.file
    data = _data(path, f"events @{segment.first} to @{segment.last}")
    if _digest(data) != segment.digest:
        raise JournalCorrupt(
            f"{path} is not the file that was archived: its digest differs",
            hint="Put the file back from a backup, under the same name; what needs no event in it goes on.",
        )
    return data


def _data(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ArchiveMissing(
            f"{what}: {path} is not there", hint="Put the file back, from a backup if need be; its name must stay."
        ) from error
    except OSError as error:
        raise ArchiveMissing(f"{what}: {path} can't be read: {error.strerror}", hint="Mend the disk.") from error


def _digest(data: bytes) -> Checksum:
    return Checksum(f"sha256:{hashlib.sha256(data).hexdigest()}")


class Archive:
    """The archived events of one journal; remembers the files that were read last. Blocking, thread-safe."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[str, Rows] = {}

    def rows(self, segment: Segment) -> Rows:
        """All rows of a segment, in `rows.EVENT_COLUMNS`' order. Raises ArchiveMissing, JournalCorrupt."""
        known = self._read.get(segment.digest)
        if known is None:
            known = read_segment(self.folder, segment)
            self._read = {**dict(list(self._read.items())[1 - OPEN_SEGMENTS :]), segment.digest: known}
        return known

    def fitting(self, segment: Segment, wanted: EventFilter, after: int) -> list[Recorded]:
        """The events of a segment that fit, in order."""
        until = segment.last if wanted.until is None else wanted.until
        return [recorded_of(row) for row in self.rows(segment) if after < row[0] <= until and _fits(row, wanted)]

    def holding(self, segment: Segment, text: bytes) -> list[Seq]:
        """The events of a segment whose payload or details hold these bytes, in order."""
        return [Seq(row[0]) for row in self.rows(segment) if text in row[13] or (row[18] and text in row[18])]

    def event(self, segment: Segment, seq: int) -> Recorded:
        """One event of a segment."""
        return recorded_of(self.rows(segment)[seq - segment.first])


def _fits(row: tuple[Any, ...], wanted: EventFilter) -> bool:
    return (
        (not wanted.tags or row[4] in wanted.tags)
        and wanted.stream in (None, row[2])
        and wanted.session in (None, row[5])
        and wanted.agent in (None, row[6])
        and (wanted.since_at is None or row[1] >= wanted.since_at)
        and (wanted.until_at is None or row[1] <= wanted.until_at)
        and all(mention.fits(stream=row[2], payload=row[13], session=row[5], seq=row[0]) for mention in wanted.mentions)
    )
