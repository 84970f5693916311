"""A durable change: intent, disk, proof, outcome. Success is answered only when the disk is synced."""

from __future__ import annotations

from functools import partial

import anyio
import msgspec
from anyio import to_thread

from orchestrator.core.content import IntendedPath, PathChange, Signature, digest_of
from orchestrator.core.decisions.decision import Apply, Part
from orchestrator.core.errors import DiskFull, FileBusy, IoFailed, OrchestratorError, PathError, WritesStopped
from orchestrator.core.events.base import Event, Origin, Recorded
from orchestrator.core.events.files import (
    AbortCause,
    ChangeAborted,
    ChangeApplied,
    ChangeDiverged,
    ChangeIntended,
    DivergedPath,
    OrphanContentKept,
)
from orchestrator.core.events.notices import UnseenChange
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.projections.registry import FileEntry
from orchestrator.engine.changes.write_batch import RollbackIncomplete, WriteBatch
from orchestrator.engine.services import MAX_FILE_BYTES, Services
from orchestrator.ports.journal import ANY_VERSION, NewEvent, StreamMoved, Unit
from orchestrator.ports.workspace import DiskChange, Displaced, FileStat


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """What `ChangeIntended` says besides what the plan says."""

    operation: str
    origin: Origin
    reverts: tuple[Seq, ...] = ()
    supersedes: Seq | None = None
    approval: Seq | None = None
    settles: Seq | None = None
    task: Seq | None = None
    reason: str = ""
    leases: tuple[Seq, ...] = ()  # of others, that the change goes across
    unseen: tuple[UnseenChange, ...] = ()  # what its author had read and not seen since


class Applied(msgspec.Struct, frozen=True):
    """A change that is on disk and in the journal."""

    change: Seq
    recorded: Recorded
    event: ChangeApplied
    intended: ChangeIntended
    warnings: tuple[str, ...]


