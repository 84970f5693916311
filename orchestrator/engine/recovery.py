"""What a crash left behind: intents without an outcome, and temporary files. Idempotent; judged by hash alone."""

from __future__ import annotations

from functools import partial

import msgspec
from anyio import to_thread

from orchestrator.core.content import IntendedPath, LineHunk, PathChange, digest_of
from orchestrator.core.decisions.patching import EMPTY, line_hunks
from orchestrator.core.decisions.recovering import RollForward, SwapBack, Undo, Verdict, judge
from orchestrator.core.errors import FileNotFound, PathError
from orchestrator.core.events.base import Event, Origin, Recorded
from orchestrator.core.events.files import (
    ChangeAborted,
    ChangeApplied,
    ChangeDiverged,
    ChangeIntended,
    DivergedPath,
    StrayKept,
)
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.text.encoding import Document, decode
from orchestrator.engine.observing import Observer
from orchestrator.engine.services import MAX_FILE_BYTES, Services
from orchestrator.ports import FileBytes, FileStat, NewEvent, TempFile, Unit

UNREADABLE = Digest("unreadable")
"""Equal to no content's hash: something is there, but no regular file that can be read."""


class Stands(msgspec.Struct, frozen=True):
    """What a name holds: its content, and the stat that held while it was read."""

    digest: Digest | None
    stat: FileStat | None = None
    data: bytes | None = None


ABSENT = Stands(None)


class Recovery:
    """Runs once, before the daemon listens."""

    def __init__(self, services: Services, observer: Observer) -> None:
        self._s, self._observer = services, observer
        self.closed = 0

    async def run(self) -> None:
        """Close every open intent, then take away every temporary file, keeping what no blob holds."""
        temps = {temp.name: temp for temp in await to_thread.run_sync(self._s.workspace.temps)}
        for recorded in self._s.state.pending.open_intents():
            if isinstance(recorded.event, ChangeIntended):
                await self._close(recorded, recorded.event, temps)
                self.closed += 1
        for temp in temps.values():
            await self._sweep(temp, None)

    async def _close(self, recorded: Recorded, intent: ChangeIntended, temps: dict[str, TempFile]) -> None:
        main = next((item for item in intent.paths if item.moved_from is not None), intent.paths[0])
        temp = temps.pop(main.temp, None) if main.temp else None
        stands = await self._stands(main.path)
        match await self._judged(main, stands, temp):
            case SwapBack(cause=cause) if temp is not None:
                await to_thread.run_sync(partial(self._s.workspace.exchange_back, temp, main.path))
                await self._outcome(recorded, ChangeAborted(change=recorded.seq, cause=cause))
                await self._sweep(temp, recorded.seq)
                await self._look(main.path)
            case RollForward():
                await to_thread.run_sync(partial(self._s.workspace.sync_directory, main.path))
                if main.moved_from is not None:
                    await to_thread.run_sync(partial(self._s.workspace.sync_directory, main.moved_from))
                await self._sweep(temp, recorded.seq)
                await self._outcome(recorded, await self._applied(recorded.seq, intent, main, stands))
            case Undo(cause=cause):
                await self._sweep(temp, recorded.seq)
                await self._outcome(recorded, ChangeAborted(change=recorded.seq, cause=cause))
            case _:
                await self._diverge(recorded, intent, main, stands, temp)

    async def _judged(self, main: IntendedPath, stands: Stands, temp: TempFile | None) -> Verdict:
        if main.directory:
            there = stands.stat is not None and stands.stat.kind == "directory"
            return RollForward() if there else Undo("crash")
        held: Digest | None = None
        busy = False
        if temp is not None:
            busy = await to_thread.run_sync(partial(self._s.workspace.in_use, temp))
            held = (await self._stands(temp.path)).digest
        source = (await self._stands(main.moved_from)).digest if main.moved_from else None
        return judge(main, found=stands.digest, temp=held, source=source, busy=busy)

    async def _applied(self, change: Seq, intent: ChangeIntended, main: IntendedPath, stands: Stands) -> ChangeApplied:
        stat = stands.stat
        paths = []
        for item in intent.paths:
            mine = item is main and (main.after is not None or main.directory)
            entry = self._s.state.registry.get(item.path)
            hunks, binary = ((), False) if main.moved_from else await self._hunks(item)
            paths.append(
                PathChange(
                    path=item.path,
                    before=item.before,
                    after=item.after,
                    hunks=hunks,
                    mode=stat.mode if mine and stat else item.mode,
                    signature=stat.signature if mine and stat else None,
                    moved_from=item.moved_from,
                    directory=item.directory,
                    previous=entry.version if entry and item.before is not None else None,
                    binary=binary,
                )
            )
        return ChangeApplied(
            change=change,
            paths=tuple(paths),
            rung=intent.rung,
            score=intent.score,
            reverts=intent.reverts,
            approval=intent.approval,
            supersedes=intent.supersedes,
            on_seen_whole=intent.on_seen_whole,
            task=intent.task,
            operation=intent.operation,
            recovered=True,
        )

    async def _hunks(self, item: IntendedPath) -> tuple[tuple[LineHunk, ...], bool]:
        """What changed, line by line, and whether it could not be told because a side is no text."""
        if item.directory:
            return (), False
        old = await self._document(item.before)
        new = await self._document(item.after)
        if old is None or new is None:
            return (), True
        return line_hunks(old, new), False

    async def _document(self, digest: Digest | None) -> Document | None:
        if digest is None:
            return EMPTY
        data = await self._s.journal.blob(digest)
        return decode(data) if data is not None else None

    async def _diverge(
        self, recorded: Recorded, intent: ChangeIntended, main: IntendedPath, stands: Stands, temp: TempFile | None
    ) -> None:
        """Neither before nor after stands there: leave it alone, keep all bytes, and say so."""
        in_temp = await self._stands(temp.path) if temp is not None else ABSENT
        kept = tuple((digest_of(item.data), item.data) for item in (stands, in_temp) if item.data is not None)
        found = stands.digest if stands.data is not None else None
        left = in_temp.digest if in_temp.data is not None else None
        event = ChangeDiverged(change=recorded.seq, paths=(DivergedPath(main.path, found, left),))
        await self._outcome(recorded, event, kept)
        await self._sweep(temp, recorded.seq)
        for item in intent.paths:
            await self._look(item.path)

    async def _look(self, path: WorkspacePath) -> None:
        """Let the journal say what stands there. What can't be read is looked at again when it is asked for."""
        try:
            await self._observer.look(path, content=True)
        except PathError:
            return

    async def _outcome(self, recorded: Recorded, event: Event, blobs: tuple[tuple[Digest, bytes], ...] = ()) -> None:
        origin = Origin(
            session=recorded.origin.session,
            agent=recorded.origin.agent,
            owner=recorded.origin.owner,
            request_id=recorded.origin.request_id,
            request_digest=recorded.origin.request_digest,
            cause=recorded.seq,
        )
        expected = self._s.journal.stream_version(recorded.stream)
        await self._s.journal.append(Unit((NewEvent(recorded.stream, event, expected),), origin, blobs))

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
            event = StrayKept(path=temp.path, digest=held.digest, size=len(held.data), change=change)
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
