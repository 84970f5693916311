"""All that one change does to the disk, path by path; what has landed is taken back when a later part can't land."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from orchestrator.core.errors import OrchestratorError, WritesStopped
from orchestrator.core.ids import WorkspacePath
from orchestrator.ports.workspace import AtomicWrite, DiskChange, Displaced, FileStat, Workspace


class RollbackIncomplete(Exception):
    """Somebody's content came between a second time; these paths could not be put back, the others are."""

    def __init__(self, displaced: tuple[Displaced, ...]) -> None:
        super().__init__(", ".join(item.path for item in displaced))
        self.displaced = displaced


class OrphanContent(msgspec.Struct, frozen=True):
    """Bytes that stood in a temporary file and that no event explains."""

    path: WorkspacePath
    data: bytes


class WriteBatch:
    """The landings of one change, in order. Blocking; run it off the loop."""

    def __init__(self, workspace: Workspace, changes: Iterable[DiskChange]) -> None:
        self.changes = tuple(changes)
        self._landings = tuple(workspace.landing(change) for change in self.changes)

    @property
    def warnings(self) -> tuple[str, ...]:
        if len(self._landings) == 1:
            return self._landings[0].warnings
        return tuple(
            f"{change.path}: {warning}"
            for change, landing in zip(self.changes, self._landings, strict=True)
            for warning in landing.warnings
        )

    def stage(self) -> None:
        """Every temporary file, written and synced. Raises as `AtomicWrite.stage`; nothing is left behind then."""
        try:
            for landing in self._landings:
                landing.stage()
        except Exception:
            self.abandon()
            raise

    def land(self) -> dict[WorkspacePath, FileStat | None]:
        """Each path's stat afterwards.

        Raises as `AtomicWrite.commit`; then none of the paths is changed, save after WritesStopped
        (recovery finds out) and RollbackIncomplete (these paths hold somebody else's content).
        """
        stats: dict[WorkspacePath, FileStat | None] = {}
        landed: list[AtomicWrite] = []
        try:
            for change, landing in zip(self.changes, self._landings, strict=True):
                stats[change.path] = landing.commit()
                landed.append(landing)
        except WritesStopped:
            raise
        except (Displaced, OrchestratorError, OSError) as error:
            first = (error,) if isinstance(error, Displaced) and error.diverged else ()
            apart = (*first, *self._take_back(landed))
            if apart:
                raise RollbackIncomplete(apart) from error
            raise
        return stats

    @staticmethod
    def _take_back(landed: list[AtomicWrite]) -> list[Displaced]:
        """In the opposite order; those that stay, because somebody wrote there since."""
        apart = []
        for landing in reversed(landed):
            try:
                landing.roll_back()
            except Displaced as displaced:
                apart.append(displaced)
        return apart

    def finish(self) -> list[OrphanContent]:
        """Unlink what was swapped out, but for what must be kept first; call again when it is."""
        strays: list[OrphanContent] = []
        for change, landing in zip(self.changes, self._landings, strict=True):
            strays += (OrphanContent(change.path, data) for data in landing.finish())
        return strays

    def abandon(self) -> None:
        """Take away what was staged and will not land. Safe at any point, twice too."""
        for landing in reversed(self._landings):
            landing.abandon()
