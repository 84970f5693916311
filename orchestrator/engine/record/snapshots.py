"""Snapshots: the state kept beside the journal now and then, and restored at a start with the events since."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import aclosing

import anyio
from anyio import to_thread

from orchestrator.core.errors import JournalCorrupt, OrchestratorError
from orchestrator.core.ids import Seq, show
from orchestrator.core.projections.state import FrozenState, State, decode, encode, freeze
from orchestrator.engine.services import Growth
from orchestrator.logs import logger
from orchestrator.ports.journal import Journal, Snapshot
from orchestrator.ports.machine import Step

EVERY = 10_000
"""Events between two snapshots; folding as many takes a start about 0.1 s."""


Progress = Callable[[int, int], None]
"""How far the events are read, and up to where."""


class Snapshotter:
    """One snapshot every so many events, and one at the end.

    On the loop only references are copied; encoding and packing run in a worker thread, part by
    part, and the row is written between the callers' transactions.
    """

    def __init__(self, journal: Journal, state: State, step: Step, *, every: int = EVERY) -> None:
        self._journal, self._state, self._step, self._every = journal, state, step, every
        self._last = Seq(0)
        self._one_at_a_time, self._growth = anyio.Lock(), Growth(journal)
        self._log = logger("engine")

    async def begin(self) -> None:
        """Learn where the last one is, and count from there."""
        try:
            known = await self._journal.snapshots()
        except OrchestratorError:
            known = []  # the start logged why
        state = self._state
        usable = (item.seq for item in known if item.version == state.version and item.seq <= state.head)
        self._last = next(usable, Seq(0))

    async def run(self) -> None:
        """For as long as the daemon serves."""
        while True:
            await self._growth.reach(self._last + self._every)
            await self.keep()

    async def keep(self) -> None:
        """Keep the state as it is now, unless that is kept. A failure is logged: the next start takes longer."""
        async with self._one_at_a_time:
            frozen = freeze(self._state)
            if frozen.head.seq <= self._last:
                return
            self._last = frozen.head.seq
            self._step("snapshot_frozen")
            try:
                snapshot, data = await to_thread.run_sync(encoded, frozen)
                await self._journal.keep_snapshot(snapshot, data)
            except OrchestratorError as error:
                self._log.warning("a snapshot could not be kept", seq=frozen.head.seq, error=error.message)


def encoded(frozen: FrozenState) -> tuple[Snapshot, bytes]:
    data, head = encode(frozen), frozen.head
    digest = hashlib.sha256(data).digest()
    return Snapshot(head.seq, bytes.fromhex(head.hash), digest, head.version), data


async def restored(
    journal: Journal, doubts: list[str] | None = None, progress: Progress = lambda at, head: None
) -> State:
    """The state at the journal's head. Raises JournalCorrupt, JournalTooNew for an event that can't be folded.

    A snapshot that is damaged, altered, of another history or of other projections is passed over: an
    older one does, or the first event. `doubts` gets a line for each that a person should know of.
    """
    state = await _snapshot(journal, doubts if doubts is not None else [])
    await fold(journal, state, progress=progress)
    return state


async def fold(
    journal: Journal, state: State, *, until: int | None = None, progress: Progress = lambda at, head: None
) -> None:
    """Fold the events that come after the state's head. Raises JournalCorrupt, JournalTooNew."""
    async with aclosing(journal.replay(after=state.head, until=until)) as pieces:
        async for piece in pieces:
            progress(state.head, journal.head)
            try:
                await to_thread.run_sync(state.apply_all, piece)
            except ValueError as error:
                raise JournalCorrupt(
                    f"the journal has a gap: {error}", hint="`orchestrator journal verify` says more; restore a backup."
                ) from error


async def _snapshot(journal: Journal, doubts: list[str]) -> State:
    version, log = State().version, logger("engine")
    try:
        kept = [item for item in await journal.snapshots() if item.seq <= journal.head]
    except JournalCorrupt as error:
        log.warning("the snapshots can't be read; folding from the first event", error=error.message)
        kept = []
    for snapshot in kept:
        if snapshot.version != version:
            log.info("a snapshot of other projections is passed over", seq=snapshot.seq, version=snapshot.version)
            continue
        try:
            state = await to_thread.run_sync(decode, await journal.snapshot(snapshot.seq))
            if (state.head, state.tip) != (snapshot.seq, snapshot.hash):
                raise ValueError(f"it says that it is of {show(state.head)}")
            last = await journal.event(snapshot.seq)
            if last is None or last.hash != snapshot.hash:
                raise ValueError("it is of another history than the journal's")
        except (JournalCorrupt, ValueError) as error:
            log.warning("a snapshot is passed over", seq=snapshot.seq, error=str(error))
            doubts.append(f"a snapshot was passed over at the start, older events were read instead: {error}")
        else:
            return state
    return State()
