"""What is on the disk, compared with the journal; every difference becomes an event first."""

from __future__ import annotations

import msgspec
from anyio import to_thread

from orchestrator.core.content import FoundFile
from orchestrator.core.errors import (
    DiskFull,
    FileNotFound,
    NotAFile,
    NotARegularFile,
    OrchestratorError,
    SymlinkRefused,
    WritesStopped,
    escaped,
)
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.files import ExternalFileChanged, ExternalFileCreated, ExternalFileRemoved, FilesFound
from orchestrator.core.ids import AgentName, Digest, Seq, WorkspacePath
from orchestrator.core.paths import ancestors
from orchestrator.core.projections.registry import FileEntry
from orchestrator.engine.external.batches import ExternalBatch
from orchestrator.engine.services import MAX_FILE_BYTES, Services
from orchestrator.ports.journal import AppendBatch, NewEvent, StreamMoved
from orchestrator.ports.workspace import FileBytes, FileStat, Hints

TRIES = 8

NO_VERSION = Seq(0)
"""Instead of a version: no file ever has this one, so it is no base of a change."""

MOST_LONE = 1000
"""Noted changes whose hints are still to come."""


class CurrentFile(msgspec.Struct, frozen=True):
    """One path as it is, with the journal up to date about it."""

    path: WorkspacePath
    stat: FileStat | None
    entry: FileEntry | None
    data: bytes | None  # the content, if it was asked for and a file is there
    unnoted: OrchestratorError | None = None  # why the journal can't take it now: `entry` has no version then


def warnings(present: CurrentFile) -> tuple[str, ...]:
    """What an answer has to say of a file that the journal can't take now."""
    if present.unnoted is None:
        return ()
    return (
        (
            f"{escaped(present.path)} was changed by another program, and the journal can't note that now "
            f"({present.unnoted.code}): the present content has no version yet. It is noted when there is room again; "
            "read it anew before you change it."
        ),
    )


def required(present: CurrentFile) -> tuple[FileEntry, Digest, bytes]:
    """The regular file that was asked for, with its content.

    Raises FileNotFound, NotAFile, SymlinkRefused, NotARegularFile.
    """
    path, stat, entry = present.path, present.stat, present.entry
    if stat is None:
        raise FileNotFound(path, "there is no such file")
    if stat.kind == "directory":
        raise NotAFile(path, "it is a directory", hint="Use list_files.")
    if stat.kind == "symlink":
        raise SymlinkRefused(path, "it is a symbolic link")
    if entry is None or entry.digest is None or present.data is None:
        raise NotARegularFile(path, "it is a device, socket or pipe")
    return entry, entry.digest, present.data


def _hashed(entry: FileEntry | None) -> bool:
    return entry is not None and entry.digest is not None


