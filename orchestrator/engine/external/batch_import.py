"""Imports many external changes in few commits; other callers have their turns between."""

from __future__ import annotations

import msgspec
from anyio import to_thread

from orchestrator.core.content import FoundFile, Signature
from orchestrator.core.errors import FileNotFound, PathError
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.files import (
    ExternalFileChanged,
    ExternalFileCreated,
    ExternalFileRemoved,
    FilesFound,
)
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.engine.external.batches import ExternalBatch
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.external.suspects import Suspects, chunked, paired, standing
from orchestrator.engine.services import MAX_FILE_BYTES, Services
from orchestrator.logs import logger
from orchestrator.ports.journal import NewEvent, StreamMoved, Unit
from orchestrator.ports.workspace import FileStat

PATHS = 100
"""In one append at most: their locks are held together, so this bounds how long a caller waits for one of them."""

CHUNK_BYTES = 8 * 1024 * 1024

TRIES = 3

FOUND_STREAM = "workspace"


class MetFile(msgspec.Struct, frozen=True):
    """What stood at a path when it was looked at."""

    path: WorkspacePath
    stat: FileStat | None  # of a regular file
    digest: Digest | None = None  # None: nothing there, too large to hash, or hidden from all
    data: bytes | None = None  # None: not kept


class Moves(msgspec.Struct, frozen=True):
    """Renames, both ways."""

    by_target: dict[WorkspacePath, WorkspacePath] = {}
    by_source: dict[WorkspacePath, WorkspacePath] = {}


class BatchImporter:
    """Looks at suspects, and lets the journal say what really differs."""

    def __init__(self, services: Services, observer: Observer) -> None:
        self._s, self._observer = services, observer
        self._log = logger("watching")

    async def absorb(self, suspects: Suspects, group: ExternalBatch) -> None:
        """Take them all in. Raises DiskFull, WritesStopped."""
        group.expected = len(suspects.sizes)
        moves = await to_thread.run_sync(self._moves, suspects)
        for chunk in chunked(suspects.sizes, most=PATHS, most_bytes=CHUNK_BYTES):
            async with self._s.locks.alone(chunk):
                await self._settled(chunk, moves, group)

    async def _settled(self, chunk: tuple[WorkspacePath, ...], moves: Moves, group: ExternalBatch) -> None:
        for _ in range(TRIES):
            try:
                return await self._take(chunk, moves, group)
            except StreamMoved as moved:
                trouble = str(moved)
        self._log.warning("external changes are left for a later look", paths=len(chunk), error=trouble)
        return None

    async def _take(self, chunk: tuple[WorkspacePath, ...], moves: Moves, group: ExternalBatch) -> None:
        met = await to_thread.run_sync(self._meet, chunk)
        outside: list[NewEvent] = []
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
            expected = self._s.journal.stream_version(stream)
            outside.append(NewEvent(stream, _moved(event, moves), expected))
        if not outside and not found:
            return
        events = (*outside, *((NewEvent(FOUND_STREAM, FilesFound(entries=tuple(found))),) if found else ()))
        async with group.joining(len(outside)) as cause:
            await self._s.journal.append(Unit(events, Origin(cause=cause), tuple(blobs.items())))

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
        stat = standing(self._s.workspace, path)
        if stat is None:
            return MetFile(path, None)
        suspect = path in self._s.suspect
        if entry is not None and (entry.signature, entry.mode) == (stat.signature, stat.mode) and not suspect:
            return None
        hidden = self._s.hidden_from_all(path)
        if stat.signature.size > MAX_FILE_BYTES or (hidden and (entry is None or entry.digest is None)):
            return MetFile(path, stat)
        read = self._s.workspace.read(path, most=MAX_FILE_BYTES)
        self._s.suspect.discard(path)
        if hidden:
            same = entry is not None and entry.digest == read.digest
            return MetFile(path, read.stat, read.digest if same else None)
        keep = len(read.data) <= self._s.policy.external.keep_max_bytes
        return MetFile(path, read.stat, read.digest, read.data if keep else None)

    def _intended(self) -> frozenset[tuple[WorkspacePath, Digest]]:
        """What open changes are about to put where."""
        return frozenset(
            (item.path, item.after)
            for intent in self._s.state.pending.open_intents()
            for item in intent.paths
            if item.after is not None
        )

    def _moves(self, suspects: Suspects) -> Moves:
        """Blocking. Only files as large as a gone one are read for it."""
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
                try:
                    content = self._content(path, frozenset(key for _, key in gone))
                except PathError:
                    continue
                entry = self._s.state.registry.get(path)
                if entry is None or entry.digest != content:
                    came.append((path, content))
        by_target = paired(gone, came)
        return Moves(by_target, {source: path for path, source in by_target.items()})

    def _content(self, path: WorkspacePath, gone: frozenset[str]) -> str:
        """What tells what a file holds: that it is a gone file never hashed, or a digest. Raises PathError."""
        stat = standing(self._s.workspace, path)
        if stat is None:
            raise FileNotFound(path, "there is no such file")
        identity = _identity(stat.signature)
        return identity if identity in gone else self._s.workspace.read(path, most=MAX_FILE_BYTES).digest


def _identity(signature: Signature) -> str:
    """What a rename keeps of a file; its bytes need not be read for it."""
    return f"{signature.inode} {signature.size} {signature.mtime_ns}"


def _moved(event: Event, moves: Moves) -> Event:
    """The event, with where its content went or came from."""
    match event:
        case ExternalFileChanged(path=path) | ExternalFileCreated(path=path) if path in moves.by_target:
            return msgspec.structs.replace(event, moved_from=moves.by_target[path])
        case ExternalFileRemoved(path=path) if path in moves.by_source:
            return msgspec.structs.replace(event, moved_to=moves.by_source[path])
        case _:
            return event
