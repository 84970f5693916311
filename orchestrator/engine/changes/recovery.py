"""What a crash left behind: intents without an outcome, and temporary files. Idempotent; judged by hash alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial

import msgspec
from anyio import to_thread

from orchestrator.core.change import PathChange
from orchestrator.core.content import digest_of
from orchestrator.core.decisions.recovery_verdict import RollForward, SwapBack, Undo, Verdict, judge
from orchestrator.core.errors import FileBusy, FileNotFound, FileTooLarge, NotADirectory, PathError
from orchestrator.core.events.base import Event, Recorded
from orchestrator.core.events.files import (
    ChangeAborted,
    ChangeApplied,
    ChangeDiverged,
    ChangeIntended,
    DivergedPath,
)
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.paths import ancestors
from orchestrator.engine.changes.effects import orphans, written, written_from
from orchestrator.engine.changes.write_batch import (
    RollbackIncomplete,
    WriteBatch,
    disk_change,
    remove_emptied,
    touching,
)
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.services import Services
from orchestrator.ports.journal import AppendBatch, NewContent, NewContents, NewEvent, StagedContent
from orchestrator.ports.workspace import ChangedMeanwhile, FileStat

UNREADABLE = Digest("unreadable")
"""Equal to no content's hash: something is there, but no regular file that can be read."""


ANY_BYTES = 1 << 62


class OnDisk(msgspec.Struct, frozen=True):
    """What a name holds: its content, and the stat that was true while it was read."""

    digest: Digest | None
    stat: FileStat | None = None
    data: bytes | None = None
    large: bool = False  # and so not at hand


ABSENT = OnDisk(None)


class Found(msgspec.Struct, frozen=True):
    """One path of an open intent, as the crash left it."""

    item: PathChange
    temp: WorkspacePath | None
    on_disk: OnDisk
    verdict: Verdict


