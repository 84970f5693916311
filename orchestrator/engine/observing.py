"""What stands on the disk, against what the journal says; every difference becomes an event first."""

from __future__ import annotations

import msgspec
from anyio import to_thread

from orchestrator.core.content import FoundFile
from orchestrator.core.errors import FileNotFound, NotAFile, NotARegularFile, SymlinkRefused
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.files import (
    FileChangedOutside,
    FileCreatedOutside,
    FileRemovedOutside,
    FilesFound,
)
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.projections.registry import FileEntry
from orchestrator.engine.services import MAX_FILE_BYTES, Services
from orchestrator.ports import FileBytes, FileStat, NewEvent, StreamMoved, Unit

KEEP_MAX_BYTES = 1024 * 1024
"""The background scan keeps contents up to this size; a read or a change keeps any."""

TRIES = 8


class Present(msgspec.Struct, frozen=True):
    """One path as it is, with the journal up to date about it."""

    path: WorkspacePath
    stat: FileStat | None
    entry: FileEntry | None
    data: bytes | None  # the content, if it was asked for and a file is there


def required(present: Present) -> tuple[FileEntry, Digest, bytes]:
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


class Observer:
    """Brings the registry up to date with the disk, path by path. Callers hold the path's lock."""

    def __init__(self, services: Services) -> None:
        self._s = services
        self.scanned = False
        """Whether the start scan is through: what it did not meet, and is not ignored, came later."""

    async def look(self, path: WorkspacePath, *, content: bool, keep: bool = True) -> Present:
        """See what stands at a path; with `content`, read it and keep it as a blob.

        Raises FileTooLarge, ChangedWhileRead and the PathError family.
        """
        for _ in range(TRIES):
            try:
                return await self._look(path, content=content, keep=keep)
            except StreamMoved:
                continue
        return await self._look(path, content=content, keep=keep)

    async def _look(self, path: WorkspacePath, *, content: bool, keep: bool) -> Present:
        entry = self._s.state.registry.get(path)
        stat = self._s.workspace.stat(path)
        if stat is None or stat.kind != "file":
            if entry is not None:
                await self._note(path, FileRemovedOutside(path=path, before=entry.digest))
            return Present(path, stat, None, None)
        suspect = path in self._s.suspect
        unmoved = entry is not None and entry.signature == stat.signature and entry.mode == stat.mode and not suspect
        if entry is not None and unmoved and entry.digest is not None:
            data = self._s.contents.cached(entry.digest)
            if data is not None and (entry.kept or not keep):
                return Present(path, stat, entry, data)
            if not content:
                return Present(path, stat, entry, None)
        elif not content and (unmoved or stat.signature.size > MAX_FILE_BYTES):
            return Present(path, stat, entry if unmoved else await self._unread(path, entry, stat), None)
        read = await to_thread.run_sync(lambda: self._s.workspace.read(path, most=MAX_FILE_BYTES))
        self._s.contents.put(read.digest, read.data)
        self._s.suspect.discard(path)
        entry = await self._agree(path, entry, read, keep=keep)
        return Present(path, read.stat, entry, read.data)

    async def _agree(self, path: WorkspacePath, entry: FileEntry | None, read: FileBytes, *, keep: bool) -> FileEntry:
        """Make the journal say what was read, if it does not yet."""
        signature, mode = read.stat.signature, read.stat.mode
        same = entry is not None and (
            entry.digest == read.digest or (entry.digest is None and entry.signature == signature)
        )
        told = entry is not None and (entry.digest, entry.signature, entry.mode) == (read.digest, signature, mode)
        if entry is not None and told and (entry.kept or not keep):
            return entry
        event: Event
        if same and entry is not None:
            event = FilesFound(
                entries=(FoundFile(path, signature, mode, read.digest, keep or entry.kept, int(entry.version)),)
            )
        elif entry is not None:
            event = FileChangedOutside(
                path=path, before=entry.digest, after=read.digest, signature=signature, mode=mode, kept=keep
            )
        elif self._is_new(path):
            event = FileCreatedOutside(path=path, after=read.digest, signature=signature, mode=mode, kept=keep)
        else:
            event = FilesFound(entries=(FoundFile(path, signature, mode, read.digest, keep),))
        await self._note(path, event, blob=read if keep else None)
        found = self._s.state.registry.get(path)
        if found is None:
            raise StreamMoved(f"file:{path}", 0, 0)
        return found

    async def _unread(self, path: WorkspacePath, entry: FileEntry | None, stat: FileStat) -> FileEntry | None:
        """A file too large to hash, of which only the stat is known."""
        event: Event
        if entry is not None:
            event = FileChangedOutside(
                path=path, before=entry.digest, after=None, signature=stat.signature, mode=stat.mode, kept=False
            )
        else:
            event = FilesFound(entries=(FoundFile(path, stat.signature, stat.mode),))
        await self._note(path, event)
        return self._s.state.registry.get(path)

    def _is_new(self, path: WorkspacePath) -> bool:
        if self._s.state.registry.removed_at(path) is not None:
            return True
        return self.scanned and not self._s.ignore.ignored(path, directory=False)

    async def _note(self, path: WorkspacePath, event: Event, *, blob: FileBytes | None = None) -> None:
        stream = f"file:{path}"
        expected = self._s.journal.stream_version(stream)
        blobs = ((blob.digest, blob.data),) if blob is not None else ()
        await self._s.journal.append(Unit((NewEvent(stream, event, expected),), Origin(), blobs))
