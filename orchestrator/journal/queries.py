"""The read side: short queries on connections that can only read, each in one turn of its thread."""

from __future__ import annotations

import asyncio
import sqlite3
from bisect import bisect_left
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import aiosqlite
import msgspec
from anyio import CancelScope, to_thread

from orchestrator.core.content import Content, LargeContent
from orchestrator.core.errors import JournalCorrupt
from orchestrator.core.events.base import Recorded, RecordedLike
from orchestrator.core.events.chain import Checkpoint
from orchestrator.core.events.files import ChangeApplied
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.projections.versions import VersionRow
from orchestrator.journal.blobs import Blobs, splices_of
from orchestrator.journal.database_file import FILE_NAME, naming_trouble, open_reader, sql
from orchestrator.journal.event_rows import recorded_of, select
from orchestrator.journal.segments import ARCHIVE, Archive, Segment, pieces
from orchestrator.journal.signatures import KeyFile
from orchestrator.journal.snapshot_table import check_seal, unpacked
from orchestrator.journal.verification import ChainVerifier, verify
from orchestrator.journal.versions import table_difference, version_of
from orchestrator.ports.journal import (
    EVERYTHING,
    Checked,
    EventFilter,
    KnownVersion,
    Snapshot,
    VerifyReport,
)

INLINE_BYTES = 16 * 1024
"""Contents up to this are packed and unpacked on the event loop (0.1 ms); larger ones in a worker thread."""

MOST_BYTES = 1 << 62
"""Of any content."""

INLINE_EVENTS = 200
"""So many are decoded on the event loop (2 ms); more in a worker thread."""

_END = 2**62

T = TypeVar("T")


