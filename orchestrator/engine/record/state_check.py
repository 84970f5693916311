"""`journal rebuild --check`: is the state that decisions read what the events say, from wherever one begins."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

from anyio import to_thread

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.errors import JournalCorrupt
from orchestrator.core.events.base import RecordedLike
from orchestrator.core.ids import show
from orchestrator.core.projections.snapshots import Frozen, decode, encode, freeze
from orchestrator.core.projections.state import State, first_difference
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.baseline import Baseline
from orchestrator.engine.record.restore import thawed
from orchestrator.engine.services import Services
from orchestrator.ports.journal import Snapshot


class Rebuilder:
    """Compares; repairs nothing."""

    def __init__(self, services: Services, baseline: Baseline) -> None:
        self._s, self._baseline = services, baseline

    async def journal_rebuild(self, caller: Caller, call: Call, params: p.JournalRebuild) -> r.RebuildAnswer:
        await self._baseline.done.wait()
        live = freeze(self._s.state)
        compared: list[Snapshot] = []
        try:
            known = [item for item in await self._s.journal.snapshots() if item.seq <= live.head.seq]
            compared = [item for item in known if item.version == live.head.version]
            difference = await self._difference(live, State(), "")
            for snapshot in compared:
                difference = difference or await self._from_snapshot(live, snapshot)
            difference = difference or await self._s.journal.table_difference()
        except JournalCorrupt as error:
            difference, compared = error.message, []
        return r.RebuildAnswer(
            ok=difference is None,
            events=live.head.seq,
            projections=(*(item.name for item in self._s.state.projections), "file_versions"),
            snapshots=len(compared),
            first_difference=difference,
        )

    async def _from_snapshot(self, live: Frozen, snapshot: Snapshot) -> str | None:
        where = f"/snapshots/{show(snapshot.seq)}"
        try:
            state = await thawed(self._s.journal, snapshot)
        except (JournalCorrupt, ValueError) as error:
            return f"{where}: {error}"
        return await self._difference(live, state, where)

    async def _difference(self, live: Frozen, state: State, where: str) -> str | None:
        """The first place where memory and a state with the events since differ; memory's value, then the other's."""
        async with aclosing(self._s.journal.replay(after=state.head, until=live.head.seq)) as pieces:
            async for piece in pieces:
                await to_thread.run_sync(_fold, state, piece)
        mine, theirs = await to_thread.run_sync(encode, live), await to_thread.run_sync(encode, freeze(state))
        if mine == theirs:
            return None
        held = (await to_thread.run_sync(decode, mine)).state()
        found = await to_thread.run_sync(lambda: first_difference(held.plain(), state.plain(), where))
        return found or f"{where or '/'}: equal entries, in another order or of another event"


def _fold(state: State, piece: Sequence[RecordedLike]) -> None:
    try:
        state.apply_all(piece)
    except ValueError as error:
        raise JournalCorrupt(f"the journal has a gap: {error}") from error
