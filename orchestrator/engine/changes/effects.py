"""A durable change: intent, disk, verification, outcome. Success is answered only when the disk is synced."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import anyio
import msgspec
from anyio import to_thread

from orchestrator.core.change import PathChange, Provenance
from orchestrator.core.content import Content, SplicedContent, digest_of
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
from orchestrator.core.paths import ancestors
from orchestrator.core.projections.file_rows import FileEntry
from orchestrator.engine.changes.write_batch import (
    RollbackIncomplete,
    WriteBatch,
    disk_change,
    remove_emptied,
    touching,
)
from orchestrator.engine.services import Services
from orchestrator.ports.journal import (
    AppendBatch,
    Journal,
    NewContent,
    NewContents,
    NewEvent,
    StagedContent,
    StreamMoved,
)
from orchestrator.ports.workspace import ChangedMeanwhile, DiskChange, FileStat, Streamed


class Effects:
    """Carries plans out. Callers hold the locks of all paths in the plan."""

    def __init__(self, services: Services) -> None:
        self._s = services
        self.stopped: str | None = None
        """Why nothing is written any more, if that is so."""

    async def carry_out(
        self, plan: Apply, provenance: Provenance, origin: Origin, *, leases: tuple[Seq, ...] = ()
    ) -> tuple[Seq, ChangeApplied]:
        """Make a plan true; the version of the change, and the event that says so. `leases`: others' that it crosses.

        Raises ChangedMeanwhile (another program's content was there and is left there; decide again),
        RollbackIncomplete (the same, after a part of the change was written), FileBusy, DiskFull,
        WritesStopped and the PathError family; nothing is changed then, and the intent is closed
        by `ChangeAborted` or `ChangeDiverged`.
        """
        if self.stopped:
            raise WritesStopped(self.stopped, hint="Reads go on. Mend the disk, then restart the daemon.")
        self._s.check_in_place()
        known: set[WorkspacePath] = set()
        changes = (self._disk_change(plan, change, known) for change in touching(plan.paths))
        batch = WriteBatch(self._s.workspace, changes)
        intended = self._intended(plan, provenance, leases, batch.changes)
        with anyio.CancelScope(shield=True):
            try:
                applied = await self._carry_out(plan, intended, origin, batch)
            except WritesStopped:  # nobody finishes the change before the next start
                await batch.release()
                raise
        return applied  # inside the block the type checker sees a scope that may swallow

    async def _carry_out(
        self, plan: Apply, intended: ChangeIntended, origin: Origin, batch: WriteBatch
    ) -> tuple[Seq, ChangeApplied]:
        number, staged = await self._intend(self._unit(plan, intended, origin, new_blobs(plan)), batch)
        origin = msgspec.structs.replace(origin, cause=number)
        try:
            if staged is not None:
                raise staged
            async with self._s.covers.changing([change.path for change in plan.paths]):
                stats = await batch.commit()
        except RollbackIncomplete as met:
            await batch.abandon()
            await self._diverged(plan, origin, number, met.displaced)
            self._s.background.start(partial(self._finish, batch, number))
            raise
        except (ChangedMeanwhile, OrchestratorError, OSError) as error:
            if isinstance(error, ChangedMeanwhile):
                self._s.must_reread.add(error.path)
            if isinstance(error, WritesStopped):
                self.stop(error.message)
            if staged is not None or not isinstance(error, WritesStopped):
                await batch.abandon()
                await self._outcome(plan, ChangeAborted(change=number, cause=_abort_cause(error)), origin)
            raise  # after a sync that failed in `commit`, recovery finds out what is on disk
        self._s.step("written")
        emptying = bool(plan.directories.emptied or plan.directories.unmade)
        if emptying:  # before the outcome: what a crash leaves of it is recovery's as long as the intent is open
            await self._s.background.log_failures(partial(self._empty, batch, number, plan))
        registry = self._s.state.registry
        paths = tuple(written(change, stats.get(change.path), registry.get(change.path)) for change in plan.paths)
        applied = intended.outcome(number, paths, warnings=batch.warnings)
        recorded = await self._outcome(plan, applied, origin)
        for digest, content in plan.contents.items():
            if isinstance(content.data, bytes):
                self._s.contents.put(digest, content.data, content.document)
        if len(batch.changes) > 1 and not emptying:
            # Thousands of leftovers are seen by whoever lists the workspace next, and git is asked right after.
            await self._s.background.log_failures(partial(self._finish, batch, number))
        elif not emptying:
            self._s.background.start(partial(self._finish, batch, number))
        return recorded.seq, applied

    async def _intend(self, unit: AppendBatch, batch: WriteBatch) -> tuple[Seq, Exception | None]:
        """Commit the intent while the temporary files are written; all are durable on return."""
        failed: list[Exception] = []
        recorded: tuple[Recorded, ...] = ()
        refused: OrchestratorError | StreamMoved | None = None

        async def stage() -> None:
            try:
                await batch.stage()
            except (OrchestratorError, OSError) as error:
                failed.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(stage)
            try:
                recorded = await self._s.journal.append(unit)
            except (OrchestratorError, StreamMoved) as error:  # raised inside the group it would come out wrapped
                refused = error
        if refused is not None:
            await batch.abandon()
            raise refused
        return recorded[0].seq, failed[0] if failed else None

    async def _outcome(self, plan: Apply, event: Event, origin: Origin, blobs: NewContents = ()) -> Recorded:
        """Close an intent. If that can't be committed the intent stays open, and writing stops.

        On a full disk the journal writes it by itself when there is space again; else recovery does.
        """
        try:
            recorded = await self._s.journal.append(self._unit(plan, event, origin, blobs, closes=True))
        except (DiskFull, WritesStopped) as error:
            so_far = "the change is on disk" if isinstance(event, ChangeApplied) else "the change did not take effect"
            if blobs or isinstance(error, WritesStopped):  # contents may lack, so that the journal owes nothing
                self.stop(f"the outcome of a change could not be committed: {error.message}")
                end, hint = "the next start closes it", "Mend the disk of the state directory, then restart the daemon."
            else:
                end = "it is noted when it has space again"
                hint = "Free space on the disk of the state directory, then send the same call again."
            message = f"{so_far}, but the journal could not take its outcome; {end}"
            raise WritesStopped(message, hint=f"Reads go on. {hint}") from error
        return recorded[0]

    def stop(self, why: str) -> None:
        """Write no more; reads go on."""
        self.stopped = self.stopped or why

    async def _diverged(
        self, plan: Apply, origin: Origin, number: Seq, displaced: tuple[ChangedMeanwhile, ...]
    ) -> None:
        """Another program's content stays where it is; all bytes that were met are kept."""
        self._s.must_reread.update(item.path for item in displaced)
        paths: list[DivergedPath] = []
        blobs: list[tuple[Digest, NewContent]] = []
        for item in displaced:
            left = tuple((digest_of(data), data) for data in item.unexpected)
            found = await self._found(item.path)
            paths.append(DivergedPath(item.path, found[0][0] if found else None, left[0][0] if left else None))
            blobs += (*found, *left)
        await self._outcome(plan, ChangeDiverged(change=number, paths=tuple(paths)), origin, tuple(blobs))

    async def _found(self, path: WorkspacePath) -> NewContents:
        """The content at a path, if that is a file that can be read."""
        try:
            most = self._s.permissions.policy.limits.change_bytes
            read = await to_thread.run_sync(partial(self._s.workspace.read, path, most=most))
        except PathError:
            return ()
        return ((read.digest, read.data),)

    async def _empty(self, batch: WriteBatch, number: Seq, plan: Apply) -> None:
        """Finish, and remove the directories that the change left empty. Its files are done by now."""
        await self._finish(batch, number)
        try:
            await self._s.workspace.off_loop(partial(remove_emptied, self._s.workspace, plan.directories))
        except WritesStopped as error:
            self.stop(error.message)
            raise

    async def _finish(self, batch: WriteBatch, number: Seq) -> None:
        """Unlink what was swapped out; bytes that no event explains are kept first."""
        try:
            for _ in range(FINISH_TRIES):
                left = await batch.finish()
                if not left:
                    break
                for path, contents in left.items():
                    await self._s.journal.append(orphans(path, contents, number))
        finally:  # what could not be unlinked is swept at the next start
            await batch.release()

    def _intended(
        self, plan: Apply, provenance: Provenance, leases: tuple[Seq, ...], changes: tuple[DiskChange, ...]
    ) -> ChangeIntended:
        temps = {change.path: change.temp for change in changes}
        made = tuple(parent for change in changes for parent in change.parents)
        return ChangeIntended(
            provenance=provenance,
            paths=tuple(msgspec.structs.replace(change, temp=temps.get(change.path)) for change in plan.paths),
            fit=plan.fit,
            directories=msgspec.structs.replace(plan.directories, made=made),
            leases=leases,
        )

    def _disk_change(self, plan: Apply, change: PathChange, known: set[WorkspacePath]) -> DiskChange:
        """`known`: the directories that are there, or that another path's part makes; those of this one join them."""
        content = plan.content(change)
        temp = None if change.renamed or change.directory else self._temp_name()
        entry = self._s.state.registry.get(change.path)
        return disk_change(
            msgspec.structs.replace(change, temp=temp),
            written_from(self._s.journal, content.data) if content is not None else None,
            parents=self._missing(ancestors(change.path), known) if change.before is None else (),
            signature=entry.signature if entry is not None and entry.digest == change.before else None,
        )

    def _temp_name(self) -> str:
        return f"{TEMP_PREFIX}{self._s.entropy.bytes(8).hex()}{TEMP_SUFFIX}"

    def _missing(self, above: Iterable[WorkspacePath], known: set[WorkspacePath]) -> tuple[WorkspacePath, ...]:
        unknown = [parent for parent in above if parent not in known]
        known.update(unknown)
        return tuple(parent for parent in unknown if self._s.workspace.stat(parent) is None)

    def _unit(
        self, plan: Apply, event: Event, origin: Origin, blobs: NewContents, *, closes: bool = False
    ) -> AppendBatch:
        stream = f"file:{plan.paths[0].path}"
        expected = self._s.journal.stream_version(stream)
        return AppendBatch((NewEvent(stream, event, expected),), origin, blobs, closes=closes)


FINISH_TRIES = 5
"""What a writer keeps changing after that is swept at the next start."""

TEMP_PREFIX = ".orchestrator-"
TEMP_SUFFIX = ".tmp"


def new_blobs(plan: Apply) -> NewContents:
    """The contents that a plan brings, but for large ones, which are kept, unless they are spliced."""
    return tuple(
        (
            digest,
            StagedContent(digest, data.size, data.draft) if isinstance(data, SplicedContent) and data.draft else data,
        )
        for digest, data in ((digest, content.data) for digest, content in plan.contents.items())
        if isinstance(data, bytes | SplicedContent)
    )


def written_from(journal: Journal, data: Content) -> bytes | Streamed:
    """What is written to the disk of a content."""
    return data if isinstance(data, bytes) else Streamed(data.size, partial(journal.blocks, data))


def written(change: PathChange, stat: FileStat | None, entry: FileEntry | None) -> PathChange:
    """The change of a path as its outcome says it; `entry` is the registry's of the file before."""
    there = stat if change.present else None
    return msgspec.structs.replace(
        change,
        mode=there.mode if there is not None else change.mode,
        signature=there.signature if there is not None else None,
        previous=entry.version if entry is not None and change.before is not None else None,
        temp=None,
    )


def orphans(path: WorkspacePath, contents: Iterable[bytes | StagedContent], change: Seq | None) -> AppendBatch:
    """What keeps bytes of a temporary file that no event explains."""
    blobs = tuple((digest_of(data) if isinstance(data, bytes) else data.digest, data) for data in contents)
    events = tuple(
        NewEvent(f"stray:{path}", OrphanContentKept(path=path, digest=digest, size=len(data), change=change))
        for digest, data in blobs
    )
    return AppendBatch(events, Origin(cause=change), blobs)


def _abort_cause(error: ChangedMeanwhile | OrchestratorError | OSError) -> AbortCause:
    match error:
        case ChangedMeanwhile():
            return "stale"
        case DiskFull():
            return "disk_full"
        case FileBusy():
            return "file_busy"
        case OrchestratorError() if not isinstance(error, WritesStopped | IoFailed):
            return "refused"
        case _:
            return "io_error"
