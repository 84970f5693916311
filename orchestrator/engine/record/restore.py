"""The state at a start: the newest snapshot that can be trusted, and the events since."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing

from anyio import to_thread

from orchestrator.core.errors import JournalCorrupt
from orchestrator.core.ids import show
from orchestrator.core.projections.snapshots import decode
from orchestrator.core.projections.state import State
from orchestrator.logs import logger
from orchestrator.ports.journal import Journal, Snapshot

Told = Callable[[int, int], None]
"""How far the events are read, and up to where."""


async def restored(journal: Journal, doubts: list[str] | None = None, told: Told = lambda at, head: None) -> State:
    """The state at the journal's head. Raises JournalCorrupt, JournalTooNew for an event that can't be folded.

    A snapshot that is damaged, altered, of another history or of other projections is passed over: an
    older one does, or the first event. `doubts` gets a line for each that somebody should know of.
    """
    state = await _snapshot(journal, doubts if doubts is not None else [])
    await fold(journal, state, told)
    return state


async def fold(journal: Journal, state: State, told: Told = lambda at, head: None) -> None:
    """Fold what comes after the state's head. Raises JournalCorrupt on a gap, JournalTooNew."""
    async with aclosing(journal.replay(after=state.head)) as pieces:
        async for piece in pieces:
            told(state.head, journal.head)
            try:
                state.apply_all(piece)
            except ValueError as error:
                raise JournalCorrupt(
                    f"the journal has a gap: {error}", hint="`orchestrator journal verify` says more; restore a backup."
                ) from error


async def thawed(journal: Journal, snapshot: Snapshot) -> State:
    """The state that a snapshot holds. Raises JournalCorrupt, ValueError where it can't be trusted."""
    data = await journal.snapshot(snapshot.seq)
    thawing = await to_thread.run_sync(decode, data)
    if (thawing.head.seq, thawing.head.hash) != (snapshot.seq, snapshot.hash.hex()):
        raise ValueError(f"it says that it is of {show(thawing.head.seq)}")
    last = await journal.event(snapshot.seq)
    if last is None or last.hash != snapshot.hash:
        raise ValueError("it is of another history than the journal's")
    return thawing.state()


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
            return await thawed(journal, snapshot)
        except (JournalCorrupt, ValueError) as error:
            log.warning("a snapshot is passed over", seq=snapshot.seq, error=str(error))
            doubts.append(f"a snapshot was passed over at the start, older events were read instead: {error}")
    return State()
