"""Which paths are worth a look: those whose stat is not what the registry says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from orchestrator.core.errors import NotADirectory, PathError, SymlinkRefused
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import ancestors
from orchestrator.engine.services import Services
from orchestrator.engine.walker import Walker
from orchestrator.ports.watcher import Hints
from orchestrator.ports.workspace import FileStat, ScanResult, Workspace


def standing(workspace: Workspace, path: WorkspacePath) -> FileStat | None:
    """The stat of a regular file; None for whatever is none, or below what is no directory. Raises PathError."""
    try:
        stat = workspace.stat(path)
    except (NotADirectory, SymlinkRefused):  # of a directory above it
        return None
    return stat if stat is not None and stat.kind == "file" else None


class Suspects:
    """Paths to look at under their locks; what is said of them here is a hint still. Blocking: run it in a thread."""

    def __init__(self, services: Services) -> None:
        self._s, self._walker = services, Walker(services.workspace, services.ignore)
        self.sizes: dict[WorkspacePath, int] = {}
        """0 for what is gone."""
        self.gone: set[WorkspacePath] = set()
        """Tracked, and no file any more."""
        self.came: set[WorkspacePath] = set()
        """A file that is not tracked, or not the one that the registry knows."""

    @classmethod
    def of_hints(cls, services: Services, hints: Hints) -> Suspects:
        """Of what a watcher named: files, directories that came with all in them, and those that went."""
        found, registry, ignore = cls(services), services.state.registry, services.ignore
        ignore.refresh()
        for path in hints.paths:
            if registry.get(path) is not None or not ignore.ignored(path, directory=False):
                found._look(path)
        for folder in hints.folders:
            with suppress(PathError):  # gone again, or no directory
                for item in () if ignore.ignored(folder, directory=True) else found._walker.walk(folder):
                    if item.valid and item.stat.kind == "file":
                        found._add(item.path, item.stat)
        if hints.folders:
            for path in registry.paths():
                if not hints.folders.isdisjoint(ancestors(path)):
                    found._look(path)
        return found

    @classmethod
    def of_scan(cls, services: Services, result: ScanResult) -> Suspects:
        """Of the whole tree. What is tracked and was not met is asked for: it may be ignored by now."""
        found, met = cls(services), set()
        for item in result.files:
            met.add(item.path)
            entry = services.state.registry.get(item.path)
            if entry is None or entry.signature != item.signature or entry.mode != item.mode:
                found._look(item.path)
        for path in services.state.registry.paths():
            if path not in met:
                found._look(path)
        return found

    def _look(self, path: WorkspacePath) -> None:
        if path not in self.sizes:
            with suppress(PathError):  # unreadable now; it is looked at again when somebody touches it
                self._add(path, standing(self._s.workspace, path))

    def _add(self, path: WorkspacePath, stat: FileStat | None) -> None:
        entry = self._s.state.registry.get(path)
        if stat is None:
            if entry is not None:
                self.sizes[path] = 0
                self.gone.add(path)
            return
        if entry is None or (entry.signature, entry.mode) != (stat.signature, stat.mode):
            self.came.add(path)
        elif path not in self._s.suspect:
            return
        self.sizes[path] = stat.signature.size


def chunked(sizes: dict[WorkspacePath, int], *, most: int, most_bytes: int) -> Iterator[tuple[WorkspacePath, ...]]:
    """In the order of their paths, so many paths and so many bytes at most; a larger file stands alone."""
    chunk: list[WorkspacePath] = []
    held = 0
    for path, size in sorted(sizes.items()):
        if chunk and (len(chunk) >= most or held + size > most_bytes):
            yield tuple(chunk)
            chunk, held = [], 0
        chunk.append(path)
        held += size
    if chunk:
        yield tuple(chunk)


def paired(
    gone: Iterable[tuple[WorkspacePath, str]], came: Iterable[tuple[WorkspacePath, str]]
) -> dict[WorkspacePath, WorkspacePath]:
    """Which path (key) now holds what a gone one held, by digest; only where no other on either side does."""
    left, right = _alone(gone), _alone(came)
    return {right[digest]: path for digest, path in left.items() if path is not None and right.get(digest)}  # type: ignore[misc]


def _alone(items: Iterable[tuple[WorkspacePath, str]]) -> dict[str, WorkspacePath | None]:
    """By digest; None where several have it."""
    found: dict[str, WorkspacePath | None] = {}
    for path, digest in items:
        found[digest] = None if digest in found else path
    return found