class Observer:
    """Brings the registry up to date with the disk, path by path. Callers hold the path's lock."""

    def __init__(self, services: Services) -> None:
        self._s = services
        self.group: ExternalBatch | None = None
        """The external changes that are being imported; what a caller's look finds meanwhile belongs to them."""
        self._lone: dict[WorkspacePath, Seq] = {}
        self.scanned = False
        """Whether the start scan is over: what it did not meet, and is not ignored, was added later."""

    async def refresh(self, path: WorkspacePath, *, content: bool, changing: bool = False) -> CurrentFile:
        """See what is at a path; with `content`, read it and keep it as a blob.

        What everybody is denied to read is kept, and its hash noted, only where it is to be changed.
        Raises FileTooLarge, ChangedWhileRead and the PathError family.
        """
        for _ in range(TRIES):
            try:
                return await self._look(path, content=content, changing=changing)
            except StreamMoved:
                continue
        return await self._look(path, content=content, changing=changing)

    async def refresh_for_display(self, path: WorkspacePath, *, content: bool) -> CurrentFile:
        """As `refresh`, for answers that only show: they go on while the journal can take nothing.

        What it can't take then comes with the reason, and without a version (0). Nothing may be built on it.
        """
        try:
            return await self.refresh(path, content=content)
        except (DiskFull, WritesStopped) as error:
            return await self._unnoted(path, error, content=content)

    async def _unnoted(self, path: WorkspacePath, why: OrchestratorError, *, content: bool) -> CurrentFile:
        stat = self._s.workspace.stat(path)
        if stat is None or stat.kind != "file" or not content:
            return CurrentFile(path, stat, None, None, why)
        read = await to_thread.run_sync(lambda: self._s.workspace.read(path, most=MAX_FILE_BYTES))
        self._s.contents.put(read.digest, read.data)
        entry = FileEntry(path, NO_VERSION, read.digest, read.stat.signature, read.stat.mode, kept=False)
        return CurrentFile(path, read.stat, entry, read.data, why)

    async def _look(self, path: WorkspacePath, *, content: bool, changing: bool) -> CurrentFile:
        hidden = not changing and self._s.permissions.hidden_from_all(path)
        entry = self._s.state.registry.get(path)
        stat = self._s.workspace.stat(path)
        if stat is None or stat.kind != "file":
            if entry is not None:
                await self._note(path, self._removed(path, entry))
            return CurrentFile(path, stat, None, None)
        suspect = path in self._s.must_reread
        unmoved = entry is not None and entry.signature == stat.signature and entry.mode == stat.mode and not suspect
        if entry is not None and unmoved and entry.digest is not None:
            data = self._s.contents.cached(entry.digest)
            if data is not None and (entry.kept or hidden):
                return CurrentFile(path, stat, entry, data)
            if not content:
                return CurrentFile(path, stat, entry, None)
        elif not content and (unmoved or stat.signature.size > MAX_FILE_BYTES or (hidden and not _hashed(entry))):
            return CurrentFile(path, stat, entry if unmoved else await self._record(path, entry, stat, None), None)
        read = await to_thread.run_sync(lambda: self._s.workspace.read(path, most=MAX_FILE_BYTES))
        self._s.must_reread.discard(path)
        if hidden:  # the journal learns at most that it changed
            known = entry is not None and entry.digest == read.digest
            found = await self._record(path, entry, read.stat, read.digest if known else None)
            return CurrentFile(path, read.stat, msgspec.structs.replace(found, digest=read.digest), read.data)
        self._s.contents.put(read.digest, read.data)
        found = await self._record(path, entry, read.stat, read.digest, kept=read)
        return CurrentFile(path, read.stat, found, read.data)

    async def _record(
        self,
        path: WorkspacePath,
        entry: FileEntry | None,
        stat: FileStat,
        digest: Digest | None,
        *,
        kept: FileBytes | None = None,
    ) -> FileEntry:
        """Append what was met, if the journal does not have it yet; the registry's entry after that."""
        event = self.judged(path, entry, stat, digest, keep=kept is not None)
        if event is not None:
            try:
                await self._note(path, event, blob=kept)
            except (DiskFull, WritesStopped):
                # Nothing can be written: what is known already is still known, and new content has no version.
                if entry is None or digest is None or entry.digest != digest:
                    raise
                return entry
        found = self._s.state.registry.get(path)
        if found is None:
            raise StreamMoved(f"file:{path}", 0, 0)
        return found

    def judged(
        self, path: WorkspacePath, entry: FileEntry | None, stat: FileStat | None, digest: Digest | None, *, keep: bool
    ) -> Event | None:
        """What the journal has to say of what was met, if it does not yet; the stat of a regular file, or None.

        No digest: it is too large to hash. `keep`: the bytes will be a blob.
        """
        if stat is None:
            return self._removed(path, entry) if entry is not None else None
        signature, mode = stat.signature, stat.mode
        if entry is not None:
            if (entry.digest, entry.signature, entry.mode) == (digest, signature, mode) and (entry.kept or not keep):
                return None
            unhashed = entry.digest is None and entry.signature == signature
            if unhashed or (digest is not None and entry.digest == digest):
                found = FoundFile(path, signature, mode, digest, keep or entry.kept, int(entry.version))
                return FilesFound(entries=(found,))
        elif not self._is_new(path):
            return FilesFound(entries=(FoundFile(path, signature, mode, digest, keep),))
        by, lease = self._held(path)
        if entry is not None:
            return ExternalFileChanged(
                path=path,
                before=entry.digest,
                after=digest,
                signature=signature,
                mode=mode,
                kept=keep,
                by=by,
                lease=lease,
            )
        return ExternalFileCreated(
            path=path,
            after=digest,
            signature=signature,
            mode=mode,
            kept=keep,
            by=by,
            lease=lease,
            parents=self._came_with(path),
        )

    def _came_with(self, path: WorkspacePath) -> tuple[WorkspacePath, ...]:
        """The directories above it that were added in the same burst, and those below them."""
        came = self.group.came if self.group is not None else ()
        above = ancestors(path)
        first = next((number for number, folder in enumerate(above) if folder in came), len(above))
        return above[first:]

    def _removed(self, path: WorkspacePath, entry: FileEntry) -> ExternalFileRemoved:
        by, lease = self._held(path)
        return ExternalFileRemoved(path=path, before=entry.digest, by=by, lease=lease)

    def _held(self, path: WorkspacePath) -> tuple[AgentName | None, Seq | None]:
        """Whose lease makes it certain who did this."""
        return self._s.state.leases.holder_of(path, self._s.clock.now_ms()) or (None, None)

    def _is_new(self, path: WorkspacePath) -> bool:
        if self._s.state.registry.removed_at(path) is not None:
            return True
        return self.scanned and not self._s.ignore.ignored(path, directory=False)

    async def _note(self, path: WorkspacePath, event: Event, *, blob: FileBytes | None = None) -> None:
        blobs = ((blob.digest, blob.data),) if blob is not None else ()
        stream = f"file:{path}"
        new = NewEvent(stream, event, self._s.journal.stream_version(stream))
        if self.group is not None and not isinstance(event, FilesFound):
            await self.group.append((new,), blobs, external=1)
            return
        recorded = await self._s.journal.append(AppendBatch((new,), Origin(), blobs))
        if not isinstance(event, FilesFound):
            self._lone[path] = recorded[0].seq
            if len(self._lone) > MOST_LONE:
                del self._lone[next(iter(self._lone))]

    def hinted(self, hints: Hints) -> list[Seq]:
        """The external changes that callers met and noted before these hints; each is given once."""
        hinted = [
            path
            for path in self._lone
            if path in hints.paths or hints.rescan is not None or not hints.folders.isdisjoint(ancestors(path))
        ]
        return [self._lone.pop(path) for path in hinted]
