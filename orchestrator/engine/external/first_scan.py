"""The files of a workspace that the daemon sees for the first time."""

from __future__ import annotations

from functools import partial

from anyio import from_thread

from orchestrator.core.content import FoundFile, Signature
from orchestrator.core.events.base import Origin
from orchestrator.core.events.files import FilesFound
from orchestrator.core.ids import WorkspacePath
from orchestrator.engine.services import Services

ENTRIES = 500
"""Files in one FilesFound at most."""

STREAM = "workspace"


class FirstScan:
    """Appends the files that it meets, some at a time, so that a large tree is never held as a whole."""

    def __init__(self, services: Services) -> None:
        self._registry, self._notes = services.state.registry, services.notes
        self._found: list[FoundFile] = []

    def takes(self, path: WorkspacePath, signature: Signature, mode: int) -> bool:
        """In a worker thread. False: an earlier one, that was cut short, met it otherwise."""
        if self._registry.get(path) is not None:
            return self._registry.knows(path, signature, mode)
        self._found.append(FoundFile(path, signature, mode))
        if len(self._found) == ENTRIES:
            from_thread.run(partial(self._append, more=True))
        return True

    async def end(self) -> None:
        """All were met."""
        await self._append(more=False)

    async def _append(self, *, more: bool) -> None:
        entries, self._found = tuple(sorted(self._found, key=lambda found: found.path)), []
        await self._notes.append(Origin(), (STREAM, FilesFound(entries=entries, more=more)))
