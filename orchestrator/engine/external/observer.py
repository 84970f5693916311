"""What is on the disk, compared with the journal; every difference becomes an event first."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from functools import partial
from typing import Any

import msgspec
from anyio import to_thread

from orchestrator.core import errors as e
from orchestrator.core.content import Content, FoundFile, LargeContent, Splice, SplicedContent
from orchestrator.core.errors import escaped
from orchestrator.core.events.base import Event, ExternalChange, Origin
from orchestrator.core.events.files import (
    ExternalFileChanged,
    ExternalFileCreated,
    ExternalFileRemoved,
    ExternalTrigger,
    FilesFound,
)
from orchestrator.core.ids import AgentName, Digest, Seq, WorkspacePath
from orchestrator.core.paths import ancestors
from orchestrator.core.projections.file_rows import FileEntry
from orchestrator.core.splices import MOST_SPLICED_BYTES, are_few, composed, root_of
from orchestrator.engine.access import Access, ContentAccess
from orchestrator.engine.external.batches import ExternalBatch
from orchestrator.engine.external.native_claims import NativeClaims
from orchestrator.engine.services import Services
from orchestrator.ports.journal import AppendBatch, NewContent, NewContents, NewEvent, StagedContent, StreamMoved
from orchestrator.ports.workspace import FileBytes, FileStat, Hints, blocks_of

TRIES = 8

NO_VERSION = Seq(0)
"""Instead of a version: no file ever has this one, so it is no base of a change."""

LOOKED_BACK = 20
"""Versions of a large file, for one that is kept."""

MOST_LONE = 1000
"""Noted changes whose hints are still to come."""


class CurrentFile(msgspec.Struct, frozen=True):
    """One path as it is, with the journal up to date about it."""

    path: WorkspacePath
    stat: FileStat | None
    entry: FileEntry | None
    data: Content | None  # the content, if it was asked for and a file is there
    unnoted: e.OrchestratorError | None = None  # why the journal can't take it now: `entry` has no version then
    large: bool = False  # a file that is read by pieces: without `keep`, `data` is None, and `entry` may have no digest


class MetFile(msgspec.Struct, frozen=True):
    """What was at a path when it was looked at, and as much of it as the journal may have."""

    path: WorkspacePath
    stat: FileStat | None  # of a regular file
    digest: Digest | None = None  # None: nothing there, too large to hash, or hidden from all
    data: NewContent | None = None  # None: not kept

    @property
    def blobs(self) -> NewContents:
        """What is kept with its event."""
        return ((self.digest, self.data),) if self.digest is not None and self.data is not None else ()


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

    Raises FileNotFound, NotAFile, SymlinkRefused, NotARegularFile, FileTooLarge.
    """
    entry, digest, data = required_content(present)
    if isinstance(data, LargeContent):
        raise e.FileTooLarge(present.path, f"it has {data.size} bytes, and this takes a file that is held in memory")
    return entry, digest, data


def required_content(present: CurrentFile) -> tuple[FileEntry, Digest, Content]:
    """The same of a file that may be large, and was kept then."""
    path, entry = present.path, present.entry
    stat = regular(path, present.stat)
    if present.large and present.data is None:
        raise e.FileTooLarge(path, f"it has {stat.signature.size} bytes, and this takes a file that is held in memory")
    if entry is None or entry.digest is None or present.data is None:
        raise e.NotARegularFile(path, "it can't be read")
    return entry, entry.digest, present.data


def regular(path: WorkspacePath, stat: FileStat | None) -> FileStat:
    """The stat of a regular file. Raises FileNotFound, NotAFile, SymlinkRefused, NotARegularFile."""
    if stat is None:
        raise e.FileNotFound(path, "there is no such file")
    if stat.kind == "directory":
        raise e.NotAFile(path, "it is a directory", hint="Use list_files.")
    if stat.kind == "symlink":
        raise e.SymlinkRefused(path, "it is a symbolic link")
    if stat.kind != "file":
        raise e.NotARegularFile(path, "it is a device, socket or pipe")
    return stat


