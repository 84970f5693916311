"""All that one change does to the disk, path by path; a later part that fails rolls back what was committed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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


class WriteBatch:
    """The writes of one change, in order. Blocking; run it off the loop."""

    def __init__(self, workspace: Workspace, changes: Iterable[DiskChange]) -> None:
        self.changes = tuple(changes)
        self._writes = tuple((change.path, workspace.atomic_write(change)) for change in self.changes)

    @property
    def warnings(self) -> tuple[str, ...]:
        if len(self._writes) == 1:
            return self._writes[0][1].warnings
        return tuple(f"{path}: {warning}" for path, write in self._writes for warning in write.warnings)

    def stage(self) -> None:
        """Every temporary file, written and synced. Raises as `AtomicWrite.stage`; nothing is left behind then."""
        try:
            for _, write in self._writes:
                write.stage()
        except Exception:
            self.abandon()
            raise

    def commit(self) -> dict[WorkspacePath, FileStat | None]:
        """Each path's stat afterwards.

        Raises as `AtomicWrite.commit`; then none of the paths is changed, save after WritesStopped
        (recovery finds out) and RollbackIncomplete (these paths hold another program's content).
        """
        stats: dict[WorkspacePath, FileStat | None] = {}
        committed: list[AtomicWrite] = []
        try:
            for path, write in self._writes:
                stats[path] = write.commit()
                committed.append(write)
        except WritesStopped:
            raise
        except (ChangedMeanwhile, OrchestratorError, OSError) as error:
            first = (error,) if isinstance(error, ChangedMeanwhile) and error.diverged else ()
            if left := (*first, *self._roll_back(committed)):
                raise RollbackIncomplete(left) from error
            raise
        return stats

    @staticmethod
    def _roll_back(committed: list[AtomicWrite]) -> list[ChangedMeanwhile]:
        """In the opposite order; the result is those that stay, because another program wrote there since."""
        left = []
        for write in reversed(committed):
            try:
                write.roll_back()
            except ChangedMeanwhile as displaced:
                left.append(displaced)
        return left

    def finish(self) -> dict[WorkspacePath, tuple[bytes, ...]]:
        """Unlink what was swapped out, except contents that must be kept first; call it again when they are."""
        return {path: left for path, write in self._writes if (left := write.finish())}

    def abandon(self) -> None:
        """Remove what was staged and will not be committed. Safe at any point, twice too."""
        for _, write in reversed(self._writes):
            write.abandon()

    def release(self) -> None:
        """Close every handle; what is on disk stays, for recovery to find out."""
        for _, write in self._writes:
            write.release()


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