class JournalReader:
    """The half of `ports.Journal` that only reads.

    One connection per purpose: events, single rows, contents. Nobody opens a transaction on
    them, so tasks may share them. Events after `head` are committed but not folded yet, and
    are not shown. Events up to the end of the last of `segments` are read from their files.
    """

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self._path = state_dir / FILE_NAME
        self._blobs = Blobs(state_dir)
        self.blocks, self.stage, self.discard = self._blobs.blocks, self._blobs.stage, self._blobs.discard
        self._reads = AsyncExitStack()
        self.head = Seq(0)
        self.id = ""
        self._archive = Archive(state_dir / ARCHIVE)
        self.segments: tuple[Segment, ...] = ()
        self._pause_s = 0.0
        """Between two slices of a verification, for callers that need the interpreter; 0 where nobody is served."""

    async def _open_readers(self) -> None:
        self._events = await self._reader()
        self._points = await self._reader()
        self._contents = await self._reader()

    async def _reader(self) -> aiosqlite.Connection:
        reader = aiosqlite.Connection(partial(open_reader, self._path), iter_chunk_size=1000)
        reader._thread.daemon = True  # else a program that fails before it closes the journal never ends
        self._reads.push_async_callback((await reader).close)
        return reader

    async def events(self, wanted: EventFilter = EVERYTHING, *, batch: int = 1000) -> AsyncIterator[Recorded]:
        after = wanted.after
        until = _END if wanted.until is None else wanted.until
        while after < until:
            segments, segment = self.segments, self._holding(after + 1)
            rows = await self._select(wanted, segment, after=after, limit=batch, newest=False)
            if segment is None and self.segments is not segments and self._holding(after + 1) is not None:
                continue  # archived under the query: it may have missed some
            for recorded in await _decoded(partial(_recorded, rows), rows):
                yield recorded
            if len(rows) == batch:
                after = rows[-1][0]
            elif segment is not None:
                after = segment.last
            else:
                return

    async def replay(self, *, after: int = 0, until: int | None = None) -> AsyncGenerator[Sequence[RecordedLike], None]:
        until = self.head if until is None else min(until, self.head)
        reader = await to_thread.run_sync(open_reader, self._path)
        try:
            found = pieces(reader, self._archive, after=after, until=until)
            while piece := await to_thread.run_sync(next, found, None):
                yield piece
        finally:
            reader.close()

    async def newest(self, wanted: EventFilter = EVERYTHING, *, limit: int, archived: bool = True) -> list[Recorded]:
        while True:
            segments = self.segments
            floor = max(wanted.after, segments[-1].last if segments else 0)
            rows = await self._select(wanted, None, after=floor, limit=limit, newest=True)
            if self.segments is segments:
                break
        for segment in reversed(segments if archived else ()):
            if len(rows) >= limit or segment.last <= wanted.after:
                break
            rows += await self._select(wanted, segment, after=wanted.after, limit=limit - len(rows), newest=True)
        return _recorded(rows)

    async def event(self, seq: int) -> Recorded | None:
        if not 0 < seq <= self.head:
            return None
        segment = self._holding(seq)
        row = await self._one(self._points, sql("event"), (seq,))
        segment = segment or self._holding(seq)  # it may be archived, or brought back, under the query
        if row is None and segment is not None:
            (row,) = await to_thread.run_sync(self._archive.select, segment, sql("event"), (seq,))
        return recorded_of(row) if row is not None else None

    async def blob(self, digest: Digest) -> bytes | None:
        content = await self.content(digest, most=MOST_BYTES)
        return content if isinstance(content, bytes) else None

    async def content(self, digest: Digest, *, most: int) -> Content | None:
        row = await self._one(self._contents, sql("blob"), (digest,))
        if row is None:
            return None
        size, data = row
        if type(size) is int and size > most:
            if data is None:
                return LargeContent(digest, size)
            if (content := splices_of(digest, size, data)) is not None:
                return content
        if size <= INLINE_BYTES:
            return self._blobs.read(digest, size, data)
        return await to_thread.run_sync(self._blobs.read, digest, size, data)

    async def has_blob(self, digest: Digest) -> bool:
        return await self._one(self._points, sql("has_blob"), (digest,)) is not None

    async def spliced_of(self, digest: Digest) -> list[Digest]:
        rows = await self._all(self._contents, sql("spliced_blobs"), ())
        contents = await to_thread.run_sync(lambda: [splices_of(*row) for row in rows])
        return [content.digest for content in contents if content is not None and content.base.digest == digest]

    async def versions(self, path: WorkspacePath, *, limit: int, before: int | None = None) -> list[VersionRow]:
        values = (path, _END if before is None else before, limit)
        return await self._versions("versions", values)

    async def version_at(self, path: WorkspacePath, at: int) -> VersionRow | None:
        return next(iter(await self._versions("version_at", (path, at))), None)

    async def tree_at(self, at: int, *, after: str = "", limit: int) -> list[VersionRow]:
        rows = await self._all(self._events, sql("tree_at"), (after, at, limit))
        return [version_of(row) for row in rows]

    async def lacking(self, digests: Collection[Digest]) -> set[Digest]:
        return {Digest(row[0]) for row in await self._all(self._points, sql("lacking"), (_listed(digests),))}

    async def version_with(self, path: WorkspacePath, digest: Digest) -> VersionRow | None:
        return next(iter(await self._versions("version_with", (path, digest))), None)

    async def moved_away(self, paths: Collection[WorkspacePath]) -> list[VersionRow]:
        return await self._versions("moved_away", (_listed(paths),))

    async def histories(self, paths: Collection[WorkspacePath]) -> dict[WorkspacePath, tuple[VersionRow, ...]]:
        rows = await self._all(self._points, sql("histories"), (_listed(paths),))
        return await _decoded(partial(_by_path, paths, rows), rows)

    async def modes(self, paths: Collection[WorkspacePath]) -> dict[WorkspacePath, tuple[tuple[Seq, int], ...]]:
        rows = await self._all(self._points, sql("modes"), (_listed(paths),))
        by_path = groupby(rows, key=itemgetter(0))
        return {path: tuple((Seq(at), mode) for _, at, mode in known) for path, known in by_path}

    async def reverters(self) -> list[tuple[Seq, tuple[Seq, ...]]]:
        undos = [await self.event(seq) for (seq,) in await self._all(self._points, sql("undos"), ())]
        events = [undo.event for undo in undos if undo is not None]
        return [(event.change, event.provenance.reverts) for event in events if isinstance(event, ChangeApplied)]

    async def changes_of(self, path: WorkspacePath, *, until: int) -> list[KnownVersion]:
        values = (path, min(until, self.head))
        rows = await self._all(self._points, sql("versions_until"), values)
        events = await self._all(self._events, sql("events_of_versions"), values)
        recorded = {event.seq: event for event in await _decoded(partial(_recorded, events), events)}
        found: list[KnownVersion] = []
        for row in map(version_of, rows):
            event = recorded.get(row.seq) or await self.event(row.seq)  # one that is not in the table any more
            if event is None:
                raise JournalCorrupt(f"version {row.seq} of {path} has no event")
            found.append(KnownVersion(row, event))
        return found

    async def snapshots(self) -> list[Snapshot]:
        rows = await self._all(self._points, sql("snapshots"), ())
        return [Snapshot(Seq(row[0]), *row[1:]) for row in rows]

    async def snapshot(self, seq: int) -> bytes:
        row = await self._one(self._contents, sql("snapshot_data"), (seq,))
        if row is None:
            raise JournalCorrupt(f"the snapshot at @{seq} is not there")
        hash_, digest, version, seal, packed = row
        key, snapshot = KeyFile(self.state_dir), Snapshot(Seq(seq), hash_, digest, version)
        data = await to_thread.run_sync(unpacked, seq, digest, packed)
        await to_thread.run_sync(check_seal, key, self.id, snapshot, seal)
        return data

    async def checks(self) -> AsyncGenerator[Checked, None]:
        reader = await to_thread.run_sync(open_reader, self._path)
        try:
            verifier = ChainVerifier(reader, self._archive, until=self.head)
            slices = verifier.slices()
            while await _step(slices, reader):
                yield Checked(Seq(verifier.walk.end[0]), tuple(verifier.unread))
        finally:
            reader.close()

    async def table_difference(self) -> str | None:
        return await to_thread.run_sync(table_difference, self._path)

    async def verify(self, checkpoint: Checkpoint | None = None) -> VerifyReport:
        return await to_thread.run_sync(partial(verify, self._path, self._blobs, checkpoint, pause_s=self._pause_s))

    async def holding(self, text: str, *, limit: int) -> tuple[Seq, ...]:
        inside = msgspec.json.encode(text)[1:-1]  # as in a payload
        rows: list[tuple[int]] = []
        for segment in self.segments:
            if len(rows) < limit:
                rows += await to_thread.run_sync(self._archive.select, segment, sql("holding"), (inside, limit))
        rows += await self._all(self._events, sql("holding"), (inside, limit))
        return tuple(Seq(seq) for seq in sorted({seq for (seq,) in rows})[:limit])

    def _holding(self, seq: int) -> Segment | None:
        """The archived segment that an event is in."""
        at = bisect_left(self.segments, seq, key=lambda segment: segment.last)
        return self.segments[at] if at < len(self.segments) else None

    # --- queries ------------------------------------------------------------------------

    async def _select(
        self, wanted: EventFilter, segment: Segment | None, *, after: int, limit: int, newest: bool
    ) -> list[Any]:
        """Of a segment, else of the database."""
        until = self.head if wanted.until is None else min(wanted.until, self.head)
        query, values = select(wanted, after=after, until=until, limit=limit, newest=newest)
        if segment is not None:
            return await to_thread.run_sync(self._archive.select, segment, query, values)
        return await self._all(self._events, query, values)

    async def _versions(self, query: str, values: tuple[Any, ...]) -> list[VersionRow]:
        return [version_of(row) for row in await self._all(self._points, sql(query), values)]

    async def _one(self, connection: aiosqlite.Connection, statement: str, values: tuple[Any, ...]) -> Any:
        rows = await self._all(connection, statement, values)
        return rows[0] if rows else None

    async def _all(self, connection: aiosqlite.Connection, statement: str, values: tuple[Any, ...]) -> list[Any]:
        with naming_trouble(self._path):
            return list(await connection.execute_fetchall(statement, values))


def _listed(values: Iterable[str]) -> str:
    """For `json_each`."""
    return msgspec.json.encode(sorted(set(values))).decode()


async def _decoded(work: Callable[[], T], rows: list[Any]) -> T:
    """The result of work on rows, in a thread if they are many."""
    return await to_thread.run_sync(work) if len(rows) > INLINE_EVENTS else work()


def _recorded(rows: list[Any]) -> list[Recorded]:
    return [recorded_of(row) for row in rows]


def _by_path(paths: Collection[WorkspacePath], rows: list[Any]) -> dict[WorkspacePath, tuple[VersionRow, ...]]:
    known = {path: tuple(map(version_of, versions)) for path, versions in groupby(rows, key=itemgetter(0))}
    return {path: known.get(path, ()) for path in paths}


async def _step(slices: Iterator[None], reader: sqlite3.Connection) -> bool:
    """One slice in a thread, False after the last; who is cancelled does not wait for the pages of a large table."""
    slice_ = asyncio.get_running_loop().run_in_executor(None, next, slices, slices)
    try:
        return await asyncio.shield(slice_) is None
    except asyncio.CancelledError:
        reader.interrupt()
        with CancelScope(shield=True), suppress(JournalCorrupt):
            await slice_
        raise
