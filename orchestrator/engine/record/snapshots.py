"""Keeps the state beside the journal now and then, so that a start has a short tail to fold."""

from __future__ import annotations

import hashlib

import anyio
from anyio import to_thread

from orchestrator.core.errors import OrchestratorError
from orchestrator.core.events.base import Recorded
from orchestrator.core.ids import Seq
from orchestrator.core.projections.snapshots import Frozen, encode, freeze
from orchestrator.engine.services import Services
from orchestrator.logs import logger
from orchestrator.ports.journal import Snapshot

EVERY = 10_000
"""Events between two snapshots; folding as many takes a start about 0.1 s."""


class Snapshotter:
    """One snapshot every so many events, and one at the end.

    On the loop only references are copied; encoding and packing run in a worker thread, part by
    part, and the row is written between the callers' transactions.
    """

    def __init__(self, services: Services, *, every: int = EVERY) -> None:
        self._s, self._every = services, every
        self._last = Seq(0)
        self._one_at_a_time = anyio.Lock()
        self._due = anyio.Event()
        self._log = logger("engine")

    async def begin(self) -> None:
        """Learn where the last one is, and count from there."""
        try:
            known = await self._s.journal.snapshots()
        except OrchestratorError:
            known = []  # the start said so already
        version = self._s.state.version
        self._last = next(
            (item.seq for item in known if item.version == version and item.seq <= self._s.state.head),
            Seq(0),
        )
        self._s.journal.subscribe(self._count)
        self._look(self._s.state.head)

    def _count(self, recorded: Recorded) -> None:
        self._look(recorded.seq)

    def _look(self, head: Seq) -> None:
        if head - self._last >= self._every:
            self._due.set()

    async def run(self) -> None:
        """For as long as the daemon serves."""
        while True:
            await self._due.wait()
            self._due = anyio.Event()
            await self.keep()
            self._look(self._s.state.head)

    async def keep(self) -> None:
        """Keep the state as it is now, unless that is kept. A failure is logged: the next start takes longer."""
        async with self._one_at_a_time:
            frozen = freeze(self._s.state)
            if frozen.head.seq <= self._last:
                return
            self._last = frozen.head.seq
            self._s.step("snapshot_frozen")
            try:
                snapshot, data = await to_thread.run_sync(encoded, frozen)
                await self._s.journal.keep_snapshot(snapshot, data)
            except OrchestratorError as error:
                self._log.warning("a snapshot could not be kept", seq=frozen.head.seq, error=error.message)


def encoded(frozen: Frozen) -> tuple[Snapshot, bytes]:
    data, head = encode(frozen), frozen.head
    digest = hashlib.sha256(data).digest()
    return Snapshot(head.seq, bytes.fromhex(head.hash), digest, head.version), data