class Observer:
    """Brings the registry up to date with the disk, path by path. Callers hold the path's lock."""

    def __init__(self, services: Services) -> None:
        self._s = services
        self._group: ExternalBatch | None = None
        self._lone: dict[WorkspacePath, Seq] = {}
        self.claims = NativeClaims(services.clock)
        """What agents' own tools are about to change."""
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

    async def keep(self, path: WorkspacePath, *, changing: bool = False) -> CurrentFile:
        """As `refresh` with content; that of a large file is hashed and kept, piece by piece, as it is to be changed.

        Raises FileTooLarge where policy lets no file of this size be changed, and as `refresh`.
        """
        for _ in range(TRIES):
            present = await self.refresh(path, content=True, changing=changing)
            if not present.large or present.stat is None or present.entry is None:
                return present
            kept = await self._keep(present, hidden=not changing and self._s.permissions.hidden_from_all(path))
            if kept is not None:
                return kept
        raise e.ChangedWhileRead(path, "another program keeps writing to it")

    async def _keep(self, present: CurrentFile, *, hidden: bool) -> CurrentFile | None:
        """None where it is another one by now."""
        path, entry, stat = present.path, present.entry, present.stat
        most = self._s.permissions.policy.limits.change_bytes
        if entry is None or stat is None:
            return present
        size = stat.signature.size
        if size > most:
            raise e.FileTooLarge(
                path,
                f"it has {size} bytes; policy lets files of {most} bytes be changed, moved or deleted",
                hint="A person can do it outside, which is noted, or raise limits.change_bytes of the policy.",
            )
        if entry.digest is not None and (hidden or entry.kept):
            known = LargeContent(entry.digest, size) if hidden else await self._s.contents.find(entry.digest)
            if known is not None:
                return msgspec.structs.replace(present, data=known)
        if hidden:
            digest, found = await to_thread.run_sync(partial(self._s.workspace.hash, path, most=most))
            if found != stat:
                return None
            entry = msgspec.structs.replace(entry, digest=digest)
            return msgspec.structs.replace(present, entry=entry, data=LargeContent(digest, size))
        grown = await self._as_grown(path, stat)
        kept: SplicedContent | StagedContent | None = grown
        if kept is None:
            kept = await to_thread.run_sync(self.staged, path, stat)
        if kept is None:
            return None
        try:
            entry = await self._record(MetFile(path, stat, kept.digest, kept))
        except StreamMoved:
            return None
        finally:
            if isinstance(kept, StagedContent):
                self._s.journal.discard(kept)
        if entry.digest != kept.digest:
            return None
        self._s.must_reread.discard(path)
        return msgspec.structs.replace(present, entry=entry, data=grown or LargeContent(kept.digest, size))

    async def _as_grown(self, path: WorkspacePath, stat: FileStat) -> SplicedContent | None:
        """The content of a file that is the newest one that is kept, and more behind it; None if it is another."""
        rows = await self._s.journal.versions(path, limit=LOOKED_BACK)
        digest = next((row.digest for row in rows if row.digest is not None), None)
        before = await self._s.contents.find(digest) if digest is not None else None
        if isinstance(before, LargeContent) and before.size < stat.signature.size:
            with suppress(e.JournalCorrupt):  # then this one is kept whole
                return await to_thread.run_sync(self._grown, path, stat, before)
        return None

    def _grown(self, path: WorkspacePath, stat: FileStat, before: LargeContent) -> SplicedContent | None:
        """Blocking. The content of a file that begins as before, as a log does; None if it does not, or grew much.

        Raises JournalCorrupt where the content before can't be read.
        """
        size, hashed, at = stat.signature.size, hashlib.sha256(), 0
        if size - before.size > MOST_SPLICED_BYTES:
            return None
        with closing(self._s.workspace.pieces(path)) as pieces:
            for block in self._s.journal.blocks(before):
                if pieces.read(at, len(block)) != block:
                    return None
                hashed.update(block)
                at += len(block)
            more = pieces.read(at, size - at)
            hashed.update(more)
            if pieces.stat_now() != stat:
                return None
        base, splices = root_of(before)
        grown = composed(splices, (Splice(at, 0, more),), base.size)
        digest = Digest("sha256:" + hashed.hexdigest())
        return SplicedContent(digest, size, base, grown) if are_few(grown) else None

    def staged(self, path: WorkspacePath, stat: FileStat | None = None) -> StagedContent | None:
        """Blocking. The content of a file, packed for the journal; None if it is not, or not any more, the one."""
        with closing(self._s.workspace.pieces(path)) as pieces:
            if stat not in (None, pieces.stat):
                return None
            staged = self._s.journal.stage(blocks_of(pieces), pieces.stat.signature.size)
            if staged is not None and pieces.stat_now() != pieces.stat:
                self._s.journal.discard(staged)
                return None
            return staged

    async def refresh_for_display(self, access: Access) -> CurrentFile:
        """As `refresh`, for answers that only show: they go on while the journal can take nothing.

        What it can't take then comes with the reason, and without a version (0). Nothing may be built on it.
        Content is there for who has access to it. Raises ApprovalRequired besides, where a person is asked first.
        """
        content = isinstance(access, ContentAccess)
        try:
            present = await self.refresh(access.path, content=content)
        except (e.DiskFull, e.WritesStopped) as error:
            if access.asks:
                raise  # a yes is for a version, and this has none
            present = await self._unnoted(access.path, error, content=content)
        if isinstance(access, ContentAccess) and present.entry is not None:
            await access.confirm(present.entry.version, present.entry.digest)
        return present

    async def _unnoted(self, path: WorkspacePath, why: e.OrchestratorError, *, content: bool) -> CurrentFile:
        stat = self._s.workspace.stat(path)
        if stat is None or stat.kind != "file" or not content:
            return CurrentFile(path, stat, None, None, why)
        if self.is_large(stat):
            entry = FileEntry(path, NO_VERSION, None, stat.signature, stat.mode, kept=False)
            return CurrentFile(path, stat, entry, None, why, large=True)
        read = await to_thread.run_sync(lambda: self._s.workspace.read(path, most=self._most, growing=True))
        self._s.contents.put(read.digest, read.data)
        entry = FileEntry(path, NO_VERSION, read.digest, read.stat.signature, read.stat.mode, kept=False)
        return CurrentFile(path, read.stat, entry, read.data, why)

    async def _look(self, path: WorkspacePath, *, content: bool, changing: bool) -> CurrentFile:
        hidden = not changing and self._s.permissions.hidden_from_all(path)
        entry = self._s.state.registry.get(path)
        stat = self._s.workspace.stat(path)
        if stat is None or stat.kind != "file":
            if (event := self.judged(MetFile(path, None))) is not None:
                await self.append((self.new(path, event),))
            return CurrentFile(path, stat, None, None)
        unmoved, large = entry is not None and self.unmoved(entry, stat), self.is_large(stat)
        if entry is not None and unmoved and entry.digest is not None:
            data = self._s.contents.cached(entry.digest)
            if data is not None and (entry.kept or hidden):
                return CurrentFile(path, stat, entry, data)
            if not content or large:
                return CurrentFile(path, stat, entry, None, large=large)
        elif large or (not content and (unmoved or self.unhashable(path, stat, hidden=hidden))):
            found = entry if unmoved else await self._record(MetFile(path, stat))
            return CurrentFile(path, stat, found, None, large=large)
        read = await to_thread.run_sync(lambda: self._s.workspace.read(path, most=self._most, growing=not changing))
        found = await self._record(self.met(path, read, hidden=hidden))
        if hidden:
            found = msgspec.structs.replace(found, digest=read.digest)
        else:
            self._s.contents.put(read.digest, read.data)
        return CurrentFile(path, read.stat, found, read.data)

    @property
    def _most(self) -> int:
        return self._s.permissions.policy.limits.in_memory_bytes

    def is_large(self, stat: FileStat) -> bool:
        """Whether a file is read by pieces."""
        return stat.signature.size > self._most

    def known_large(self, path: WorkspacePath) -> bool:
        """Whether the file that the journal knows at a path is read by pieces."""
        entry = self._s.state.registry.get(path)
        return entry is not None and entry.signature is not None and entry.signature.size > self._most

    def unmoved(self, entry: FileEntry, stat: FileStat) -> bool:
        """Whether a file is the one that the registry knows, as far as its stat shows it."""
        known = (entry.signature, entry.mode) == (stat.signature, stat.mode)
        return known and entry.path not in self._s.must_reread

    def unhashable(self, path: WorkspacePath, stat: FileStat, *, hidden: bool) -> bool:
        """Whether the journal does not learn the hash of what is there."""
        entry = self._s.state.registry.get(path)
        return self.is_large(stat) or (hidden and (entry is None or entry.digest is None))

    def met(self, path: WorkspacePath, read: FileBytes, *, hidden: bool, keep: bool = True) -> MetFile:
        """A file that was read. If it is `hidden`, the journal learns at most that it changed."""
        self._s.must_reread.discard(path)
        if hidden:
            entry = self._s.state.registry.get(path)
            same = entry is not None and entry.digest == read.digest
            return MetFile(path, read.stat, read.digest if same else None)
        return MetFile(path, read.stat, read.digest, read.data if keep else None)

    async def _record(self, met: MetFile) -> FileEntry:
        """Append what was met, if the journal does not have it yet; the registry's entry after that."""
        event = self.judged(met)
        if event is not None:
            try:
                await self.append((self.new(met.path, event),), met.blobs)
            except (e.DiskFull, e.WritesStopped):
                # Nothing can be written: what is known already is still known, and new content has no version.
                entry = self._s.state.registry.get(met.path)
                if entry is None or met.digest is None or entry.digest != met.digest:
                    raise
                return entry
        if (found := self._s.state.registry.get(met.path)) is None:
            raise StreamMoved(f"file:{met.path}", 0, 0)
        return found

    def judged(
        self, met: MetFile, *, moved_from: WorkspacePath | None = None, moved_to: WorkspacePath | None = None
    ) -> Event | None:
        """What the journal has to say of what was met, if it does not yet; `moved_…`: the other end of a rename."""
        path, digest, keep = met.path, met.digest, met.data is not None
        entry = self._s.state.registry.get(path)
        if met.stat is None:
            if entry is None:
                return None
            self._s.permissions.moved_tags.left(entry)
            holder, lease = self._held(path)
            return ExternalFileRemoved(
                path=path, before=entry.digest, moved_to=moved_to, lease_holder=holder, lease=lease
            )
        signature, mode = met.stat.signature, met.stat.mode
        moved_tags, most = self._s.permissions.moved_tags, self._s.permissions.policy.limits.change_bytes
        moved_from = moved_from or moved_tags.source(path, digest=digest, most=most)
        if entry is not None:
            if (entry.digest, entry.signature, entry.mode) == (digest, signature, mode) and (entry.kept or not keep):
                return None
            unhashed = entry.digest is None and entry.signature == signature
            if unhashed or (digest is not None and entry.digest == digest):
                found = FoundFile(path, signature, mode, digest, keep or entry.kept, int(entry.version))
                return FilesFound(entries=(found,))
        elif moved_from is None and not self._is_new(path):
            return FilesFound(entries=(FoundFile(path, signature, mode, digest, keep),))
        holder, lease = self._held(path)
        there: dict[str, Any] = {"path": path, "after": digest, "signature": signature, "mode": mode, "kept": keep}
        there |= {"moved_from": moved_from, "lease_holder": holder, "lease": lease}
        if entry is None:
            return ExternalFileCreated(**there, parents=self._came_with(path))
        if entry.signature is not None and entry.signature.inode != signature.inode:
            moved_tags.left(entry)
        return ExternalFileChanged(**there, before=entry.digest)

    def _came_with(self, path: WorkspacePath) -> tuple[WorkspacePath, ...]:
        """The directories above it that were added in the same burst, and those below them."""
        came = self._group.came if self._group is not None else ()
        above = ancestors(path)
        first = next((number for number, folder in enumerate(above) if folder in came), len(above))
        return above[first:]

    def _held(self, path: WorkspacePath) -> tuple[AgentName | None, Seq | None]:
        """Who alone holds a lease on a path, and the lease."""
        return self._s.state.leases.holder_of(path, self._s.clock.now_ms()) or (None, None)

    def _is_new(self, path: WorkspacePath) -> bool:
        if self._s.state.registry.removed_at(path) is not None:
            return True
        return self.scanned and not self._s.ignore.ignored(path, directory=False)

    # --- appending ----------------------------------------------------------------------

    def new(self, path: WorkspacePath, event: Event) -> NewEvent:
        """For `append`: what was judged on the file's present state."""
        return NewEvent(f"file:{path}", event, self._s.journal.stream_version(f"file:{path}"))

    async def append(self, events: tuple[NewEvent, ...], blobs: NewContents = ()) -> None:
        """Append what was met: external changes, then what was found; in a burst as a part of its group.

        What an agent's own tool is known to have changed is of that tool's group.
        """
        if self.claims and not (self._group is not None and self._group.owned):
            events, blobs = await self.claims.take(events, blobs)
            if not events:
                return
        paths = [new.event.path for new in events if isinstance(new.event, ExternalChange)]
        if self._group is not None:
            await self._group.append(events, blobs, external=len(paths))
            return
        recorded = await self._s.journal.append(AppendBatch(events, Origin(), blobs))
        self._lone.update((path, one.seq) for path, one in zip(paths, recorded, strict=False))
        while len(self._lone) > MOST_LONE:
            del self._lone[next(iter(self._lone))]

    # --- bursts -------------------------------------------------------------------------

    @asynccontextmanager
    async def burst(self, trigger: ExternalTrigger) -> AsyncIterator[ExternalBatch]:
        """What is appended meanwhile is one group, also what callers meet; after an error it is not closed."""
        if self._group is not None:
            yield self._group
            return
        group = ExternalBatch(self._s, trigger)
        with self.joining(group):
            yield group
        await group.close()

    @contextmanager
    def joining(self, group: ExternalBatch) -> Iterator[None]:
        """What is appended meanwhile is of this group; one that was open before goes on without it."""
        self._group = group
        try:
            yield
        finally:
            if self._group is group:
                self._group = None

    def take_hints(self, hints: Hints, group: ExternalBatch) -> None:
        """The external changes that callers met and noted before these hints are of the group too, each once."""
        group.came |= hints.added
        for path in tuple(self._lone):
            if path in hints.paths or hints.rescan is not None or not hints.folders.isdisjoint(ancestors(path)):
                group.met_before(self._lone.pop(path))
