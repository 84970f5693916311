"""Imports many external changes in few commits; other callers have their turns between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

import msgspec
from anyio import to_thread

from orchestrator.core.content import FoundFile, Signature
from orchestrator.core.errors import FileNotFound, NotADirectory, PathError, SymlinkRefused
from orchestrator.core.events.base import Event
from orchestrator.core.events.files import (
    ExternalFileChanged,
    ExternalFileCreated,
    ExternalFileRemoved,
    ExternalTrigger,
    FilesFound,
)
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.paths import ancestors
from orchestrator.engine.external.batches import ExternalBatch
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.services import MAX_FILE_BYTES, Services
from orchestrator.engine.walker import Walker
from orchestrator.logs import logger
from orchestrator.ports.journal import NewEvent, StreamMoved
from orchestrator.ports.workspace import FileStat, Hints, ScanResult

PATHS = 100
"""In one append at most: their locks are held together, so this bounds how long a caller waits for one of them."""

CHUNK_BYTES = 8 * 1024 * 1024

TRIES = 3

FOUND_STREAM = "workspace"


class Suspects(msgspec.Struct, frozen=True):
    """Paths to look at under their locks, because their stat is not the registry's."""

    sizes: dict[WorkspacePath, int] = {}  # 0 for what is gone
    gone: set[WorkspacePath] = set()  # tracked, and no file any more
    came: set[WorkspacePath] = set()  # a file that is not tracked, or not the one that the registry knows


class MetFile(msgspec.Struct, frozen=True):
    """What was at a path when it was looked at."""

    path: WorkspacePath
    stat: FileStat | None  # of a regular file
    digest: Digest | None = None  # None: nothing there, too large to hash, or hidden from all
    data: bytes | None = None  # None: not kept


class Renames(msgspec.Struct, frozen=True):
    """Files that were renamed, as far as their contents show it; each path may hold another file by now."""

    sources: dict[WorkspacePath, WorkspacePath]  # by the new path
    targets: dict[WorkspacePath, WorkspacePath]  # by the old path


