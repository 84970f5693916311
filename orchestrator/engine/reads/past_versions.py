"""Versions of files as they were, as far as a caller may be shown them."""

from __future__ import annotations

from orchestrator.core.errors import BinaryFile, Denied, FileNotFound, VersionNotKept
from orchestrator.core.ids import Digest, Seq, WorkspacePath, show
from orchestrator.core.projections.history import VersionRow
from orchestrator.core.text.encoding import Document
from orchestrator.engine.caller import Caller
from orchestrator.engine.services import Services

HINT = "file_history lists its versions."

PAGE = 200
"""Versions that the journal gives at once."""


class PastVersions:
    """Fetches versions and their contents.

    A caller may be shown an old version only if it may read every name that the file had until then. What stands
    at a path now is shown by its path alone, like on the disk.
    """

    def __init__(self, services: Services) -> None:
        self._journal, self._contents = services.journal, services.contents
        self._registry, self._permissions = services.state.registry, services.permissions

    async def at(self, path: WorkspacePath, at: Seq, *, hint: str = HINT) -> VersionRow:
        """The version that stood at a path. Raises FileNotFound."""
        row = await self._journal.version_at(path, at)
        if row is None or not row.present:
            raise FileNotFound(path, f"it was not there at {show(at)}", hint=hint)
        return row

    async def content(self, path: WorkspacePath, version: Seq, digest: Digest | None) -> tuple[Digest, bytes]:
        """The content of a version. Raises VersionNotKept."""
        if digest is None:
            raise VersionNotKept(f"the content of {path} at {show(version)} was never hashed")
        return digest, await self._contents.need(digest, f"{path} at {show(version)}")

    async def text(self, path: WorkspacePath, version: Seq, digest: Digest | None) -> Document:
        """The same, decoded. Raises VersionNotKept, BinaryFile."""
        document = await self._contents.text(*await self.content(path, version, digest))
        if document is None:
            raise BinaryFile(path, f"its content at {show(version)} is not text")
        return document

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
        entry = self._registry.get(row.path)
        if not row.present or (entry is not None and entry.version == row.seq):
            return True
        return all(self._permissions.readable(caller, name) for name in await self._names(row))

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
        while rows := await self._journal.versions(path, limit=PAGE, before=before):
            for row in rows:
                if row.moved_from is not None:
                    return row.moved_from, int(row.seq)
                made = not row.present and newer is not None and not newer.undoes  # an undo brings the same file back
                if made:
                    return None, 0
                newer = row
            before = int(rows[-1].seq)
        return None, 0