class Recovery:
    """Runs once, before the daemon listens."""

    def __init__(self, services: Services, observer: Observer) -> None:
        self._s, self._observer = services, observer
        self.closed = 0

    async def run(self) -> None:
        """Close every open intent, then take away every temporary file, keeping what no blob holds."""
        temps = set(await to_thread.run_sync(self._s.workspace.temps))
        for seq, _ in self._s.state.pending.open_intents():
            recorded = await self._s.journal.event(seq)
            if recorded is not None and isinstance(recorded.event, ChangeIntended):
                await self._close(recorded, recorded.event, temps)
                self.closed += 1
        for temp in sorted(temps):
            await self._sweep(temp, None)

    async def _close(self, recorded: Recorded, intent: ChangeIntended, temps: set[WorkspacePath]) -> None:
        found = [await self._find(item, temps) for item in touching(intent.paths)]
        undone = [item.verdict.cause for item in found if isinstance(item.verdict, Undo)]
        first = found[0]
        if len(undone) == len(found):
            for item in found:
                await self._sweep(item.temp, recorded.seq)
            for parent in reversed(intent.directories.made):
                await self._s.workspace.off_loop(partial(self._s.workspace.remove_empty, parent))
            await self._outcome(recorded, ChangeAborted(change=recorded.seq, cause=undone[0]))
        elif len(found) == 1 and isinstance(first.verdict, SwapBack) and first.temp is not None:
            await self._s.workspace.off_loop(partial(self._s.workspace.exchange_back, first.temp, first.item.path))
            await self._outcome(recorded, ChangeAborted(change=recorded.seq, cause=first.verdict.cause))
            await self._sweep(first.temp, recorded.seq)
            await self._look(first.item.path)
        else:
            await self._complete(recorded, intent, found)

    async def _find(self, item: PathChange, temps: set[WorkspacePath]) -> Found:
        above = item.path.rpartition("/")[0]
        named = WorkspacePath(f"{above}/{item.temp}" if above else item.temp or "")
        temp = named if named in temps else None
        temps.discard(named)
        on_disk = await self._read(item.path)
        return Found(item, temp, on_disk, await self._judged(item, on_disk, temp))

    async def _complete(self, recorded: Recorded, intent: ChangeIntended, found: list[Found]) -> None:
        """Some of the files have changed: do the rest, save where there is another program's content."""
        stats: dict[WorkspacePath, FileStat | None] = {}
        diverged: list[DivergedPath] = []
        kept: list[tuple[Digest, NewContent]] = []
        for item in found:
            on_disk = item.on_disk
            match item.verdict:
                case RollForward():
                    await self._sync_names(item.item)
                    await self._sweep(item.temp, recorded.seq)
                    stats[item.item.path] = on_disk.stat
                    continue
                case Undo():
                    await self._sweep(item.temp, recorded.seq)
                    done = await self._redo(item.item, intent.directories.made)
                    if done is not None:
                        stats[item.item.path] = done.stat
                        continue
                    on_disk = await self._read(item.item.path)
                case SwapBack() if item.temp is not None:
                    await self._s.workspace.off_loop(
                        partial(self._s.workspace.exchange_back, item.temp, item.item.path)
                    )
                    on_disk = await self._read(item.item.path)
                case _:
                    pass
            path, contents = await self._diverged(msgspec.structs.replace(item, on_disk=on_disk))
            diverged.append(path)
            kept += contents
        events: list[Event] = [ChangeDiverged(change=recorded.seq, paths=tuple(diverged))] if diverged else []
        if stats:
            await self._s.workspace.off_loop(partial(remove_emptied, self._s.workspace, intent.directories))
            events.append(self._applied(recorded.seq, intent, stats))
        await self._outcome(recorded, *events, blobs=tuple(kept))
        for item in found:
            await self._sweep(item.temp, recorded.seq)
        for met in intent.paths if diverged else ():
            await self._look(met.path)

    async def _redo(self, item: PathChange, parents: tuple[WorkspacePath, ...]) -> OnDisk | None:
        """Do one path's part of a change again; None where it does not fit any more."""
        data = None
        if item.after is not None and not item.renamed:
            data = await self._s.contents.find(item.after)
            if data is None:
                return None
        writes = written_from(self._s.journal, data) if data is not None else None
        change = disk_change(
            item, writes, parents=tuple(parent for parent in parents if item.path.startswith(f"{parent}/"))
        )
        batch = WriteBatch(self._s.workspace, (change,))
        try:
            await batch.stage()
            stats = await batch.commit()
        except (ChangedMeanwhile, RollbackIncomplete, PathError, FileBusy):
            await batch.abandon()
            return None
        else:
            await batch.finish()
        finally:
            await batch.release()
        return OnDisk(item.after, stats[item.path])

    async def _sync_names(self, item: PathChange) -> None:
        """Sync what a change did to the names of a path."""
        await self._sync_above(item.path)
        if item.renamed and item.moved_from is not None:
            await self._sync_above(item.moved_from)

    async def _sync_above(self, path: WorkspacePath) -> None:
        """The directory that holds it; where that is gone too, the nearest one above it."""
        for name in (path, *reversed(ancestors(path))):
            try:
                await self._s.workspace.off_loop(partial(self._s.workspace.sync_directory, name))
            except (FileNotFound, NotADirectory):
                continue
            return

    async def _judged(self, main: PathChange, on_disk: OnDisk, temp: WorkspacePath | None) -> Verdict:
        if main.directory:
            there = on_disk.stat is not None and on_disk.stat.kind == "directory"
            return RollForward() if there == (main.directory == "made") else Undo("crash")
        held: Digest | None = None
        busy = False
        if temp is not None:
            busy = await to_thread.run_sync(partial(self._s.workspace.in_use, temp))
            held = (await self._read(temp)).digest
        source = (await self._read(main.moved_from)).digest if main.renamed and main.moved_from else None
        return judge(main, found=on_disk.digest, temp=held, source=source, busy=busy)

    def _applied(
        self, change: Seq, intent: ChangeIntended, stats: dict[WorkspacePath, FileStat | None]
    ) -> ChangeApplied:
        """The outcome of the paths that have a stat, and of those that a rename took away."""
        target = {item.moved_from: item.path for item in intent.paths if item.renamed}
        done = [item for item in intent.paths if target.get(item.path, item.path) in stats]
        registry = self._s.state.registry
        paths = tuple(written(item, stats.get(item.path), registry.get(item.path)) for item in done)
        return intent.outcome(change, paths, recovered=True)

    async def _diverged(self, found: Found) -> tuple[DivergedPath, NewContents]:
        """Neither before nor after is there: it is left alone, and all bytes are kept."""
        in_temp = await self._read(found.temp) if found.temp is not None else ABSENT
        kept: list[tuple[Digest, NewContent]] = []
        digests: list[Digest | None] = []
        for path, item in ((found.item.path, found.on_disk), (found.temp, in_temp)):
            data = await self._staged(path) if item.large and path is not None else item.data
            digests.append(digest_of(data) if isinstance(data, bytes) else data.digest if data is not None else None)
            kept += [(digests[-1], data)] if data is not None and digests[-1] is not None else []
        return DivergedPath(found.item.path, *digests), tuple(kept)

    async def _staged(self, path: WorkspacePath) -> StagedContent | None:
        """A large content, packed for the journal; None if it can't be read, or another program keeps writing to it."""
        try:
            return await to_thread.run_sync(self._observer.staged, path)
        except PathError:
            return None

    async def _look(self, path: WorkspacePath) -> None:
        """Let the journal say what is there. What can't be read is looked at again when it is asked for."""
        try:
            await self._observer.refresh(path, content=True, changing=True)
        except PathError:
            return

    async def _outcome(self, recorded: Recorded, *events: Event, blobs: NewContents = ()) -> None:
        origin = msgspec.structs.replace(recorded.origin, cause=recorded.seq, call=None, client_call_id=None)
        expected = self._s.journal.stream_version(recorded.stream)
        new = tuple(NewEvent(recorded.stream, event, expected + number) for number, event in enumerate(events))
        await self._s.journal.append(AppendBatch(new, origin, blobs, closes=True))

    async def _sweep(self, temp: WorkspacePath | None, change: Seq | None) -> None:
        """Remove a leftover; bytes that no blob holds are kept first, unless they are our own torn write.

        One that can't be read stays where it is: a leftover must not keep the daemon from starting.
        """
        if temp is None:
            return
        most = self._s.permissions.policy.limits.in_memory_bytes
        try:
            held = await to_thread.run_sync(partial(self._s.workspace.read_temp, temp, most=most))
        except FileTooLarge:
            await self._sweep_large(temp, change)
            return
        except PathError:
            return
        if held is not None and held.data and not await self._s.journal.has_blob(held.digest):
            data = held.data
            if not await self._is_partial(change, lambda at, count: data[at : at + count], len(data)):
                await self._s.journal.append(orphans(temp, (data,), change))
        await self._s.workspace.off_loop(partial(self._s.workspace.unlink_temp, temp))

    async def _sweep_large(self, temp: WorkspacePath, change: Seq | None) -> None:
        """The same of a leftover that is looked at piece by piece."""
        try:
            with closing(self._s.workspace.pieces(temp)) as pieces:
                ours = await self._is_partial(change, pieces.read, pieces.stat.signature.size)
        except PathError:
            return
        if not ours:
            staged = await self._staged(temp)
            if staged is None:
                return
            if await self._s.journal.has_blob(staged.digest):
                self._s.journal.discard(staged)
            else:
                await self._s.journal.append(orphans(temp, (staged,), change))
        await self._s.workspace.off_loop(partial(self._s.workspace.unlink_temp, temp))

    async def _is_partial(self, change: Seq | None, read: Callable[[int, int], bytes], size: int) -> bool:
        """Whether a leftover is the beginning of what the change was about to write."""
        intent = await self._s.notes.event(change, ChangeIntended)
        for item in intent.paths if intent is not None else ():
            after = await self._s.contents.find(item.after) if item.after is not None else None
            if after is not None:
                blocks = iter((after,)) if isinstance(after, bytes) else self._s.journal.blocks(after)
                if await to_thread.run_sync(_begins, blocks, read, size):
                    return True
        return False

    async def _read(self, path: WorkspacePath) -> OnDisk:
        limits = self._s.permissions.policy.limits
        try:
            read = await to_thread.run_sync(partial(self._s.workspace.read, path, most=limits.in_memory_bytes))
        except FileTooLarge:
            try:
                digest, stat = await to_thread.run_sync(partial(self._s.workspace.hash, path, most=ANY_BYTES))
            except PathError:
                return OnDisk(UNREADABLE, self._s.workspace.stat(path))
            return OnDisk(digest, stat, large=True)
        except FileNotFound:
            return ABSENT
        except PathError:
            return OnDisk(UNREADABLE, self._s.workspace.stat(path))
        return OnDisk(read.digest, read.stat, read.data)


def _begins(blocks: Iterator[bytes], read: Callable[[int, int], bytes], size: int) -> bool:
    """Whether a content begins with so many bytes, as `read` gives them from an offset on. Blocking."""
    at = 0
    for block in blocks:
        if read(at, min(len(block), size - at)) != block[: size - at]:
            return False
        at += len(block)
        if at >= size:
            return True
    return at == size
