"""A durable change: intent, disk, proof, outcome. Success is answered only when the disk is synced."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import anyio
import msgspec
from anyio import to_thread

from orchestrator.core.change import PathChange, Provenance
from orchestrator.core.content import Signature, digest_of
from orchestrator.core.decisions.decision import Apply
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
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.projections.registry import FileEntry
from orchestrator.engine.changes.write_batch import RollbackIncomplete, WriteBatch
from orchestrator.engine.services import MAX_FILE_BYTES, Services
from orchestrator.ports.journal import ANY_VERSION, NewEvent, StreamMoved, Unit
from orchestrator.ports.workspace import DiskChange, Displaced, FileStat


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """What `ChangeIntended` says besides what the plan says, and who causes it."""

    provenance: Provenance
    origin: Origin
    leases: tuple[Seq, ...] = ()  # of others, that the change goes across


class Applied(msgspec.Struct, frozen=True):
    """A change that is on disk and in the journal."""

    recorded: Recorded
    event: ChangeApplied


class Effects:
    """Carries plans out. Callers hold the locks of all paths in the plan."""

    def __init__(self, services: Services) -> None:
        self._s = services
        self.stopped: str | None = None
        """Why nothing is written any more, if that is so."""

    async def carry_out(self, plan: Apply, intent: Intent) -> Applied:
        """Make a plan true.

        Raises Displaced (somebody else's content stood there; it stands there still, decide
        again), RollbackIncomplete (the same, and what the change brought was met by it), FileBusy,
        DiskFull, WritesStopped and the PathError family; nothing is changed then, and the
        intent is closed by `ChangeAborted` or `ChangeDiverged`.
        """
        if self.stopped:
            raise WritesStopped(self.stopped, hint="Reads go on. Mend the disk, then restart the daemon.")
        with anyio.CancelScope(shield=True):
            applied = await self._carry_out(plan, intent)
        return applied  # noqa: RET504  # inside the block the type checker sees a scope that may swallow

    async def _carry_out(self, plan: Apply, intent: Intent) -> Applied:
        landings = WriteBatch(self._s.workspace, (self._disk_change(plan, change) for change in touching(plan.paths)))
        intended = self._intended(plan, intent, landings.changes)
        unit = Unit((NewEvent(self._stream(plan), intended, self._version(plan)),), intent.origin, new_blobs(plan))
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
            raise  # after a sync that failed in `commit`, recovery finds out what is on disk
        self._s.step("written")
        emptying = bool(plan.directories.emptied or plan.directories.unmade)
        if emptying:  # before the outcome: what a crash leaves of it is recovery's as long as the intent is open
            await self._s.fenced(partial(self._empty, landings, number, plan))
        registry = self._s.state.registry
        paths = tuple(landed(change, stats.get(change.path), registry.get(change.path)) for change in plan.paths)
        applied = intended.outcome(number, paths, warnings=landings.warnings)
        origin = msgspec.structs.replace(intent.origin, cause=number)
        recorded = await self._outcome(plan, applied, origin)
        for digest, content in plan.contents.items():
            self._s.contents.put(digest, content.data, content.document)
        if len(landings.changes) > 1 and not emptying:
            # Thousands of leftovers are seen by whoever lists the workspace next, and git is asked right after.
            await self._s.fenced(partial(self._finish, landings, number))
        elif not emptying:
            self._s.in_background(partial(self._finish, landings, number))
        return Applied(recorded, applied)

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
            left = tuple((digest_of(data), data) for data in item.unexpected)
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
            for path in plan.directories.emptied:
                await to_thread.run_sync(self._s.workspace.remove_empty, path)
            for path in plan.directories.unmade:
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
        made = tuple(dict.fromkeys(parent for change in changes for parent in change.parents))
        return ChangeIntended(
            provenance=intent.provenance,
            paths=tuple(msgspec.structs.replace(change, temp=temps.get(change.path)) for change in plan.paths),
            fit=plan.fit,
            directories=msgspec.structs.replace(plan.directories, made=made),
            leases=intent.leases,
        )

    def _disk_change(self, plan: Apply, change: PathChange) -> DiskChange:
        content = plan.content(change)
        temp = None if change.renamed or change.directory else f"{TEMP_PREFIX}{self._s.token()}{TEMP_SUFFIX}"
        entry = self._s.state.registry.get(change.path)
        return disk_change(
            msgspec.structs.replace(change, temp=temp),
            content.data if content is not None else None,
            parents=self._parents(change.path) if change.before is None else (),
            signature=entry.signature if entry is not None and entry.digest == change.before else None,
        )

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
        return f"file:{plan.paths[0].path}"

    def _version(self, plan: Apply) -> int:
        return self._s.journal.stream_version(self._stream(plan)) if plan.paths else ANY_VERSION


FINISH_TRIES = 5
"""What a writer keeps changing after that is swept at the next start."""

TEMP_PREFIX = ".orchestrator-"
TEMP_SUFFIX = ".tmp"


def touching(paths: Sequence[PathChange]) -> tuple[PathChange, ...]:
    """The paths that the disk is touched for: of a rename, the destination."""
    left = {change.moved_from for change in paths if change.renamed}
    return tuple(change for change in paths if change.path not in left)


def new_blobs(plan: Apply) -> tuple[tuple[Digest, bytes], ...]:
    """The contents that a plan brings."""
    return tuple((digest, content.data) for digest, content in plan.contents.items())


def disk_change(
    change: PathChange,
    data: bytes | None,
    *,
    parents: tuple[WorkspacePath, ...],
    signature: Signature | None = None,
) -> DiskChange:
    """One path's part of a change, as the workspace carries it out."""
    return DiskChange(
        path=change.path,
        before=change.before,
        after=change.after,
        data=data,
        mode=None if change.renamed else change.mode,
        temp=change.temp,
        moved_from=change.moved_from if change.renamed else None,
        directory=change.directory,
        parents=parents,
        signature=signature,
    )


def landed(change: PathChange, stat: FileStat | None, entry: FileEntry | None) -> PathChange:
    """The change of a path as its outcome tells it; `entry` is what the registry holds of what was there."""
    there = stat if change.after is not None or change.directory else None
    return msgspec.structs.replace(
        change,
        mode=there.mode if there is not None else change.mode,
        signature=there.signature if there is not None else None,
        previous=entry.version if entry is not None and change.before is not None else None,
        temp=None,
    )
