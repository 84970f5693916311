"""Snapshots in their table, and the check of the whole journal beside the service."""

from __future__ import annotations

import asyncio
import sqlite3
from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from functools import partial

from anyio import CancelScope, to_thread

from orchestrator.core.errors import JournalCorrupt
from orchestrator.core.ids import Seq
from orchestrator.journal.background_verification import IncrementalVerifier
from orchestrator.journal.blobs import LEVEL, zstd
from orchestrator.journal.queries import Reading
from orchestrator.journal.schema import open_reader, sql
from orchestrator.journal.signing_key import KeyFile
from orchestrator.journal.snapshot_seal import SEAL, seal_problem, sealed_bytes, unpacked
from orchestrator.ports.journal import Checked, Snapshot

KEPT = 3
"""Snapshots with their bytes; should the newest be damaged, an older one and a longer tail do."""


class Snapshots(Reading):
    """The part of `ports.Journal` that keeps snapshots and marks beside the events."""

    @abstractmethod
    async def _on_writer(self, name: str, work: Callable[[sqlite3.Connection], None]) -> None:
        """Do this in a transaction of its own, on the connection that writes."""

    async def keep_snapshot(self, snapshot: Snapshot, data: bytes) -> None:
        packed = await to_thread.run_sync(zstd.compress, data, LEVEL)
        seal = await to_thread.run_sync(KeyFile(self._state_dir).seal, sealed_bytes(self._id, snapshot))

        def keep(connection: sqlite3.Connection) -> None:
            values = (snapshot.seq, snapshot.hash, snapshot.digest, snapshot.version, packed)
            connection.execute(sql("add_snapshot"), values)
            connection.execute(sql("set_mark"), (f"{SEAL}{snapshot.seq}", seal.hex()))
            connection.execute(sql("thin_snapshots"), (KEPT,))
            connection.execute(sql("thin_seals"), (SEAL, SEAL))

        await self._on_writer("snapshot", keep)

    async def snapshots(self) -> list[Snapshot]:
        rows = await self._all(self._points, sql("snapshots"), ())
        return [Snapshot(Seq(row[0]), row[1], row[2], row[3], bool(row[4])) for row in rows]

    async def snapshot(self, seq: int) -> bytes:
        row = await self._one(self._contents, sql("snapshot_data"), (seq,))
        if row is None:
            raise JournalCorrupt(f"the snapshot at @{seq} is not there")
        snapshot = Snapshot(Seq(seq), row[0], row[1], row[2], kept=True)
        data = await to_thread.run_sync(unpacked, seq, row[1], row[3])
        seal = await self._one(self._contents, sql("mark"), (f"{SEAL}{seq}",))
        work = partial(seal_problem, KeyFile(self._state_dir), self._id, snapshot, seal[0] if seal else None)
        problem = await to_thread.run_sync(work)
        if problem is not None:
            raise JournalCorrupt(problem)
        return data

    async def checks(self) -> AsyncGenerator[Checked, None]:
        reader = await to_thread.run_sync(open_reader, self._path)
        try:
            vouching = IncrementalVerifier(reader, self._archive.folder, until=self._head)
            while await _step(vouching, reader):
                yield Checked(vouching.at, tuple(vouching.unread))
        finally:
            reader.close()
        yield Checked(vouching.at, tuple(vouching.unread))


async def _step(vouching: IncrementalVerifier, reader: sqlite3.Connection) -> bool:
    """One slice in a thread; whoever is cancelled does not wait for the pages of a large table."""
    slice_ = asyncio.get_running_loop().run_in_executor(None, vouching.step)
    try:
        return await asyncio.shield(slice_)
    except asyncio.CancelledError:
        reader.interrupt()
        with CancelScope(shield=True), suppress(JournalCorrupt):
            await slice_
        raise
