"""Imports many external changes in few commits; other callers have their turns between.

At a start what the disk holds is compared with what the journal says; in the background the contents that the
journal lacks are kept; and while the daemon serves, what a watcher hints at is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

import anyio
from anyio import to_thread

from orchestrator.core.content import FoundFile, Signature
from orchestrator.core.errors import FileNotFound, NotADirectory, PathError, SymlinkRefused
from orchestrator.core.events.files import FilesFound
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.kept_contents import Candidate, budget, worth_keeping
from orchestrator.core.paths import ancestors
from orchestrator.engine.external.first_scan import STREAM, FirstScan
from orchestrator.engine.external.observer import MetFile, Observer
from orchestrator.engine.names import Names
from orchestrator.engine.paths import Walker
from orchestrator.engine.services import Services
from orchestrator.logs import logger
from orchestrator.ports.journal import NewContent, NewEvent, StreamMoved
from orchestrator.ports.workspace import FileStat, Hints, Known, ScanResult

PATHS = 100
"""In one append at most: their locks are held together, so this bounds how long a caller waits for one of them."""

KEPT_AT_ONCE = 10_000
"""Files of which the stats are held while contents are kept in the background."""

CHUNK_BYTES = 8 * 1024 * 1024

TRIES = 3

Suspects = dict[WorkspacePath, FileStat | None]
"""Paths to look at under their locks, each with the stat of a regular file; None where there is none any more."""

Renames = Mapping[WorkspacePath, WorkspacePath]
"""The other end of each rename; a path may hold another file by now."""


class BatchImporter:
    """Looks at many files, and appends events for those of which the journal has to know more."""

    def __init__(self, services: Services, observer: Observer, names: Names) -> None:
        self._s, self._observer, self._names = services, observer, names
        self._walker = Walker(services.workspace, services.ignore)
        self._log = logger("watching")
        self.skipped: dict[str, int] = {}
        """What the start scan left out: how many names, by reason."""
        self.beyond_budget = 0
        """The files whose contents found no room in the policy's budget when `keep` began."""
        self.kept = anyio.Event()
        """Set when `keep` is over."""

    async def scan(self) -> None:
        """Before the daemon listens: new files are found; changed and missing ones become one external batch."""
        registry, first = self._s.state.registry, FirstScan(self._s)
        known = registry.knows if registry.start is not None else first.takes  # also where a crash cut it short
        result = await to_thread.run_sync(self._scan, known)
        self.skipped = result.skipped
        if registry.start is None:
            await first.end()
        self._observer.scanned = True
        async with self._observer.burst("scan"):
            await self._import(await to_thread.run_sync(self._scanned, result))

    async def keep(self) -> None:
        """In the background: hash and keep contents up to the policy's `keep_max_bytes`, within its budget for all.

        Not of what everybody is denied to read: that is kept where it is to be changed.
        """
        try:
            chosen = await to_thread.run_sync(self._unkept)
            for start in range(0, len(chosen), KEPT_AT_ONCE):
                some = chosen[start : start + KEPT_AT_ONCE]
                await self._import(await to_thread.run_sync(self._regular_of, some))
        finally:
            self.kept.set()

    async def rescan(self) -> None:
        """Import all that differs in the whole tree. Raises DiskFull, WritesStopped."""
        result = await to_thread.run_sync(self._scan, self._s.state.registry.knows)
        await self._import(await to_thread.run_sync(self._scanned, result))

    async def import_hints(self, hints: Hints) -> None:
        """Import what a watcher named. Raises DiskFull, WritesStopped."""
        await self._import(await to_thread.run_sync(self._hinted, hints))

    # --- suspects, blocking -------------------------------------------------------------

    def _scan(self, known: Known) -> ScanResult:
        self._names.begin()
        result = self._s.workspace.scan(known)
        self._names.take(result)
        return result

    def _hinted(self, hints: Hints) -> Suspects:
        """Of files, directories that were added with all in them, and those that were removed."""
        found, registry, ignore = Suspects(), self._s.state.registry, self._s.ignore
        ignore.refresh()
        for path in hints.paths:
            if registry.get(path) is not None or not ignore.ignored(path, directory=False):
                self._look(found, path)
        for folder in hints.folders:
            with suppress(PathError):  # gone again, or no directory
                for item in () if ignore.ignored(folder, directory=True) else self._walker.walk(folder):
                    if item.valid and item.stat.kind == "file":
                        self._suspect(found, item.path, item.stat)
        if hints.folders:
            for path in registry.paths():
                if not hints.folders.isdisjoint(ancestors(path)):
                    self._look(found, path)
        return found

    def _scanned(self, result: ScanResult) -> Suspects:
        """What is tracked and was not met is looked at too: it may be ignored by now."""
        found, registry, met = Suspects(), self._s.state.registry, {*result.lines}
        for item in result.files:
            if not registry.knows(item.path, item.signature, item.mode):
                self._look(found, item.path)
        for path in registry.paths():
            if path not in met:
                self._look(found, path)
        return found

    def _unkept(self) -> list[WorkspacePath]:
        """What is tracked and may be kept, and is not, as far as there is room for it."""
        registry, kept, total = self._s.state.registry, 0, 0
        candidates: list[Candidate] = []
        for path in registry.paths():
            entry = registry.get(path)
            if entry is None or entry.signature is None:
                continue  # removed since; or a change wrote it, and kept its content
            size = entry.signature.size
            total += size
            if entry.kept:
                kept += size
            elif self._keeps(path, size):
                candidates.append(Candidate(path, size, entry.signature.mtime_ns))
        room = max(0, budget(self._s.permissions.policy.external, total) - kept)
        fit = sum(item.size for item in candidates) <= room
        chosen = candidates if fit else worth_keeping(candidates, room)
        self.beyond_budget = len(candidates) - len(chosen)
        return sorted(item.path for item in chosen)

    def _regular_of(self, paths: list[WorkspacePath]) -> Suspects:
        stats = zip(paths, self._s.workspace.stats(paths), strict=True)
        return {path: stat for path, stat in stats if stat is not None and stat.kind == "file"}

    def _look(self, found: Suspects, path: WorkspacePath) -> None:
        if path not in found:
            with suppress(PathError):  # unreadable now; it is looked at again when somebody touches it
                self._suspect(found, path, self._regular(path))

    def _suspect(self, found: Suspects, path: WorkspacePath, stat: FileStat | None) -> None:
        entry = self._s.state.registry.get(path)
        if entry is None or stat is None:
            differs = entry is not None or stat is not None
        else:
            differs = not self._observer.unmoved(entry, stat)
        if differs:
            found[path] = stat

    def _regular(self, path: WorkspacePath) -> FileStat | None:
        """The stat of a regular file; None for whatever is none, or below what is no directory. Raises PathError."""
        try:
            stat = self._s.workspace.stat(path)
        except (NotADirectory, SymlinkRefused):  # of a directory above it
            return None
        return stat if stat is not None and stat.kind == "file" else None

    def _keeps(self, path: WorkspacePath, size: int) -> bool:
        """Whether the content of a file is kept when it is met."""
        small = size <= self._s.permissions.policy.external.keep_max_bytes
        return small and not self._s.permissions.hidden_from_all(path)

    def _renames(self, suspects: Suspects) -> Renames:
        """Where the content of a new path was before. Only files as large as a gone one are read for it."""
        gone: list[tuple[WorkspacePath, str]] = []
        sizes: set[int] = set()
        for path, stat in suspects.items():
            entry = self._s.state.registry.get(path)
            if stat is None and entry is not None and entry.signature is not None and entry.signature.size:
                gone.append((path, entry.digest or _identity(entry.signature)))
                sizes.add(entry.signature.size)
        known = {content for _, content in gone}
        came: list[tuple[WorkspacePath, str]] = []
        limits = self._s.permissions.policy.limits
        for path, stat in suspects.items():
            if stat is not None and stat.signature.size in sizes:
                with suppress(PathError):
                    content = _identity(stat.signature)
                    if content not in known:
                        content = self._s.workspace.hash(path, most=limits.change_bytes)[0]
                    entry = self._s.state.registry.get(path)
                    if entry is None or entry.digest != content:
                        came.append((path, content))
        return paired(gone, came)

    # --- import -------------------------------------------------------------------------

    async def _import(self, suspects: Suspects) -> None:
        sources = await to_thread.run_sync(self._renames, suspects)
        targets = {source: path for path, source in sources.items()}
        for chunk in _chunked(suspects):
            async with self._s.locks.alone(chunk):
                for _ in range(TRIES):
                    try:
                        await self._append(chunk, sources, targets)
                        break
                    except StreamMoved as moved:
                        trouble = str(moved)
                else:
                    self._log.warning("external changes are left for a later look", paths=len(chunk), error=trouble)

    async def _append(self, chunk: tuple[WorkspacePath, ...], sources: Renames, targets: Renames) -> None:
        external: list[NewEvent] = []
        found: list[FoundFile] = []
        blobs: dict[Digest, NewContent] = {}
        ours = self._intended()
        for item in await to_thread.run_sync(self._meet, chunk):
            path = item.path
            if item.digest is not None and (path, item.digest) in ours:
                continue  # a change whose outcome could not be noted; recovery closes it
            event = self._observer.judged(item, moved_from=sources.get(path), moved_to=targets.get(path))
            if event is not None:
                blobs |= item.blobs
            if isinstance(event, FilesFound):
                found.extend(event.entries)
            elif event is not None:
                external.append(self._observer.new(path, event))
        if external or found:
            lists = (NewEvent(STREAM, FilesFound(entries=tuple(found))),) if found else ()
            await self._observer.append((*external, *lists), tuple(blobs.items()))

    def _meet(self, chunk: tuple[WorkspacePath, ...]) -> list[MetFile]:
        """Blocking. What the journal lacks is read; what can't be read is left for later."""
        met: list[MetFile] = []
        for path in chunk:
            try:
                item = self._met(path)
            except FileNotFound:
                item = MetFile(path, None)
            except PathError:
                continue
            if item is not None:
                met.append(item)
        return met

    def _met(self, path: WorkspacePath) -> MetFile | None:
        stat, entry = self._regular(path), self._s.state.registry.get(path)
        if stat is None:
            return MetFile(path, None)
        if (
            entry is not None
            and self._observer.unmoved(entry, stat)
            and (entry.kept or not self._keeps(path, stat.signature.size))
        ):
            return None
        hidden = self._s.permissions.hidden_from_all(path)
        if self._observer.unhashable(path, stat, hidden=hidden):
            return MetFile(path, stat)
        read = self._s.workspace.read(path, most=self._s.permissions.policy.limits.in_memory_bytes)
        return self._observer.met(path, read, hidden=hidden, keep=self._keeps(path, read.stat.signature.size))

    def _intended(self) -> frozenset[tuple[WorkspacePath, Digest]]:
        """What open changes are about to put where."""
        return frozenset(
            (item.path, item.after)
            for _, intent in self._s.state.pending.open_intents()
            for item in intent.paths
            if item.after is not None
        )


def _identity(signature: Signature) -> str:
    """What a rename keeps of a file; its bytes need not be read for it."""
    return f"{signature.inode} {signature.size} {signature.mtime_ns}"


def _chunked(suspects: Mapping[WorkspacePath, FileStat | None]) -> Iterator[tuple[WorkspacePath, ...]]:
    """In the order of their paths, at most PATHS and CHUNK_BYTES; a larger file is alone."""
    chunk: list[WorkspacePath] = []
    held = 0
    for path, stat in sorted(suspects.items()):
        size = stat.signature.size if stat is not None else 0
        if chunk and (len(chunk) >= PATHS or held + size > CHUNK_BYTES):
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
    left, right = _unique(gone), _unique(came)
    return {right[digest]: path for digest, path in left.items() if path is not None and right.get(digest)}  # type: ignore[misc]


def _unique(items: Iterable[tuple[WorkspacePath, str]]) -> dict[str, WorkspacePath | None]:
    """By digest; None where several have it."""
    found: dict[str, WorkspacePath | None] = {}
    for path, digest in items:
        found[digest] = None if digest in found else path
    return found
