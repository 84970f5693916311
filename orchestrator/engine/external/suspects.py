"""Which paths are worth a look: those whose stat is not what the registry says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from orchestrator.core.errors import NotADirectory, PathError, SymlinkRefused
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import ancestors
from orchestrator.engine.services import Services
from orchestrator.engine.walker import Walker
from orchestrator.ports.watcher import Hints
from orchestrator.ports.workspace import FileStat, ScanResult, Workspace


class Suspects(msgspec.Struct, frozen=True):
    """Paths to look at under their locks; what is said of them here is a hint still."""

    sizes: dict[WorkspacePath, int]  # in path order; 0 for what is gone
    gone: frozenset[WorkspacePath]  # tracked, and no file any more
    came: frozenset[WorkspacePath]  # a file that is not tracked, or not the one that the registry knows


def standing(workspace: Workspace, path: WorkspacePath) -> FileStat | None:
    """The stat of a regular file; None for whatever is none, or below what is no directory. Raises PathError."""
    try:
        stat = workspace.stat(path)
    except (NotADirectory, SymlinkRefused):  # of a directory above it
        return None
    return stat if stat is not None and stat.kind == "file" else None


class Sifter:
    """Blocking: run it in a worker thread."""

    def __init__(self, services: Services) -> None:
        self._s = services
        self._walker = Walker(services.workspace, services.ignore)

    def of_hints(self, hints: Hints) -> Suspects:
        """Of what a watcher named: files, directories that came with all in them, and those that went."""
        sieve = _Sieve(self._s)
        self._s.ignore.refresh()
        for path in hints.paths:
            if self._s.state.registry.get(path) is not None or not self._s.ignore.ignored(path, directory=False):
                sieve.look(path)
        for folder in hints.folders:
            for path, stat in self._below(folder):
                sieve.add(path, stat)
        if hints.folders:
            for path in self._s.state.registry.paths():
                if not hints.folders.isdisjoint(ancestors(path)):
                    sieve.look(path)
        return sieve.suspects

    def of_scan(self, result: ScanResult) -> Suspects:
        """Of the whole tree. What is tracked and was not met is asked for: it may be ignored by now."""
        sieve = _Sieve(self._s)
        met = set()
        for item in result.files:
            met.add(item.path)
            entry = self._s.state.registry.get(item.path)
            if entry is None or entry.signature != item.signature or entry.mode != item.mode:
                sieve.look(item.path)
        for path in self._s.state.registry.paths():
            if path not in met:
                sieve.look(path)
        return sieve.suspects

    def _below(self, folder: WorkspacePath) -> Iterator[tuple[WorkspacePath, FileStat]]:
        if self._s.ignore.ignored(folder, directory=True):
            return
        try:
            for item in self._walker.walk(folder):
                if item.valid and item.stat.kind == "file":
                    yield item.path, item.stat
        except PathError:
            return  # gone again, or no directory


class _Sieve:
    """Keeps what differs from the registry."""

    def __init__(self, services: Services) -> None:
        self._s = services
        self._sizes: dict[WorkspacePath, int] = {}
        self._gone: set[WorkspacePath] = set()
        self._came: set[WorkspacePath] = set()

    @property
    def suspects(self) -> Suspects:
        ordered = {path: self._sizes[path] for path in sorted(self._sizes)}
        return Suspects(ordered, frozenset(self._gone), frozenset(self._came))

    def look(self, path: WorkspacePath) -> None:
        if path in self._sizes:
            return
        try:
            stat = standing(self._s.workspace, path)
        except PathError:
            return  # unreadable now; it is looked at again when somebody touches it
        self.add(path, stat)

    def add(self, path: WorkspacePath, stat: FileStat | None) -> None:
        entry = self._s.state.registry.get(path)
        if stat is None:
            if entry is not None:
                self._sizes[path] = 0
                self._gone.add(path)
            return
        if entry is not None and (entry.signature, entry.mode) == (stat.signature, stat.mode):
            if path not in self._s.suspect:
                return
        else:
            self._came.add(path)
        self._sizes[path] = stat.signature.size


def chunked(sizes: dict[WorkspacePath, int], *, most: int, most_bytes: int) -> Iterator[tuple[WorkspacePath, ...]]:
    """In order, so many paths and so many bytes at most; a larger file stands alone."""
    chunk: list[WorkspacePath] = []
    held = 0
    for path, size in sizes.items():
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
