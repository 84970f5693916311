"""The read side: short queries on connections that can only read, each in one turn of its thread."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator
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
from orchestrator.journal.verify import table_difference, verify
from orchestrator.ports import EVERYTHING, EventFilter, RequestSeen, VerifyReport

INLINE_BYTES = 16 * 1024
"""Contents up to this are packed and unpacked on the event loop (0.1 ms); larger ones in a worker thread."""

PIECE = 2000
"""Events in one piece of a replay."""

_END = 2**62


class Reading:
    """The half of `ports.Journal` that only reads.

    One connection per purpose: events, single rows, contents. Nobody opens a transaction on
    them, so tasks may share them. Events after `head` are committed but not folded yet, and
    are not shown.
    """

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._path = state_dir / FILE_NAME
        self._blobs = Blobs(state_dir)
        self._reads = AsyncExitStack()
        self._head = 0

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
            rows = await self._select(wanted, after=after, limit=batch, newest=False)
            for row in rows:
                yield recorded_of(row)
            if len(rows) < batch:
                return
            after = rows[-1][0]

    async def replay(self, *, after: int = 0, until: int | None = None) -> AsyncGenerator[list[Recorded], None]:
        until = self._head if until is None else min(until, self._head)
        reader = await to_thread.run_sync(open_reader, self._path)
        try:
            while after < until:
                found = await to_thread.run_sync(self._piece, reader, after, until)
                if not found or found[0].seq != after + 1:  # they are elsewhere; or nowhere, as the fold will say
                    gap_ends = found[0].seq - 1 if found else until
                    yield [recorded async for recorded in self.events(EventFilter(after=after, until=gap_ends))]
                if not found:
                    return
                yield found
                after = found[-1].seq
        finally:
            reader.close()

    def _piece(self, reader: sqlite3.Connection, after: int, until: int) -> list[Recorded]:
        statement = f"SELECT {EVENT_COLUMNS} FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
        with naming_trouble(self._path):
            return [recorded_of(row) for row in reader.execute(statement, (after, until, PIECE))]

    async def newest(self, wanted: EventFilter = EVERYTHING, *, limit: int) -> list[Recorded]:
        return [recorded_of(row) for row in await self._select(wanted, after=wanted.after, limit=limit, newest=True)]

    async def event(self, seq: int) -> Recorded | None:
        if not 0 < seq <= self._head:
            return None
        row = await self._one(self._points, sql("event"), (seq,))
        return recorded_of(row) if row else None

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

    async def table_difference(self) -> str | None:
        return await to_thread.run_sync(table_difference, self._path)

    async def verify(self) -> VerifyReport:
        return await to_thread.run_sync(verify, self._path, self._blobs)

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
