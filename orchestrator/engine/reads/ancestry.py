"""Old contents, and the names that they stood under before the one they are asked for by."""

from __future__ import annotations

from orchestrator.core.errors import Denied
from orchestrator.core.ids import WorkspacePath, show
from orchestrator.core.projections.history import VersionRow
from orchestrator.engine.caller import Caller
from orchestrator.engine.services import Services

PAGE = 200
"""Versions that the journal gives at once."""


class Ancestry:
    """Whether a caller may be shown an old version: only if it may read every name that the file had until then.

    What stands at a path now is shown by its path alone, like on the disk.
    """

    def __init__(self, services: Services) -> None:
        self._s = services

    async def permit(self, caller: Caller, row: VersionRow) -> None:
        """Raises Denied, without the other name."""
        if not await self.readable(caller, row):
            raise Denied(
                f"read {row.path} at {show(row.seq)}: that content stood under a name whose content is not shown",
                hint="Read the file as it is now.",
                details={"path": row.path, "version_id": show(row.seq)},
            )

    async def readable(self, caller: Caller, row: VersionRow) -> bool:
        """Whether a version may be shown. Cost: O(versions of the file before it)."""
        entry = self._s.state.registry.get(row.path)
        if not row.present or (entry is not None and entry.version == row.seq):
            return True
        return all(self._s.readable(caller, name) for name in await self._names(row))

    async def _names(self, row: VersionRow) -> set[WorkspacePath]:
        """The names that the file had until this version, which is in them."""
        path: WorkspacePath | None = row.path
        names: set[WorkspacePath] = set()
        until = int(row.seq) + 1
        while path is not None:
            names.add(path)
            path, until = await self._came_from(path, until)
        return names

    async def _came_from(self, path: WorkspacePath, before: int) -> tuple[WorkspacePath | None, int]:
        """Where the file that stood at a path came from, and before which version; None: it was made there."""
        newer: VersionRow | None = None
        while rows := await self._s.journal.versions(path, limit=PAGE, before=before):
            for row in rows:
                if row.moved_from is not None:
                    return row.moved_from, int(row.seq)
                made = not row.present and newer is not None and not newer.undoes  # an undo brings the same file back
                if made:
                    return None, 0
                newer = row
            before = int(rows[-1].seq)
        return None, 0
