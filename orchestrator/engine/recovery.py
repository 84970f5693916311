"""What a crash left behind: intents without an outcome, and temporary files. Idempotent; judged by hash alone."""

from __future__ import annotations

from functools import partial

from anyio import to_thread

from orchestrator.core.content import IntendedPath, LineHunk, PathChange, digest_of
from orchestrator.core.decisions.patching import EMPTY, line_hunks
from orchestrator.core.decisions.recovering import Keep, RollForward, SwapBack, Undo, Verdict, judge
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
from orchestrator.ports import FileBytes, NewEvent, TempFile, Unit


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
        found = await self._digest(main.path)
        in_temp = await self._temp_digest(temp)
        source = await self._digest(main.moved_from) if main.moved_from else None
        verdict: Verdict
        if main.directory:
            stat = self._s.workspace.stat(main.path)
            verdict = RollForward() if stat is not None and stat.kind == "directory" else Undo("crash")
        else:
            verdict = judge(main, found=found, temp=in_temp, source=source)
        match verdict:
            case SwapBack() if temp is not None:
                await to_thread.run_sync(partial(self._s.workspace.exchange_back, temp, main.path))
                await self._outcome(recorded, ChangeAborted(change=recorded.seq, cause="stale"))
                await self._sweep(temp, recorded.seq)
                await self._observer.look(main.path, content=True)
            case RollForward():
                await to_thread.run_sync(partial(self._s.workspace.sync_directory, main.path))
                if main.moved_from is not None:
                    await to_thread.run_sync(partial(self._s.workspace.sync_directory, main.moved_from))
                await self._outcome(recorded, await self._applied(recorded.seq, intent, main))
                if temp is not None:
                    await self._sweep(temp, recorded.seq)
            case Keep():
                await self._diverge(recorded, intent, main, temp)
            case Undo(cause=cause):
                await self._outcome(recorded, ChangeAborted(change=recorded.seq, cause=cause))
                if temp is not None:
                    await self._sweep(temp, recorded.seq)
            case _:
                await self._diverge(recorded, intent, main, temp)

    async def _applied(self, change: Seq, intent: ChangeIntended, main: IntendedPath) -> ChangeApplied:
        stat = self._s.workspace.stat(main.path)
        present = stat is not None and (main.after is not None or main.directory)
        paths = []
        for item in intent.paths:
            mine = item is main and present
            entry = self._s.state.registry.get(item.path)
            paths.append(
                PathChange(
                    path=item.path,
                    before=item.before,
                    after=item.after,
                    hunks=await self._hunks(item),
                    mode=stat.mode if mine and stat else None,
                    signature=stat.signature if mine and stat else None,
                    moved_from=item.moved_from,
                    directory=item.directory,
                    previous=entry.version if entry and item.before is not None else None,
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

    async def _hunks(self, item: IntendedPath) -> tuple[LineHunk, ...]:
        if item.directory or item.moved_from is not None:
            return ()
        old = await self._document(item.before)
        new = await self._document(item.after)
        return line_hunks(old, new) if old is not None and new is not None else ()

    async def _document(self, digest: Digest | None) -> Document | None:
        if digest is None:
            return EMPTY
        data = await self._s.journal.blob(digest)
        return decode(data) if data is not None else None

    async def _diverge(
        self, recorded: Recorded, intent: ChangeIntended, main: IntendedPath, temp: TempFile | None
    ) -> None:
        """Neither before nor after stands there: leave it alone, keep all bytes, and say so."""
        blobs: list[tuple[Digest, bytes]] = []
        found = await self._read(main.path)
        if found is not None:
            blobs.append((digest_of(found), found))
        in_temp: Digest | None = None
        if temp is not None:
            held = await to_thread.run_sync(partial(self._s.workspace.read_temp, temp))
            if held is not None:
                in_temp = held.digest
                blobs.append((held.digest, held.data))
        event = ChangeDiverged(
            change=recorded.seq,
            paths=(DivergedPath(main.path, blobs[0][0] if found is not None else None, in_temp),),
        )
        await self._outcome(recorded, event, tuple(blobs))
        if temp is not None:
            await to_thread.run_sync(partial(self._s.workspace.unlink_temp, temp))
        for item in intent.paths:
            await self._observer.look(item.path, content=True)

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

    async def _sweep(self, temp: TempFile, change: Seq | None) -> None:
        """Remove a leftover; bytes that no blob holds are kept first, unless they are our own torn write."""
        held = await to_thread.run_sync(partial(self._s.workspace.read_temp, temp))
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

    async def _digest(self, path: WorkspacePath) -> Digest | None:
        data = await self._read(path)
        return digest_of(data) if data is not None else None

    async def _read(self, path: WorkspacePath) -> bytes | None:
        try:
            read = await to_thread.run_sync(lambda: self._s.workspace.read(path, most=MAX_FILE_BYTES))
        except FileNotFound:
            return None
        except PathError:
            return b"\0not a regular file"
        return read.data

    async def _temp_digest(self, temp: TempFile | None) -> Digest | None:
        if temp is None:
            return None
        held = await to_thread.run_sync(partial(self._s.workspace.read_temp, temp))
        return held.digest if held is not None else None
