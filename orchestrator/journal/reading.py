"""The read side: short queries on connections that can only read, each in one turn of its thread."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import aiosqlite
from anyio import to_thread

from orchestrator.core.events.base import Recorded
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.projections.history import VersionRow
from orchestrator.journal.blobs import Blobs
from orchestrator.journal.history import version_of
from orchestrator.journal.rows import EVENT_COLUMNS, recorded_of
from orchestrator.journal.schema import FILE_NAME, naming_trouble, open_reader, sql
from orchestrator.journal.segments import ARCHIVE, Archive, Segment
from orchestrator.journal.verify import verify
from orchestrator.ports import EVERYTHING, EventFilter, RequestSeen, VerifyReport

INLINE_BYTES = 16 * 1024
"""Contents up to this are packed and unpacked on the event loop (0.1 ms); larger ones in a worker thread."""

_END = 2**62


class Reading:
    """The half of `ports.Journal` that only reads.

    One connection per purpose: events, single rows, contents. Nobody opens a transaction on
    them, so tasks may share them. Events after `head` are committed but not folded yet, and
    are not shown. Events up to the end of the last of `_segments` are read from their files.
    """

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._path = state_dir / FILE_NAME
        self._blobs = Blobs(state_dir)
        self._reads = AsyncExitStack()
        self._head = 0
        self._archive = Archive(state_dir / ARCHIVE)
        self._segments: tuple[Segment, ...] = ()

    async def _open_readers(self) -> None:
        self._events = await self._reader()
        self._points = await self._reader()
        self._contents = await self._reader()

    async def _reader(self) -> aiosqlite.Connection:
        reader = await aiosqlite.Connection(partial(open_reader, self._path), iter_chunk_size=1000)
        self._reads.push_async_callback(reader.close)
        return reader

    @property
    def head(self) -> Seq:
        return Seq(self._head)

    async def request(self, agent: str, request_id: str) -> RequestSeen | None:
        row = await self._one(self._points, sql("request"), (agent, request_id))
        return RequestSeen(row[0], Seq(row[1])) if row else None

    async def events(self, wanted: EventFilter = EVERYTHING, *, batch: int = 1000) -> AsyncIterator[Recorded]:
        after = wanted.after
        while True:
            segment = self._holding(after + 1)
            if segment is not None:
                if wanted.until is not None and wanted.until <= after:
                    return
                for recorded in await to_thread.run_sync(self._archive.fitting, segment, wanted, after):
                    yield recorded
                after = segment.last
                continue
            segments = self._segments
            rows = await self._select(wanted, after=after, limit=batch, newest=False)
            if self._segments is not segments and self._holding(after + 1) is not None:
                continue  # archived under the query: it may have missed some
            for row in rows:
                yield recorded_of(row)
            if len(rows) < batch:
                return
            after = rows[-1][0]

    async def newest(self, wanted: EventFilter = EVERYTHING, *, limit: int) -> list[Recorded]:
        while True:
            segments = self._segments
            floor = max(wanted.after, segments[-1].last if segments else 0)
            rows = await self._select(wanted, after=floor, limit=limit, newest=True)
            if self._segments is segments:
                break
        found = [recorded_of(row) for row in rows]
        for segment in reversed(segments):
            if len(found) >= limit or segment.last <= wanted.after:
                break
            older = await to_thread.run_sync(self._archive.fitting, segment, wanted, wanted.after)
            found += older[::-1][: limit - len(found)]
        return found

    async def event(self, seq: int) -> Recorded | None:
        if not 0 < seq <= self._head:
            return None
        segment = self._holding(seq)
        if segment is None:
            row = await self._one(self._points, sql("event"), (seq,))
            if row is not None:
                return recorded_of(row)
            segment = self._holding(seq)  # archived under the query
        return None if segment is None else await to_thread.run_sync(self._archive.event, segment, seq)

    async def blob(self, digest: Digest) -> bytes | None:
        row = await self._one(self._contents, sql("blob"), (digest,))
        if row is None:
            return None
        size, data = row
        if size <= INLINE_BYTES:
            return self._blobs.read(digest, size, data)
        return await to_thread.run_sync(self._blobs.read, digest, size, data)

    async def has_blob(self, digest: Digest) -> bool:
        return await self._one(self._points, sql("has_blob"), (digest,)) is not None

    async def versions(self, path: WorkspacePath, *, limit: int, before: int | None = None) -> list[VersionRow]:
        values = (path, _END if before is None else before, limit)
        return [version_of(row) for row in await self._all(self._points, sql("versions"), values)]

    async def version_at(self, path: WorkspacePath, at: int) -> VersionRow | None:
        row = await self._one(self._points, sql("version_at"), (path, at))
        return version_of(row) if row else None

    async def version_with(self, path: WorkspacePath, digest: Digest) -> VersionRow | None:
        row = await self._one(self._points, sql("version_with"), (path, digest))
        return version_of(row) if row else None

    async def verify(self) -> VerifyReport:
        return await to_thread.run_sync(verify, self._path, self._blobs, Archive(self._archive.folder))

    def _holding(self, seq: int) -> Segment | None:
        """The archived segment that an event is in."""
        at = bisect_left(self._segments, seq, key=lambda segment: segment.last)
        return self._segments[at] if at < len(self._segments) else None

    # --- queries ------------------------------------------------------------------------

    async def _select(self, wanted: EventFilter, *, after: int, limit: int, newest: bool) -> list[Any]:
        until = self._head if wanted.until is None else min(wanted.until, self._head)
        statement, values = select(wanted, after=after, until=until, limit=limit, newest=newest)
        return await self._all(self._events, statement, values)

    async def _one(self, connection: aiosqlite.Connection, statement: str, values: tuple[Any, ...]) -> Any:
        rows = await self._all(connection, statement, values)
        return rows[0] if rows else None

    async def _all(self, connection: aiosqlite.Connection, statement: str, values: tuple[Any, ...]) -> list[Any]:
        with naming_trouble(self._path):
            return list(await connection.execute_fetchall(statement, values))


def select(wanted: EventFilter, *, after: int, until: int, limit: int, newest: bool) -> tuple[str, tuple[Any, ...]]:
    """A query for the events that fit.

    One index leads, in the journal's order, so that `limit` ends the work: the stream's, else
    the session's, the agent's, the tag's. Several tags are as many short walks, merged.
    """
    walks = wanted.tags if _leading(wanted) is None and len(wanted.tags) > 1 else (None,)
    direction = "DESC" if newest else "ASC"
    if walks == (None,):
        where, values = _where(wanted, wanted.tags, after, until)
        text = f"SELECT {EVENT_COLUMNS} FROM events WHERE {where} ORDER BY seq {direction} LIMIT ?"
        return text, (*values, limit)
    parts, parameters = list[str](), list[Any]()
    for tag in dict.fromkeys(wanted.tags):
        where, values = _where(wanted, (tag,), after, until)
        parts.append(f"SELECT * FROM (SELECT seq FROM events WHERE {where} ORDER BY seq {direction} LIMIT ?)")
        parameters += (*values, limit)
    where = f"seq IN ({' UNION ALL '.join(parts)})"
    text = f"SELECT {EVENT_COLUMNS} FROM events WHERE {where} ORDER BY seq {direction} LIMIT ?"
    return text, (*parameters, limit)


def _leading(wanted: EventFilter) -> str | None:
    named = (("stream", wanted.stream), ("session", wanted.session), ("agent", wanted.agent))
    return next((column for column, value in named if value is not None), None)


def _where(wanted: EventFilter, tags: tuple[str, ...], after: int, until: int) -> tuple[str, tuple[Any, ...]]:
    """The conditions; a `+` keeps SQLite from letting that column's index lead."""
    leading = _leading(wanted)
    clauses, values = ["seq > ?", "seq <= ?"], list[Any]((after, until))
    for column, value in (("stream", wanted.stream), ("session", wanted.session), ("agent", wanted.agent)):
        if value is not None:
            clauses.append(f"{'' if column == leading else '+'}{column} = ?")
            values.append(value)
    if len(tags) == 1:
        clauses.append(f"{'' if leading is None else '+'}tag = ?")
    elif tags:
        clauses.append(f"+tag IN ({', '.join('?' * len(tags))})")
    return " AND ".join(clauses), (*values, *tags)
