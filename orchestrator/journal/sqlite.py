"""The journal on SQLite: one writer thread, readers that only read."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, Self

import aiosqlite
from anyio import to_thread

from orchestrator.core.events.base import Recorded
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.projections.history import VersionRow
from orchestrator.journal.blobs import BlobFiles, StoredBlob
from orchestrator.journal.rows import EVENT_COLUMNS, recorded_of, version_of
from orchestrator.journal.schema import open_writer, reader_uri, sql
from orchestrator.journal.verify import check_tail, verify
from orchestrator.journal.writer import Job, Outcome, Writer
from orchestrator.ports import EVERYTHING, Clock, Entropy, EventFilter, RequestSeen, Step, Unit, VerifyReport

FILE_NAME = "journal.db"
INLINE_BYTES = 16 * 1024
"""Contents up to this are compressed on the event loop; larger ones in a worker thread."""

KNOWN_BLOBS = 20_000
_END = 2**62


class SqliteJournal:
    """See `ports.Journal`."""

    def __init__(self, state_dir: str, writer: Writer, reader: aiosqlite.Connection, blobs: BlobFiles) -> None:
        self._state_dir, self._writer, self._reader, self._blobs = state_dir, writer, reader, blobs
        self._folds: list[Callable[[Recorded], None]] = []
        self._head = writer.head
        self._versions = dict(writer.streams)
        self._known: dict[Digest, None] = {}

    @classmethod
    async def open(cls, state_dir: str, *, clock: Clock, entropy: Entropy, step: Step = lambda name: None) -> Self:
        """Open or create the journal of a state directory.

        The chain's last events are checked, not all of them: `verify` does that. Raises
        JournalCorrupt, naming the place, and JournalTooNew.
        """
        path = os.path.join(state_dir, FILE_NAME)
        old_mask = os.umask(0o077)
        try:
            connection = await to_thread.run_sync(open_writer, path)
        finally:
            os.umask(old_mask)
        try:
            await to_thread.run_sync(check_tail, connection)
            reader = await aiosqlite.connect(reader_uri(path), uri=True, isolation_level=None)
        except BaseException:
            connection.close()
            raise
        await reader.execute("PRAGMA query_only = ON")
        writer = Writer(connection, clock=clock, entropy=entropy, step=step, loop=asyncio.get_running_loop())
        journal = cls(state_dir, writer, reader, BlobFiles(os.path.join(state_dir, "blobs")))
        writer.start(journal._deliver)
        return journal

    @property
    def head(self) -> Seq:
        return Seq(self._head)

    def stream_version(self, stream: str) -> int:
        return self._versions.get(stream, 0)

    def subscribe(self, fold: Callable[[Recorded], None]) -> None:
        self._folds.append(fold)

    async def append(self, unit: Unit) -> tuple[Recorded, ...]:
        blobs = await self._prepared(unit)
        done: asyncio.Future[tuple[Recorded, ...]] = asyncio.get_running_loop().create_future()
        self._writer.submit(Job(unit, blobs, done))
        return await asyncio.shield(done)

    async def _prepared(self, unit: Unit) -> tuple[StoredBlob, ...]:
        new = tuple((digest, data) for digest, data in unit.blobs if digest not in self._known)
        if not new:
            return ()
        if sum(len(data) for _, data in new) <= INLINE_BYTES:
            return self._blobs.prepare(new)
        return await to_thread.run_sync(partial(self._blobs.prepare, new))

    def _deliver(self, batch: list[tuple[Job, Outcome]]) -> None:
        """On the loop, after a commit: first the folds see every event, then the callers go on."""
        for job, outcome in batch:
            if isinstance(outcome, Exception):
                continue
            for recorded in outcome:
                self._head = recorded.seq
                self._versions[recorded.stream] = recorded.stream_version
                for fold in self._folds:
                    fold(recorded)
            for blob in job.blobs:
                self._known[blob.digest] = None
        while len(self._known) > KNOWN_BLOBS:
            del self._known[next(iter(self._known))]
        for job, outcome in batch:
            if job.done.cancelled():
                continue
            if isinstance(outcome, Exception):
                job.done.set_exception(outcome)
            else:
                job.done.set_result(outcome)

    # --- reading ----------------------------------------------------------------------

    async def request(self, agent: str, request_id: str) -> RequestSeen | None:
        row = await self._one(sql("request"), (agent, request_id))
        return RequestSeen(row[0], Seq(row[1])) if row else None

    async def events(self, wanted: EventFilter = EVERYTHING, *, batch: int = 1000) -> AsyncIterator[Recorded]:
        after = wanted.after
        while True:
            statement, values = _select(wanted, after=after, newest=False)
            rows = await self._all(f"{statement} LIMIT ?", (*values, batch))
            for row in rows:
                yield recorded_of(row)
            if len(rows) < batch:
                return
            after = rows[-1][0]

    async def newest(self, wanted: EventFilter = EVERYTHING, *, limit: int) -> list[Recorded]:
        statement, values = _select(wanted, after=wanted.after, newest=True)
        return [recorded_of(row) for row in await self._all(f"{statement} LIMIT ?", (*values, limit))]

    async def event(self, seq: int) -> Recorded | None:
        row = await self._one(f"SELECT {EVENT_COLUMNS} FROM events WHERE seq = ?", (seq,))
        return recorded_of(row) if row else None

    async def blob(self, digest: Digest) -> bytes | None:
        row = await self._one(sql("blob"), (digest,))
        if row is None:
            return None
        size, data = row
        if size <= INLINE_BYTES:
            return self._blobs.read(digest, size, data)
        return await to_thread.run_sync(self._blobs.read, digest, size, data)

    async def has_blob(self, digest: Digest) -> bool:
        return digest in self._known or await self._one(sql("has_blob"), (digest,)) is not None

    async def versions(self, path: WorkspacePath, *, limit: int, before: int | None = None) -> list[VersionRow]:
        rows = await self._all(sql("versions"), (path, _END if before is None else before, limit))
        return [version_of(row) for row in rows]

    async def version_at(self, path: WorkspacePath, at: int) -> VersionRow | None:
        row = await self._one(sql("version_at"), (path, at))
        return version_of(row) if row else None

    async def version_with(self, path: WorkspacePath, digest: Digest) -> VersionRow | None:
        row = await self._one(sql("version_with"), (path, digest))
        return version_of(row) if row else None

    async def verify(self) -> VerifyReport:
        return await to_thread.run_sync(verify, os.path.join(self._state_dir, FILE_NAME), self._blobs)

    async def close(self) -> None:
        await self._reader.close()
        await to_thread.run_sync(self._writer.close)

    async def _one(self, statement: str, values: tuple[Any, ...]) -> Any:
        rows = await self._all(statement, values)
        return rows[0] if rows else None

    async def _all(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        return list(await self._reader.execute_fetchall(statement, values))


def _select(wanted: EventFilter, *, after: int, newest: bool) -> tuple[str, tuple[Any, ...]]:
    """A query for the events that fit, without its limit."""
    clauses, parts = ["seq > ?"], list[Any]([after])
    for column, value in (("stream", wanted.stream), ("agent", wanted.agent), ("session", wanted.session)):
        if value is not None:
            clauses.append(f"{column} = ?")
            parts.append(value)
    if wanted.until is not None:
        clauses.append("seq <= ?")
        parts.append(wanted.until)
    if wanted.tags:
        clauses.append(f"tag IN ({', '.join('?' * len(wanted.tags))})")
        parts += wanted.tags
    order = "stream_version" if wanted.stream is not None else "seq"
    direction = "DESC" if newest else "ASC"
    where = " AND ".join(clauses)
    return f"SELECT {EVENT_COLUMNS} FROM events WHERE {where} ORDER BY {order} {direction}", tuple(parts)
