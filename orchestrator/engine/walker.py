"""Names in the workspace: a directory, or everything below it, without what is ignored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec

from orchestrator.core.errors import PathError
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import ROOT, join
from orchestrator.ports.workspace import FileStat, Ignore, ListedName, Workspace


class Walked(msgspec.Struct, frozen=True):
    """One name; `valid` False breaks the name rule and is shown escaped, never opened."""

    path: WorkspacePath
    name: str
    stat: FileStat
    valid: bool


def below(start: WorkspacePath, path: WorkspacePath) -> WorkspacePath:
    """A path as globs see it: relative to where a walk starts."""
    return path if start == ROOT else WorkspacePath(path[len(start) + 1 :])


class Walker:
    """Walks by directory handles; blocking, so it is run in a worker thread."""

    def __init__(self, workspace: Workspace, ignore: Ignore) -> None:
        self._workspace, self._ignore = workspace, ignore

    def walk(self, start: WorkspacePath, *, depth: int | None = None, hidden: bool = True) -> Iterator[Walked]:
        """Everything below `start`, directories before what is in them, names in order.

        `depth` 1 is the directory itself. A start that is itself ignored is shown whole: who
        names it wants it. Raises FileNotFound, NotADirectory for the start only.
        """
        self._ignore.refresh()
        ignoring = start == ROOT or not self._ignore.ignored(start, directory=True)
        levels = [iter(self._sorted(start))]
        folders = [start]
        while levels:
            listed = next(levels[-1], None)
            if listed is None:
                levels.pop()
                folders.pop()
                continue
            if not hidden and listed.name.startswith("."):
                continue
            path = join(folders[-1], listed.name)
            is_directory = listed.stat.kind == "directory"
            if ignoring and listed.valid and self._ignore.ignored(path, directory=is_directory):
                continue
            yield Walked(path, listed.name, listed.stat, listed.valid)
            if is_directory and listed.valid and len(levels) != depth:
                with suppress(PathError):  # gone, or closed to us, since its parent was read
                    levels.append(iter(self._sorted(path)))
                    folders.append(path)

    def _sorted(self, directory: WorkspacePath) -> list[ListedName]:
        return sorted(self._workspace.names(directory), key=lambda item: item.name)
