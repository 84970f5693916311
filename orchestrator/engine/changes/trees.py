"""The files of a directory, as a change of the directory takes them."""

from __future__ import annotations

from anyio import to_thread

from orchestrator.core.errors import NothingToChange, ParameterInvalid
from orchestrator.core.ids import WorkspacePath
from orchestrator.engine.services import Services
from orchestrator.engine.walker import Walker

MOST_FILES = 5000
"""In one change; each is opened, proven and synced by itself."""


class Trees:
    """Lists what lies below a directory: what is tracked, and what is not ignored."""

    def __init__(self, services: Services) -> None:
        self._s = services
        self._walker = Walker(services.workspace, services.ignore)

    async def files(self, directory: WorkspacePath) -> tuple[WorkspacePath, ...]:
        """In order. Ignored files that no one tracks are left out: they stay where they are.

        Raises NothingToChange for an empty directory, ParameterInvalid beyond MOST_FILES.
        """
        found = set(await to_thread.run_sync(self._walk, directory))
        start = f"{directory}/"
        found |= {entry.path for entry in self._s.state.registry.files() if entry.path.startswith(start)}
        if not found:
            raise NothingToChange(
                f"{directory} holds no file that is tracked",
                hint="Directories themselves are not kept in history. A person can remove an empty one with rmdir; "
                "files can be written to it, or a folder moved onto it.",
            )
        if len(found) > MOST_FILES:
            raise ParameterInvalid(
                "path", f"{directory} holds {len(found)} files; one change takes {MOST_FILES}", hint="Go by its parts."
            )
        return tuple(sorted(found))

    def _walk(self, directory: WorkspacePath) -> list[WorkspacePath]:
        return [item.path for item in self._walker.walk(directory) if item.stat.kind == "file" and item.valid]
