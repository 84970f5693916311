"""All that one change does to the disk, path by path; a later part that fails rolls back what was committed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType

import anyio

from orchestrator.core.change import Directories, PathChange
from orchestrator.core.content import Signature
from orchestrator.core.errors import OrchestratorError, WritesStopped
from orchestrator.core.ids import WorkspacePath
from orchestrator.ports.workspace import AtomicWrite, ChangedMeanwhile, DiskChange, FileStat, Streamed, Workspace


class RollbackIncomplete(Exception):
    """Another program wrote a second time; these paths could not be rolled back, the others are."""

    def __init__(self, displaced: tuple[ChangedMeanwhile, ...]) -> None:
        super().__init__(", ".join(item.path for item in displaced))
        self.displaced = displaced


MANY = 32
"""Of more paths than this, none is held open from one step to the next: descriptors are few."""

LANES = 8
"""Threads that many paths share: a file system syncs for all who wait at once."""

Entry = tuple[WorkspacePath, AtomicWrite]


class WriteBatch:
    """The writes of one change: those of a few paths in order, those of many beside one another."""

    def __init__(self, workspace: Workspace, changes: Iterable[DiskChange]) -> None:
        self.changes = tuple(changes)
        self._workspace = workspace
        self._writes = tuple((change.path, workspace.atomic_write(change)) for change in self.changes)
        self._many = len(self._writes) > MANY
        self._makers = _making_directories(self.changes)
        self._moves = _sharing_directories(self.changes)

    @property
    def warnings(self) -> tuple[str, ...]:
        if len(self._writes) == 1:
            return self._writes[0][1].warnings
        return tuple(f"{path}: {warning}" for path, write in self._writes for warning in write.warnings)

    async def stage(self) -> None:
        """Every temporary file, written and synced. Raises as `AtomicWrite.stage`; nothing is left behind then."""
        # Who makes a directory goes before all who write to it; `abandon` removes it after them.
        raised = await self._each(self._writes, lambda path, write: write.stage(), together=self._makers)
        if raised:
            await self.abandon()
            raise raised[0]

    async def commit(self) -> dict[WorkspacePath, FileStat | None]:
        """Each path's stat afterwards.

        Raises as `AtomicWrite.commit`; then none of the paths is changed, save after WritesStopped
        (recovery finds out) and RollbackIncomplete (these paths hold another program's content).
        """
        stats: dict[WorkspacePath, FileStat | None] = {}
        committed: list[Entry] = []

        def commit(path: WorkspacePath, write: AtomicWrite) -> None:
            stats[path] = write.commit()
            committed.append((path, write))

        raised = await self._each(self._writes, commit, together=self._moves)
        if not raised:
            return stats
        stopped = [error for error in raised if isinstance(error, WritesStopped)]
        if stopped:
            raise stopped[0]
        diverged = [error for error in raised if isinstance(error, ChangedMeanwhile) and error.diverged]
        if left := (*diverged, *await self._roll_back(committed)):
            raise RollbackIncomplete(left) from raised[0]
        raise raised[0]

    async def _roll_back(self, committed: Sequence[Entry]) -> list[ChangedMeanwhile]:
        """In the opposite order; the result is those that stay, because another program wrote there since."""
        left: list[ChangedMeanwhile] = []

        def roll_back(path: WorkspacePath, write: AtomicWrite) -> None:
            try:
                write.roll_back()
            except ChangedMeanwhile as displaced:
                left.append(displaced)

        if raised := await self._each(committed[::-1], roll_back, together=self._moves):
            raise raised[0]
        return left

    async def finish(self) -> dict[WorkspacePath, tuple[bytes, ...]]:
        """Unlink what was swapped out, except contents that must be kept first; call it again when they are."""
        left: dict[WorkspacePath, tuple[bytes, ...]] = {}

        def finish(path: WorkspacePath, write: AtomicWrite) -> None:
            if contents := write.finish():
                left[path] = contents

        if raised := await self._each(self._writes, finish):
            raise raised[0]
        return left

    async def abandon(self) -> None:
        """Remove what was staged and will not be committed. Safe at any point, twice too."""

        def abandon() -> None:
            for _, write in reversed(self._writes):
                write.abandon()

        await self._workspace.off_loop(abandon)

    async def release(self) -> None:
        """Close every handle; what is on disk stays, for recovery to find out."""

        def release() -> None:
            for _, write in self._writes:
                write.release()

        await self._workspace.off_loop(release)

    async def _each(
        self,
        entries: Sequence[Entry],
        work: Callable[[WorkspacePath, AtomicWrite], None],
        *,
        together: Mapping[WorkspacePath, str] = MappingProxyType({}),
    ) -> list[Exception]:
        """Do it for each; what was raised. Once something was, no other is begun.

        Of many, those that are named go first, one after another where they go `together`; then the others.
        """
        if not self._many:
            return await self._in_lanes(1, [entries], work)
        groups: dict[str, list[Entry]] = {}
        for entry in entries:
            if entry[0] in together:
                groups.setdefault(together[entry[0]], []).append(entry)
        others = [[entry] for entry in entries if entry[0] not in together]
        return await self._in_lanes(LANES, groups.values(), work) or await self._in_lanes(LANES, others, work)

    async def _in_lanes(
        self, lanes: int, groups: Collection[Sequence[Entry]], work: Callable[[WorkspacePath, AtomicWrite], None]
    ) -> list[Exception]:
        raised: list[Exception] = []
        left = iter(groups)

        def lane() -> None:
            for path, write in chain.from_iterable(left):
                try:
                    work(path, write)
                except (ChangedMeanwhile, OrchestratorError, OSError) as error:
                    raised.append(error)
                if self._many:
                    write.release()
                if raised:
                    return

        lanes = min(lanes, len(groups))
        if lanes == 1:
            await self._workspace.off_loop(lane)
            return raised
        async with anyio.create_task_group() as tasks:
            for _ in range(lanes):
                tasks.start_soon(self._workspace.off_loop, lane)
        return raised


def _making_directories(changes: Iterable[DiskChange]) -> dict[WorkspacePath, str]:
    """Which of those that make directories go together: those that make one in another's, by the outermost."""
    outermost: dict[str, str] = {}
    makers: dict[WorkspacePath, str] = {}
    for change in changes:
        if change.parents:
            first = change.parents[0]
            makers[change.path] = outermost.get(first.rpartition("/")[0], first)
            outermost |= dict.fromkeys(change.parents, makers[change.path])
    return makers


def _sharing_directories(changes: Iterable[DiskChange]) -> dict[WorkspacePath, str]:
    """Which moves go together: those that share a directory with one another, by a directory of theirs.

    One that a file left must not be synced before the one that it came to, lest it be nowhere after a crash.
    """
    above: dict[str, str] = {}

    def first(directory: str) -> str:
        while (up := above.setdefault(directory, directory)) != directory:
            above[directory] = directory = above.setdefault(up, up)
        return directory

    moves = [(change.path, change.moved_from) for change in changes if change.moved_from is not None]
    for path, source in moves:
        above[first(source.rpartition("/")[0])] = first(path.rpartition("/")[0])
    return {path: first(path.rpartition("/")[0]) for path, _ in moves}


def touching(paths: Sequence[PathChange]) -> tuple[PathChange, ...]:
    """The paths that the disk is touched for: of a rename, the destination."""
    left = {change.moved_from for change in paths if change.renamed}
    return tuple(change for change in paths if change.path not in left)


def disk_change(
    change: PathChange,
    data: bytes | Streamed | None,
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


def remove_emptied(workspace: Workspace, directories: Directories) -> None:
    """Remove the directories that a change was to leave empty, where nothing is left in them. Blocking."""
    for path in directories.emptied:
        workspace.remove_empty(path)
    for path in directories.unmade:
        workspace.remove_empty(path, below=False)