class Effects:
    """Carries plans out. Callers hold the locks of all paths in the plan."""

    def __init__(self, services: Services) -> None:
        self._s = services
        self.stopped: str | None = None
        """Why nothing is written any more, if that is so."""

    async def carry_out(self, plan: Apply, intent: Intent) -> Applied:
        """Make a plan true.

        Raises Displaced (somebody else's content stood there; it stands there still, decide
        again), Apart (the same, and what the change brought was met by it), FileBusy,
        DiskFull, WritesStopped and the PathError family; nothing is changed then, and the
        intent is closed by `ChangeAborted` or `ChangeDiverged`.
        """
        if self.stopped:
            raise WritesStopped(self.stopped, hint="Reads go on. Mend the disk, then restart the daemon.")
        with anyio.CancelScope(shield=True):
            applied = await self._carry_out(plan, intent)
        return applied  # noqa: RET504  # inside the block the type checker sees a scope that may swallow

    async def _carry_out(self, plan: Apply, intent: Intent) -> Applied:
        landings = WriteBatch(self._s.workspace, map(self._disk_change, touching(plan)))
        intended = self._intended(plan, intent, landings.changes)
        unit = Unit(
            (NewEvent(self._stream(plan), intended, self._version(plan)),),
            intent.origin,
            tuple((p.after, p.data) for p in plan.parts if p.after is not None and p.data is not None),
        )
        number, staged = await self._intend(unit, landings)
        try:
            if staged is not None:
                raise staged
            stats = await to_thread.run_sync(landings.land)
        except (Displaced, RollbackIncomplete) as met:
            await self._displaced(plan, intent, number, landings, met)
            raise
        except (OrchestratorError, OSError) as error:
            if isinstance(error, WritesStopped):
                self.stop(error.message)
            if staged is not None or not isinstance(error, WritesStopped):
                await self._aborted(plan, intent, number, landings, error)
            raise  # after a sync that failed in `land`, what stands on disk is for recovery to find out
        self._s.step("landed")
        emptying = bool(plan.emptied or plan.unmade)
        if emptying:  # before the outcome: what a crash leaves of it is recovery's as long as the intent is open
            await self._s.fenced(partial(self._empty, landings, number, plan))
        applied = ChangeApplied(
            change=number,
            paths=tuple(_changed(p, stats.get(p.path), self._s.state.registry.get(p.path)) for p in plan.parts),
            rung=plan.rung,
            score=plan.score,
            same_symbol=plan.same_symbol,
            reverts=intent.reverts,
            approval=intent.approval,
            supersedes=intent.supersedes,
            on_seen_whole=plan.on_seen_whole,
            task=intent.task,
            operation=intent.operation,
            settled=plan.settled,
            unseen=intent.unseen,
        )
        origin = msgspec.structs.replace(intent.origin, cause=number)
        recorded = await self._outcome(plan, applied, origin)
        for p in plan.parts:
            if p.after is not None and p.data is not None:
                self._s.contents.put(p.after, p.data, p.document)
        if len(landings.changes) > 1 and not emptying:
            # Thousands of leftovers are seen by whoever lists the workspace next, and git is asked right after.
            await self._s.fenced(partial(self._finish, landings, number))
        elif not emptying:
            self._s.in_background(partial(self._finish, landings, number))
        return Applied(number, recorded, applied, intended, (*plan.warnings, *landings.warnings))

    async def _intend(self, unit: Unit, landings: WriteBatch) -> tuple[Seq, Exception | None]:
        """Commit the intent while the temporary files are written; all are durable on return."""
        failed: list[Exception] = []

        async def stage() -> None:
            try:
                await to_thread.run_sync(landings.stage)
            except (OrchestratorError, OSError) as error:
                failed.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(stage)
            recorded = await self._appended(unit)
        if isinstance(recorded, Exception):
            await to_thread.run_sync(landings.abandon)
            raise recorded
        return recorded[0].seq, failed[0] if failed else None

    async def _appended(self, unit: Unit) -> tuple[Recorded, ...] | OrchestratorError | StreamMoved:
        """Append, with a refusal as a value: raised inside a task group it would come out wrapped."""
        try:
            return await self._s.journal.append(unit)
        except (OrchestratorError, StreamMoved) as error:
            return error

    async def _outcome(
        self, plan: Apply, event: Event, origin: Origin, blobs: tuple[tuple[Digest, bytes], ...] = ()
    ) -> Recorded:
        """Close an intent. If that can't be committed the intent stays open, and writing stops.

        On a full disk the journal writes it by itself when there is space again; else recovery does.
        """
        try:
            recorded = await self._s.journal.append(
                Unit((NewEvent(self._stream(plan), event, self._version(plan)),), origin, blobs, closes=True)
            )
        except (DiskFull, WritesStopped) as error:
            so_far = "the change is on disk" if isinstance(event, ChangeApplied) else "the change did not take effect"
            if blobs or isinstance(error, WritesStopped):  # contents may lack, so that the journal owes nothing
                self.stop(f"the outcome of a change could not be committed: {error.message}")
                raise WritesStopped(
                    f"{so_far}, but the journal could not take its outcome; the next start closes it",
                    hint="Reads go on. Mend the disk of the state directory, then restart the daemon.",
                ) from error
            raise WritesStopped(
                f"{so_far}, but the journal has no space left for its outcome; it is noted when it has",
                hint="Reads go on. Free space on the disk of the state directory, then send the same call again.",
            ) from error
        return recorded[0]

    def stop(self, why: str) -> None:
        """Write no more; reads go on."""
        self.stopped = self.stopped or why

    async def _aborted(
        self, plan: Apply, intent: Intent, number: Seq, landings: WriteBatch, error: OrchestratorError | OSError
    ) -> None:
        cause: AbortCause = "io_error"
        if isinstance(error, DiskFull):
            cause = "disk_full"
        elif isinstance(error, FileBusy):
            cause = "file_busy"
        elif isinstance(error, OrchestratorError) and not isinstance(error, WritesStopped | IoFailed):
            cause = "refused"
        await to_thread.run_sync(landings.abandon)
        origin = msgspec.structs.replace(intent.origin, cause=number)
        await self._outcome(plan, ChangeAborted(change=number, cause=cause), origin)

    async def _displaced(
        self, plan: Apply, intent: Intent, number: Seq, landings: WriteBatch, met: Displaced | RollbackIncomplete
    ) -> None:
        """Foreign content was met. It stands where it stood; whatever else came out is kept."""
        await to_thread.run_sync(landings.abandon)
        origin = msgspec.structs.replace(intent.origin, cause=number)
        apart = met.displaced if isinstance(met, RollbackIncomplete) else ()
        self._s.suspect.update(item.path for item in apart or (met,) if isinstance(item, Displaced))
        if not apart:
            await self._outcome(plan, ChangeAborted(change=number, cause="stale"), origin)
            return
        paths: list[DivergedPath] = []
        blobs: list[tuple[Digest, bytes]] = []
        for item in apart:
            left = tuple((digest_of(data), data) for data in item.foreign)
            found = await self._found(item.path)
            paths.append(DivergedPath(item.path, found[0][0] if found else None, left[0][0] if left else None))
            blobs += (*found, *left)
        await self._outcome(plan, ChangeDiverged(change=number, paths=tuple(paths)), origin, tuple(blobs))
        self._s.in_background(partial(self._finish, landings, number))

    async def _found(self, path: WorkspacePath) -> tuple[tuple[Digest, bytes], ...]:
        """What stands at a path, if that is a file that can be read."""
        try:
            read = await to_thread.run_sync(partial(self._s.workspace.read, path, most=MAX_FILE_BYTES))
        except PathError:
            return ()
        return ((read.digest, read.data),)

    async def _empty(self, landings: WriteBatch, number: Seq, plan: Apply) -> None:
        """Finish, and remove the directories that the change left empty. Its files are done by now."""
        await self._finish(landings, number)
        try:
            for path in plan.emptied:
                await to_thread.run_sync(self._s.workspace.remove_empty, path)
            for path in plan.unmade:
                await to_thread.run_sync(partial(self._s.workspace.remove_empty, path, below=False))
        except WritesStopped as error:
            self.stop(error.message)
            raise

    async def _finish(self, landings: WriteBatch, number: Seq) -> None:
        """Unlink what was swapped out; bytes that nobody knew are kept first."""
        for _ in range(FINISH_TRIES):
            strays = await to_thread.run_sync(landings.finish)
            if not strays:
                break
            for stray in strays:
                await self.keep_strays(stray.path, (stray.data,), number)

    async def keep_strays(self, path: WorkspacePath, strays: tuple[bytes, ...], change: Seq | None) -> None:
        """Make blobs of bytes that stood in a temporary file and that no event explains."""
        blobs: tuple[tuple[Digest, bytes], ...] = tuple((digest_of(data), data) for data in strays)
        events = tuple(
            NewEvent(f"stray:{path}", OrphanContentKept(path=path, digest=digest, size=len(data), change=change))
            for digest, data in blobs
        )
        await self._s.journal.append(Unit(events, Origin(cause=change), blobs))

    def _intended(self, plan: Apply, intent: Intent, changes: tuple[DiskChange, ...]) -> ChangeIntended:
        temps = {change.path: change.temp for change in changes}
        return ChangeIntended(
            operation=intent.operation,
            paths=tuple(
                IntendedPath(
                    path=p.path,
                    before=p.before,
                    after=p.after,
                    mode=p.mode,
                    temp=temps.get(p.path),
                    moved_from=p.moved_from,
                    directory=p.directory,
                    renamed_from=p.renamed_from,
                    encoding=p.encoding,
                )
                for p in plan.parts
            ),
            rung=plan.rung,
            score=plan.score,
            base=plan.base,
            on_seen_whole=plan.on_seen_whole,
            parents=tuple(dict.fromkeys(parent for change in changes for parent in change.parents)),
            reverts=intent.reverts,
            supersedes=intent.supersedes,
            approval=intent.approval,
            settles=intent.settles,
            task=intent.task,
            reason=intent.reason,
            warnings=plan.warnings,
            leases=intent.leases,
            settled=plan.settled,
            emptied=plan.emptied,
            unmade=plan.unmade,
            unseen=intent.unseen,
        )

    def _disk_change(self, part: Part) -> DiskChange:
        temp = None if part.moved_from or part.directory else f"{TEMP_PREFIX}{self._s.token()}{TEMP_SUFFIX}"
        return DiskChange(
            path=part.path,
            before=part.before,
            after=part.after,
            data=part.data,
            mode=part.mode if part.moved_from is None else None,
            temp=temp,
            moved_from=part.moved_from,
            directory=part.directory,
            parents=self._parents(part.path) if part.before is None else (),
            signature=self._signature(part),
            known=self._s.contents.cached(part.before) if part.before is not None else None,
        )

    def _signature(self, part: Part) -> Signature | None:
        """What stat said of `before` when it was last hashed."""
        entry = self._s.state.registry.get(part.path)
        return entry.signature if entry is not None and entry.digest == part.before else None

    def _parents(self, path: WorkspacePath) -> tuple[WorkspacePath, ...]:
        """The directories above a path that are not there yet, outermost first."""
        missing: list[WorkspacePath] = []
        above = path.rpartition("/")[0]
        while above and self._s.workspace.stat(WorkspacePath(above)) is None:
            missing.append(WorkspacePath(above))
            above = above.rpartition("/")[0]
        return tuple(reversed(missing))

    @staticmethod
    def _stream(plan: Apply) -> str:
        return f"file:{plan.parts[0].path}"

    def _version(self, plan: Apply) -> int:
        return self._s.journal.stream_version(self._stream(plan)) if plan.parts else ANY_VERSION


FINISH_TRIES = 5
"""What a writer keeps changing after that is swept at the next start."""

TEMP_PREFIX = ".orchestrator-"
TEMP_SUFFIX = ".tmp"


def touching(plan: Apply) -> tuple[Part, ...]:
    """The parts that the disk is touched for: of a move, the destination."""
    left = {part.moved_from for part in plan.parts if part.moved_from is not None}
    return tuple(part for part in plan.parts if part.path not in left)


def _changed(part: Part, stat: FileStat | None, entry: FileEntry | None) -> PathChange:
    present = part.after is not None or part.directory
    return PathChange(
        path=part.path,
        before=part.before,
        after=part.after,
        hunks=part.hunks,
        mode=stat.mode if stat and present else part.mode,
        signature=stat.signature if stat and present else None,
        moved_from=part.moved_from or part.renamed_from,
        directory=part.directory,
        previous=entry.version if entry and part.before is not None else None,
        binary=part.binary,
        encoding=part.encoding,
    )
