"""Archives, unarchives, collects and backs up; implements `ports.JournalMaintenance`."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import anyio
import msgspec
from anyio import CancelScope, to_thread

from orchestrator.api.journal_operations import BackupAnswer
from orchestrator.core.annotations import Mark, contents_of, fields_with
from orchestrator.core.errors import JournalChanged, JournalCorrupt, NotLatestSegment
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.codec import BY_TAG, PROPOSAL_TAGS, decode
from orchestrator.core.events.journal_maintenance import ContentsCollected, SegmentArchived, SegmentRestored
from orchestrator.core.ids import Digest, Seq
from orchestrator.core.system_errors import system_trouble
from orchestrator.journal.backup import make_backup
from orchestrator.journal.blobs import Blobs, splices_of
from orchestrator.journal.database_file import FILE_NAME, naming_trouble, open_reader, sql
from orchestrator.journal.segments import ARCHIVE, MOST_EVENTS, Archive, Segment, archived_end, write_segment
from orchestrator.journal.sqlite import STREAM, SqliteJournal
from orchestrator.journal.writer import TransactionHook
from orchestrator.ports.journal import AppendBatch, ArchivedFile, Collected, NewEvent

MOST_CONTENTS = 500
"""Named by one ContentsCollected."""

T = TypeVar("T")


class SqliteMaintenance:
    """Keeps one open journal."""

    def __init__(self, journal: SqliteJournal, *, most_events: int = MOST_EVENTS) -> None:
        self._journal, self._most = journal, most_events
        self._state_dir = journal.state_dir
        self._folder = journal.state_dir / ARCHIVE
        self._one_at_a_time = anyio.Lock()

    @property
    def archived(self) -> tuple[ArchivedFile, ...]:
        return self._journal.segments

    # --- archiving ----------------------------------------------------------------------

    async def archive(self, last: Seq, origin: Origin) -> tuple[ArchivedFile, ...]:
        made: list[ArchivedFile] = []
        async with self._one_at_a_time:
            while (first := self._next()) <= last:
                end = min(int(last), first + self._most - 1)
                made.append(await self._archive(first, end, origin))
        return tuple(made)

    def _next(self) -> int:
        segments = self._journal.segments
        return segments[-1].last + 1 if segments else 1

    async def _archive(self, first: int, last: int, origin: Origin) -> ArchivedFile:
        head = self._journal.head
        try:
            segment = await self._reading(partial(write_segment, folder=self._folder, first=first, last=last))
        except OSError as error:
            trouble = system_trouble(error, f"nothing was archived in {self._folder}")
            raise trouble or JournalCorrupt(
                f"{self._folder} can't be written: {error.strerror}", hint="Mend the disk."
            ) from error
        event = SegmentArchived(
            first=Seq(first),
            last=Seq(last),
            last_hash=segment.last_hash.hex(),
            file=segment.file,
            digest=segment.digest,
            size=segment.size,
        )
        # From here on readers use the file: it is whole, and says what the rows say until they are gone.
        before = self._journal.segments
        self._journal.segments = (*before, segment)
        try:
            await self._append(event, origin, partial(_move_out, segment, head))
        except BaseException:
            self._journal.segments = before
            (self._folder / segment.file).unlink(missing_ok=True)  # nothing names it, and what it holds may be redacted
            raise
        return segment

    async def unarchive(self, file: str, origin: Origin) -> ArchivedFile:
        async with self._one_at_a_time:
            *older, found = self._journal.segments or (None,)
            if found is None or found.file != Path(file).name:
                newest = f"Bring back {found.file} first." if found is not None else "Nothing is archived."
                raise NotLatestSegment(f"{Path(file).name} is not the newest archived file", hint=newest)
            rows = await to_thread.run_sync(Archive(self._folder).rows, found)

            def move_back(connection: sqlite3.Connection) -> None:
                connection.executemany(sql("append_event"), rows)
                connection.execute(sql("drop_segment"), (found.first,))

            await self._append(SegmentRestored(first=found.first, last=found.last, file=found.file), origin, move_back)
            self._journal.segments = tuple(older)
            return found

    # --- collecting ---------------------------------------------------------------------

    async def collect(
        self, *, needed: frozenset[Digest], as_of: Seq, before_ms: int, origin: Origin, dry_run: bool
    ) -> Collected:
        async with self._one_at_a_time:
            found = await self._reading(partial(unreferenced_blobs, needed=needed, as_of=as_of))
            old = sorted((item for item in found if item.last_named < before_ms), key=lambda item: item.digest)
            gone: list[UnreferencedBlob] = []
            for start in range(0, len(old) if not dry_run else 0, MOST_CONTENTS):
                gone += await self._collect(old[start : start + MOST_CONTENTS], as_of, origin)
            removed = old if dry_run else gone
            return Collected(tuple(item.digest for item in removed), sum(item.size for item in removed))

    async def _collect(self, items: list[UnreferencedBlob], as_of: int, origin: Origin) -> list[UnreferencedBlob]:
        going = frozenset(item.digest for item in items)
        needed = await self._reading(partial(_needed_again, seq=as_of, going=going))
        items = [item for item in items if item.digest not in needed]
        if not items:
            return []
        digests = tuple(item.digest for item in items)
        event = ContentsCollected(digests=digests, bytes=sum(item.size for item in items))

        def remove(connection: sqlite3.Connection) -> None:
            if not _needed_again(connection, as_of, frozenset(digests)).isdisjoint(digests):
                raise JournalChanged("one of the contents is needed again")
            connection.executemany(sql("forget_blob"), [(digest,) for digest in digests])

        await self._append(event, origin, remove, after=partial(Blobs(self._state_dir).remove, digests))
        return items

    # --- backing up ---------------------------------------------------------------------

    async def backup(self, directory: str) -> BackupAnswer:
        async with self._one_at_a_time:
            return await to_thread.run_sync(make_backup, self._state_dir, Path(directory))

    # --- small things -------------------------------------------------------------------

    async def _append(
        self,
        event: Event,
        origin: Origin,
        inside: Callable[[sqlite3.Connection], None],
        *,
        after: Callable[[], bool] = lambda: True,
    ) -> None:
        """Appended or not, it is known when this returns: what follows depends on it."""
        with CancelScope(shield=True):
            unit = AppendBatch((NewEvent(STREAM, event),), origin)
            await self._journal.append(unit, TransactionHook(inside=inside, after=after))

    async def _reading(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """On a connection of its own, in one snapshot, in a worker thread."""
        path = self._state_dir / FILE_NAME

        def run() -> T:
            with naming_trouble(path), closing(open_reader(path)) as reader:
                reader.execute("BEGIN")
                return work(reader)

        return await to_thread.run_sync(run)


def _move_out(segment: Segment, as_of: int, connection: sqlite3.Connection) -> None:
    """Take the events of a segment, whose file is whole, out of the database; `as_of`: the head that it was made at."""
    if connection.execute(sql("redacted_since"), (as_of,)).fetchone():
        raise JournalChanged("an event was redacted while the file was written")
    connection.execute(sql("note_archived_streams"), (segment.last,))
    dropped = connection.execute(sql("drop_events"), (segment.first, segment.last)).rowcount
    if dropped != segment.last - segment.first + 1:
        raise JournalCorrupt(f"events @{segment.first} to @{segment.last} are not all in the database")
    connection.execute(sql("add_segment"), msgspec.structs.astuple(segment))


_REMOVALS = frozenset(tag for tag, event in BY_TAG.items() if fields_with(event, Mark.GONE))
_DIGEST = re.compile(rb"sha256:[0-9a-f]{64}")


class UnreferencedBlob(msgspec.Struct, frozen=True):
    """A content that nothing needs, and the time of the last event that named it, at the latest."""

    digest: Digest
    size: int
    last_named: int  # ms since the epoch


def _named(seq: int, tag: str, payload: bytes) -> set[Digest]:
    """Every content that a stored event names, save as gone; whatever looks like one, where none can be gone."""
    if tag in _REMOVALS:
        return set(contents_of(decode(payload, tag=tag, seq=seq)))
    return {Digest(found.decode()) for found in _DIGEST.findall(payload)}


def bases(connection: sqlite3.Connection) -> dict[Digest, Digest]:
    """Of every content that is kept as splices, the one that they are of. Blocking."""
    found = (splices_of(*row) for row in connection.execute(sql("spliced_blobs")))
    return {content.digest: content.base.digest for content in found if content is not None}


def named_since(connection: sqlite3.Connection, seq: int) -> set[Digest]:
    """Every content that events after `seq` name, save as gone. Blocking."""
    named: set[Digest] = set()
    for number, _, tag, payload in connection.execute(sql("payloads"), (seq,)):
        named |= _named(number, tag, payload)
    return named


def _needed_again(connection: sqlite3.Connection, seq: int, going: frozenset[Digest]) -> set[Digest]:
    """As `named_since`, and what contents are spliced of that stay when these go. Blocking."""
    named = named_since(connection, seq)
    return named | {base for digest, base in bases(connection).items() if digest not in going or digest in named}


def unreferenced_blobs(
    connection: sqlite3.Connection, *, needed: frozenset[Digest], as_of: int
) -> list[UnreferencedBlob]:
    """Contents that nothing needs, in no order.

    `needed` is what waited at position `as_of`; events after it count whatever their kind.
    Blocking; cost: O(kept events + versions + contents).
    """
    end = archived_end(connection)
    archived = end[0] if end is not None else 0
    reached, named = set(needed), dict[Digest, int]()
    oldest: int | None = None
    for seq, at, tag, payload in connection.execute(sql("payloads"), (0,)):
        oldest = at if oldest is None else oldest
        for digest in _named(seq, tag, payload):
            named[digest] = max(at, named.get(digest, 0))
            if tag not in PROPOSAL_TAGS or seq > as_of:
                reached.add(digest)
    for _, rows in groupby(connection.execute(sql("named_contents")), key=lambda row: row[0]):
        _versions(list(rows), archived, reached, named)
    oldest_if_archived = oldest if archived else None
    for digest, base in bases(connection).items():  # which is needed as long as what is spliced of it is there
        last = named.get(digest, oldest_if_archived)
        if digest in reached or last is None:
            reached.add(base)
        else:
            named[base] = max(last, named.get(base, 0))
    found = []
    for digest, size in connection.execute(sql("blob_sizes")):
        # Named by archived events alone: those are older than the oldest that is kept. By none: it just came.
        last = named.get(digest, oldest_if_archived)
        if digest not in reached and last is not None:
            found.append(UnreferencedBlob(digest, size, last))
    return found


def _versions(rows: list[Any], archived: int, reached: set[Digest], named: dict[Digest, int]) -> None:
    """Of one path: the versions that began after the archived events, and the one that was current at their end."""
    before = [row for row in rows if row[1] <= archived]
    current = [max(before, key=lambda row: row[1]), max(before, key=lambda row: (row[2], row[1]))] if before else []
    for row in (*current, *(row for row in rows if row[1] > archived)):
        if row[4] is not None:
            reached.add(row[4])
    for _, _, _, at, digest in rows:
        if digest is not None:
            named[digest] = max(at, named.get(digest, 0))