class BatchImporter:
    """Looks at suspects, and appends events for those that really differ."""

    def __init__(self, services: Services, observer: Observer) -> None:
        self._s, self._observer = services, observer
        self._walker = Walker(services.workspace, services.ignore)
        self._log = logger("watching")

    def batch(self, trigger: ExternalTrigger) -> ExternalBatch:
        """A burst that begins now, for `append`."""
        return ExternalBatch(self._s.journal, self._s.notes, trigger)

    async def import_hints(self, hints: Hints, group: ExternalBatch) -> None:
        """Import what a watcher named. Raises DiskFull, WritesStopped."""
        await self._import(await to_thread.run_sync(self._hinted, hints), group)

    async def import_scan(self, result: ScanResult, group: ExternalBatch) -> None:
        """Import all that differs in the whole tree. Raises DiskFull, WritesStopped."""
        await self._import(await to_thread.run_sync(self._scanned, result), group)

    # --- suspects, blocking -------------------------------------------------------------

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
        found, registry = Suspects(), self._s.state.registry
        for item in result.files:
            entry = registry.get(item.path)
            if entry is None or entry.signature != item.signature or entry.mode != item.mode:
                self._look(found, item.path)
        met = {item.path for item in result.files}
        for path in registry.paths():
            if path not in met:
                self._look(found, path)
        return found

    def _look(self, found: Suspects, path: WorkspacePath) -> None:
        if path not in found.sizes:
            with suppress(PathError):  # unreadable now; it is looked at again when somebody touches it
                self._suspect(found, path, self._regular(path))

    def _suspect(self, found: Suspects, path: WorkspacePath, stat: FileStat | None) -> None:
        entry = self._s.state.registry.get(path)
        if stat is None:
            if entry is not None:
                found.sizes[path] = 0
                found.gone.add(path)
            return
        if entry is None or (entry.signature, entry.mode) != (stat.signature, stat.mode):
            found.came.add(path)
        elif path not in self._s.must_reread:
            return
        found.sizes[path] = stat.signature.size

    def _regular(self, path: WorkspacePath) -> FileStat | None:
        """The stat of a regular file; None for whatever is none, or below what is no directory. Raises PathError."""
        try:
            stat = self._s.workspace.stat(path)
        except (NotADirectory, SymlinkRefused):  # of a directory above it
            return None
        return stat if stat is not None and stat.kind == "file" else None

    def _renames(self, suspects: Suspects) -> Renames:
        """Only files as large as a gone one are read for it."""
        gone: list[tuple[WorkspacePath, str]] = []
        sizes: set[int] = set()
        for path in suspects.gone:
            entry = self._s.state.registry.get(path)
            if entry is not None and entry.signature is not None and entry.signature.size:
                gone.append((path, entry.digest or _identity(entry.signature)))
                sizes.add(entry.signature.size)
        came: list[tuple[WorkspacePath, str]] = []
        for path in suspects.came:
            if suspects.sizes[path] in sizes:
                with suppress(PathError):
                    content = self._content(path, frozenset(key for _, key in gone))
                    entry = self._s.state.registry.get(path)
                    if entry is None or entry.digest != content:
                        came.append((path, content))
        sources = paired(gone, came)
        return Renames(sources, {source: path for path, source in sources.items()})

    def _content(self, path: WorkspacePath, gone: frozenset[str]) -> str:
        """A content's digest; or inode, size and time of a gone file that was never hashed. Raises PathError."""
        stat = self._regular(path)
        if stat is None:
            raise FileNotFound(path, "there is no such file")
        identity = _identity(stat.signature)
        return identity if identity in gone else self._s.workspace.read(path, most=MAX_FILE_BYTES).digest

    # --- import -------------------------------------------------------------------------

    async def _import(self, suspects: Suspects, group: ExternalBatch) -> None:
        renames = await to_thread.run_sync(self._renames, suspects)
        for chunk in _chunked(suspects.sizes):
            async with self._s.locks.alone(chunk):
                for _ in range(TRIES):
                    try:
                        await self._append(chunk, renames, group)
                        break
                    except StreamMoved as moved:
                        trouble = str(moved)
                else:
                    self._log.warning("external changes are left for a later look", paths=len(chunk), error=trouble)

    async def _append(self, chunk: tuple[WorkspacePath, ...], renames: Renames, group: ExternalBatch) -> None:
        met = await to_thread.run_sync(self._meet, chunk)
        external: list[NewEvent] = []
        found: list[FoundFile] = []
        blobs: dict[Digest, bytes] = {}
        ours = self._intended()
        for item in met:
            if item.digest is not None and (item.path, item.digest) in ours:
                continue  # a change whose outcome could not be noted; recovery closes it
            entry = self._s.state.registry.get(item.path)
            event = self._observer.judged(item.path, entry, item.stat, item.digest, keep=item.data is not None)
            if event is None:
                continue
            if item.digest is not None and item.data is not None:
                blobs[item.digest] = item.data
            if isinstance(event, FilesFound):
                found.extend(event.entries)
                continue
            stream = f"file:{item.path}"
            external.append(NewEvent(stream, _renamed(event, renames), self._s.journal.stream_version(stream)))
        if not external and not found:
            return
        events = (*external, *((NewEvent(FOUND_STREAM, FilesFound(entries=tuple(found))),) if found else ()))
        await group.append(events, tuple(blobs.items()), external=len(external))

    def _meet(self, chunk: tuple[WorkspacePath, ...]) -> list[MetFile]:
        """Blocking. What differs from the registry by its stat is read; what can't be read is left for later."""
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
        entry = self._s.state.registry.get(path)
        stat = self._regular(path)
        if stat is None:
            return MetFile(path, None)
        suspect = path in self._s.must_reread
        if entry is not None and (entry.signature, entry.mode) == (stat.signature, stat.mode) and not suspect:
            return None
        hidden = self._s.permissions.hidden_from_all(path)
        if stat.signature.size > MAX_FILE_BYTES or (hidden and (entry is None or entry.digest is None)):
            return MetFile(path, stat)
        read = self._s.workspace.read(path, most=MAX_FILE_BYTES)
        self._s.must_reread.discard(path)
        if hidden:
            same = entry is not None and entry.digest == read.digest
            return MetFile(path, read.stat, read.digest if same else None)
        keep = len(read.data) <= self._s.permissions.policy.external.keep_max_bytes
        return MetFile(path, read.stat, read.digest, read.data if keep else None)

    def _intended(self) -> frozenset[tuple[WorkspacePath, Digest]]:
        """What open changes are about to put where."""
        return frozenset(
            (item.path, item.after)
            for intent in self._s.state.pending.open_intents()
            for item in intent.paths
            if item.after is not None
        )


def _identity(signature: Signature) -> str:
    """What a rename keeps of a file; its bytes need not be read for it."""
    return f"{signature.inode} {signature.size} {signature.mtime_ns}"


def _renamed(event: Event, renames: Renames) -> Event:
    """The event, with the path that its content was moved to or from."""
    match event:
        case ExternalFileChanged(path=path) | ExternalFileCreated(path=path):
            return msgspec.structs.replace(event, moved_from=renames.sources.get(path))
        case ExternalFileRemoved(path=path):
            return msgspec.structs.replace(event, moved_to=renames.targets.get(path))
        case _:
            return event


def _chunked(sizes: Mapping[WorkspacePath, int]) -> Iterator[tuple[WorkspacePath, ...]]:
    """In the order of their paths, at most PATHS and CHUNK_BYTES; a larger file is alone."""
    chunk: list[WorkspacePath] = []
    held = 0
    for path, size in sorted(sizes.items()):
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
