"""What a crash left behind: intents without an outcome, and temporary files. Idempotent; judged by hash alone."""

from __future__ import annotations

from functools import partial

import msgspec
from anyio import to_thread

from orchestrator.core.change import PathChange
from orchestrator.core.content import digest_of
from orchestrator.core.decisions.recovery import RollForward, SwapBack, Undo, Verdict, judge
from orchestrator.core.errors import FileBusy, FileNotFound, NotADirectory, PathError
from orchestrator.core.events.base import Event, Origin, Recorded
from orchestrator.core.events.files import (
    ChangeAborted,
    ChangeApplied,
    ChangeDiverged,
    ChangeIntended,
    DivergedPath,
    OrphanContentKept,
)
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.paths import ancestors
from orchestrator.engine.changes.effects import disk_change, landed, touching
from orchestrator.engine.changes.write_batch import RollbackIncomplete, WriteBatch
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.services import MAX_FILE_BYTES, Services
from orchestrator.ports.journal import NewEvent, Unit
from orchestrator.ports.workspace import Displaced, FileBytes, FileStat, TempFile

UNREADABLE = Digest("unreadable")
"""Equal to no content's hash: something is there, but no regular file that can be read."""


class Stands(msgspec.Struct, frozen=True):
    """What a name holds: its content, and the stat that held while it was read."""

    digest: Digest | None
    stat: FileStat | None = None
    data: bytes | None = None


ABSENT = Stands(None)


class Found(msgspec.Struct, frozen=True):
    """One path of an open intent, as the crash left it."""

    item: PathChange
    temp: TempFile | None
    stands: Stands
    verdict: Verdict


