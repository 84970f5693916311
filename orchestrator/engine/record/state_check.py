"""`journal rebuild --check`: is the state that decisions read what the events say, from wherever one begins."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import aclosing

from anyio import to_thread

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.errors import JournalCorrupt
from orchestrator.core.events.base import RecordedLike
from orchestrator.core.ids import Seq, show
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
        try:
            known = [item for item in await self._s.journal.snapshots() if item.seq <= live.head.seq]
            same = [item for item in known if item.version == live.head.version]
            difference = (
                await self._from_the_first(live, {item.seq: item for item in same})
                or await self._from_snapshots(live, [item for item in same if item.kept])
                or await self._s.journal.table_difference()
            )
        except JournalCorrupt as error:
            difference, same = error.message, []
        return r.RebuildAnswer(
            ok=difference is None,
            events=live.head.seq,
            projections=(*(item.name for item in self._s.state.projections), "file_versions"),
            snapshots=len(same),
            first_difference=difference,
        )

    async def _from_the_first(self, live: Frozen, known: Mapping[Seq, Snapshot]) -> str | None:
        """A rebuild from event 1 against the digests on the way, then against what is in memory."""
        rebuilt = State()
        async with aclosing(self._s.journal.replay(until=live.head.seq)) as pieces:
            async for piece in pieces:
                wrong = await to_thread.run_sync(_folded, rebuilt, piece, known)
                if wrong is not None:
                    return await self._at(wrong, rebuilt)
        return await self._difference(live, rebuilt, "")

    async def _from_snapshots(self, live: Frozen, kept: list[Snapshot]) -> str | None:
        """Each snapshot and its tail against what is in memory."""
        for snapshot in kept:
            where = f"/snapshots/{show(snapshot.seq)}"
            try:
                state = await thawed(self._s.journal, snapshot)
            except (JournalCorrupt, ValueError) as error:
                return f"{where}: {error}"
            async with aclosing(self._s.journal.replay(after=snapshot.seq, until=live.head.seq)) as pieces:
                async for piece in pieces:
                    await to_thread.run_sync(_folded, state, piece, {})
            found = await self._difference(live, state, where)
            if found is not None:
                return found
        return None

    async def _at(self, snapshot: Snapshot, rebuilt: State) -> str:
        """What is different where a digest on the way is; a digest alone can't say."""
        where = f"/snapshots/{show(snapshot.seq)}"
        if snapshot.kept:
            try:
                state = await thawed(self._s.journal, snapshot)
            except (JournalCorrupt, ValueError) as error:
                return f"{where}: {error}"
            found = await to_thread.run_sync(_first_difference, state, rebuilt, where)
            if found is not None:
                return found
        return f"{where}: its digest is not that of a rebuild"

    async def _difference(self, live: Frozen, rebuilt: State, where: str) -> str | None:
        """The first place where memory and a rebuild differ; first memory's value, then the rebuild's."""
        mine, theirs = await to_thread.run_sync(encode, live), await to_thread.run_sync(encode, freeze(rebuilt))
        if mine == theirs:
            return None
        thawing = await to_thread.run_sync(decode, mine)
        found = await to_thread.run_sync(_first_difference, thawing.state(), rebuilt, where)
        return found or f"{where or '/'}: equal entries, in another order or of another event"


def _folded(state: State, piece: Sequence[RecordedLike], known: Mapping[Seq, Snapshot]) -> Snapshot | None:
    """Fold a piece; the first snapshot whose digest is not the state's there. Raises JournalCorrupt on a gap."""
    try:
        for recorded in piece:
            state.apply(recorded)
            snapshot = known.get(recorded.seq)
            if snapshot is not None and hashlib.sha256(encode(freeze(state))).digest() != snapshot.digest:
                return snapshot
    except ValueError as error:
        raise JournalCorrupt(f"the journal has a gap: {error}") from error
    return None


def _first_difference(left: State, right: State, where: str) -> str | None:
    return first_difference(left.plain(), right.plain(), where)