class Recovery:
    """Runs once, before the daemon listens."""

    def __init__(self, services: Services, observer: Observer) -> None:
        self._s, self._observer = services, observer
        self.closed = 0

    async def run(self) -> None:
        """Close every open intent, then take away every temporary file, keeping what no blob holds."""
        temps = {temp.name: temp for temp in await to_thread.run_sync(self._s.workspace.temps)}
        for intent in self._s.state.pending.open_intents():
            recorded = await self._s.journal.event(intent.seq)
            if recorded is not None and isinstance(recorded.event, ChangeIntended):
                await self._close(recorded, recorded.event, temps)
                self.closed += 1
        for temp in temps.values():
            await self._sweep(temp, None)

    async def _close(self, recorded: Recorded, intent: ChangeIntended, temps: dict[str, TempFile]) -> None:
        found = [await self._find(item, temps) for item in touching(intent.paths)]
        if len(found) > 1 and any(not isinstance(item.verdict, Undo) for item in found):
            await self._complete(recorded, intent, found)
            return
        if len(found) > 1:
            for item in found:
                await self._sweep(item.temp, recorded.seq)
            await self._remove_made(intent)
            await self._outcome(recorded, ChangeAborted(change=recorded.seq, cause="crash"))
            return
        await self._close_one(recorded, intent, found[0])

    async def _remove_made(self, intent: ChangeIntended) -> None:
        """The directories that were made for a change that did not happen, where nothing came into them."""
        for parent in reversed(intent.directories.made):
            await to_thread.run_sync(self._s.workspace.remove_empty, parent)

    async def _remove_emptied(self, intent: ChangeIntended) -> None:
        """The directories that a change was to leave empty, where nothing is left in them."""
        for directory in intent.directories.emptied:
            await to_thread.run_sync(self._s.workspace.remove_empty, directory)
        for directory in intent.directories.unmade:
            await to_thread.run_sync(partial(self._s.workspace.remove_empty, directory, below=False))

    async def _find(self, item: PathChange, temps: dict[str, TempFile]) -> Found:
        temp = temps.pop(item.temp, None) if item.temp else None
        stands = await self._stands(item.path)
        return Found(item, temp, stands, await self._judged(item, stands, temp))

    async def _close_one(self, recorded: Recorded, intent: ChangeIntended, found: Found) -> None:
        main, temp, stands = found.item, found.temp, found.stands
        match found.verdict:
            case SwapBack(cause=cause) if temp is not None:
                await to_thread.run_sync(partial(self._s.workspace.exchange_back, temp, main.path))
                await self._outcome(recorded, ChangeAborted(change=recorded.seq, cause=cause))
                await self._sweep(temp, recorded.seq)
                await self._look(main.path)
            case RollForward():
                await self._settle(main)
                await self._sweep(temp, recorded.seq)
                await self._remove_emptied(intent)
                stats = {main.path: stands.stat}
                await self._outcome(recorded, self._applied(recorded.seq, intent, intent.paths, stats))
            case Undo(cause=cause):
                await self._sweep(temp, recorded.seq)
                await self._remove_made(intent)
                await self._outcome(recorded, ChangeAborted(change=recorded.seq, cause=cause))
            case _:
                diverged, kept = await self._diverged(found)
                await self._outcome(recorded, ChangeDiverged(change=recorded.seq, paths=(diverged,)), blobs=kept)
                await self._sweep(temp, recorded.seq)
                for item in intent.paths:
                    await self._look(item.path)

    async def _complete(self, recorded: Recorded, intent: ChangeIntended, found: list[Found]) -> None:
        """Some of several files have changed: do the rest, save where somebody else's content stands."""
        stats: dict[WorkspacePath, FileStat | None] = {}
        diverged: list[DivergedPath] = []
        kept: list[tuple[Digest, bytes]] = []
        for item in found:
            stands = item.stands
            match item.verdict:
                case RollForward():
                    await self._settle(item.item)
                    await self._sweep(item.temp, recorded.seq)
                    stats[item.item.path] = stands.stat
                    continue
                case Undo():
                    await self._sweep(item.temp, recorded.seq)
                    done = await self._land(item.item, intent.directories.made)
                    if done is not None:
                        stats[item.item.path] = done.stat
                        continue
                    stands = await self._stands(item.item.path)
                case SwapBack() if item.temp is not None:
                    await to_thread.run_sync(partial(self._s.workspace.exchange_back, item.temp, item.item.path))
                    stands = await self._stands(item.item.path)
                case _:
                    pass
            apart, bytes_met = await self._diverged(msgspec.structs.replace(item, stands=stands))
            diverged.append(apart)
            kept += bytes_met
        await self._remove_emptied(intent)
        gone = {item.moved_from: item.path for item in intent.paths if item.renamed}
        landed_paths = tuple(item for item in intent.paths if gone.get(item.path, item.path) in stats)
        events: list[Event] = [ChangeDiverged(change=recorded.seq, paths=tuple(diverged))] if diverged else []
        if landed_paths:
            events.append(self._applied(recorded.seq, intent, landed_paths, stats))
        await self._outcome(recorded, *events, blobs=tuple(kept))
        for item in found:
            await self._sweep(item.temp, recorded.seq)
        for apart in diverged:
            await self._look(apart.path)

    async def _land(self, item: PathChange, parents: tuple[WorkspacePath, ...]) -> Stands | None:
        """Do one path's part of a change again; None where it does not fit any more."""
        data = None
        if item.after is not None and not item.renamed:
            data = await self._s.journal.blob(item.after)
            if data is None:
                return None
        change = disk_change(
            item, data, parents=tuple(parent for parent in parents if item.path.startswith(f"{parent}/"))
        )
        landings = WriteBatch(self._s.workspace, (change,))
        try:
            await to_thread.run_sync(landings.stage)
            stats = await to_thread.run_sync(landings.land)
        except (Displaced, RollbackIncomplete, PathError, FileBusy):
            await to_thread.run_sync(landings.abandon)
            return None
        await to_thread.run_sync(landings.finish)
        return Stands(item.after, stats[item.path])

    async def _settle(self, item: PathChange) -> None:
        """What a change did to the names of a path is on the platter."""
        await self._sync_above(item.path)
        if item.renamed and item.moved_from is not None:
            await self._sync_above(item.moved_from)

    async def _sync_above(self, path: WorkspacePath) -> None:
        """The directory that holds it; where that is gone too, the one that it went from."""
        for name in (path, *reversed(ancestors(path))):
            try:
                await to_thread.run_sync(self._s.workspace.sync_directory, name)
            except (FileNotFound, NotADirectory):
                continue
            return

    async def _judged(self, main: PathChange, stands: Stands, temp: TempFile | None) -> Verdict:
        if main.directory:
            there = stands.stat is not None and stands.stat.kind == "directory"
            return RollForward() if there else Undo("crash")
        held: Digest | None = None
        busy = False
        if temp is not None:
            busy = await to_thread.run_sync(partial(self._s.workspace.in_use, temp))
            held = (await self._stands(temp.path)).digest
        source = (await self._stands(main.moved_from)).digest if main.renamed and main.moved_from else None
        return judge(main, found=stands.digest, temp=held, source=source, busy=busy)

    def _applied(
        self,
        change: Seq,
        intent: ChangeIntended,
        items: tuple[PathChange, ...],
        stats: dict[WorkspacePath, FileStat | None],
    ) -> ChangeApplied:
        registry = self._s.state.registry
        paths = tuple(landed(item, stats.get(item.path), registry.get(item.path)) for item in items)
        return intent.outcome(change, paths, recovered=True)

    async def _diverged(self, found: Found) -> tuple[DivergedPath, tuple[tuple[Digest, bytes], ...]]:
        """Neither before nor after stands there: it is left alone, and all bytes are kept."""
        in_temp = await self._stands(found.temp.path) if found.temp is not None else ABSENT
        here = found.stands
        kept = tuple((digest_of(item.data), item.data) for item in (here, in_temp) if item.data is not None)
        standing = here.digest if here.data is not None else None
        left = in_temp.digest if in_temp.data is not None else None
        return DivergedPath(found.item.path, standing, left), kept

    async def _look(self, path: WorkspacePath) -> None:
        """Let the journal say what stands there. What can't be read is looked at again when it is asked for."""
        try:
            await self._observer.refresh(path, content=True, changing=True)
        except PathError:
            return

    async def _outcome(self, recorded: Recorded, *events: Event, blobs: tuple[tuple[Digest, bytes], ...] = ()) -> None:
        origin = Origin(
            session=recorded.origin.session,
            agent=recorded.origin.agent,
            owner=recorded.origin.owner,
            request_id=recorded.origin.request_id,
            request_digest=recorded.origin.request_digest,
            cause=recorded.seq,
        )
        expected = self._s.journal.stream_version(recorded.stream)
        new = tuple(NewEvent(recorded.stream, event, expected + number) for number, event in enumerate(events))
        await self._s.journal.append(Unit(new, origin, blobs, closes=True))

    async def _sweep(self, temp: TempFile | None, change: Seq | None) -> None:
        """Remove a leftover; bytes that no blob holds are kept first, unless they are our own torn write.

        One that can't be read stays where it is: a leftover must not keep the daemon from starting.
        """
        if temp is None:
            return
        try:
            held = await to_thread.run_sync(partial(self._s.workspace.read_temp, temp))
        except PathError:
            return
        if held is not None and held.data and not await self._known(change, held):
            event = OrphanContentKept(path=temp.path, digest=held.digest, size=len(held.data), change=change)
            await self._s.journal.append(
                Unit((NewEvent(f"stray:{temp.path}", event),), Origin(cause=change), ((held.digest, held.data),))
            )
        await to_thread.run_sync(partial(self._s.workspace.unlink_temp, temp))

    async def _known(self, change: Seq | None, held: FileBytes) -> bool:
        return await self._s.journal.has_blob(held.digest) or await self._torn(change, held.data)

    async def _torn(self, change: Seq | None, data: bytes) -> bool:
        """Whether these bytes are the beginning of what the change was about to write."""
        if change is None:
            return False
        recorded = await self._s.journal.event(change)
        if recorded is None or not isinstance(recorded.event, ChangeIntended):
            return False
        for item in recorded.event.paths:
            if item.after is not None:
                after = await self._s.journal.blob(item.after)
                if after is not None and after.startswith(data):
                    return True
        return False

    async def _stands(self, path: WorkspacePath) -> Stands:
        try:
            read = await to_thread.run_sync(partial(self._s.workspace.read, path, most=MAX_FILE_BYTES))
        except FileNotFound:
            return ABSENT
        except PathError:
            return Stands(UNREADABLE, self._s.workspace.stat(path))
        return Stands(read.digest, read.stat, read.data)
