"""Copies of the tree in which a command may do what it likes; what became of one is found by comparing."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec
from anyio import from_thread, to_thread

from orchestrator.core.content import Signature
from orchestrator.core.errors import ChangedWhileRead, DiskFull, FileTooLarge, PathError, SymlinkRefused, escaped
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.paths import valid_name
from orchestrator.core.system_errors import system_trouble
from orchestrator.ports.commands import ScratchChange, ScratchChanges
from orchestrator.ports.workspace import PIECE_BYTES, Ignore, Workspace
from orchestrator.workspace.command_launcher import remove
from orchestrator.workspace.confine import Confinement, blocks_of, digest_from
from orchestrator.workspace.disk import Disk, kind_of, signature_of

MOST_TREE_BYTES = 4 << 30
LEFT_FREE_BYTES = 512 << 20
"""On the disk of the copies, where the journal is, too."""

LOOK_EVERY, LOOK_BYTES = 256, 64 << 20
"""Files, or bytes, between two looks whether the disk has room, and whether the caller is still there."""

READ_TRIES = 3

MANIFEST = ".json"
"""Behind the name of a kept tree's folder."""

FICLONE = 0x40049409
_NO_CLONES = (errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.EPERM)
_WRITE_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class Copied(NamedTuple):
    """One file as it was copied."""

    digest: Digest
    signature: Signature
    mode: int


class Manifest(NamedTuple):
    """What was copied into a kept tree, beside it."""

    files: dict[str, Copied]
    links: dict[str, str]
    kept_for: tuple[str, str]


class LocalScratchTrees:
    """See `ports.commands.ScratchTrees`. `folder`: of the daemon's own; what a killed one left in it goes now."""

    def __init__(self, workspace: Workspace, ignore: Ignore, folder: Path, disk: Disk) -> None:
        self._workspace, self._ignore, self._folder, self._disk = workspace, ignore, folder, disk
        self._kept = folder.with_name("worktrees")
        if folder.exists():
            remove(str(folder))

    async def make(
        self,
        files: Sequence[WorkspacePath],
        *,
        linked: Sequence[WorkspacePath] = (),
        kept_for: tuple[str, str] = ("", ""),
    ) -> LocalScratchTree:
        place = self._kept if kept_for[0] else self._folder
        await to_thread.run_sync(partial(place.mkdir, mode=0o700, exist_ok=True))
        folder = await to_thread.run_sync(partial(tempfile.mkdtemp, dir=place))
        copy = TreeCopy(self._workspace, folder)
        try:
            await to_thread.run_sync(partial(copy.make, files, linked))
            if kept_for[0]:
                manifest = msgspec.json.encode(Manifest(copy.files, copy.links, kept_for))
                await to_thread.run_sync(Path(f"{folder}{MANIFEST}").write_bytes, manifest)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(remove, folder)
            raise
        return LocalScratchTree(copy, self._ignore, self._disk, kept_for)

    async def reopen(self, name: str) -> LocalScratchTree | None:
        folder = f"{self._kept}/{name}"
        try:
            if not name.isidentifier():
                return None
            manifest = await to_thread.run_sync(Path(f"{folder}{MANIFEST}").read_bytes)
        except FileNotFoundError:
            return None
        known = msgspec.json.decode(manifest, type=Manifest)
        copy = TreeCopy(self._workspace, folder)
        copy.files, copy.links = known.files, known.links
        return LocalScratchTree(copy, self._ignore, self._disk, known.kept_for)


class TreeCopy:
    """Copies files below a folder, and knows afterwards what it copied."""

    def __init__(self, workspace: Workspace, folder: str) -> None:
        self._workspace, self.folder = workspace, folder
        self.files: dict[str, Copied] = {}
        self.links: dict[str, str] = {}
        self.missing: list[WorkspacePath] = []
        self.clones = True  # until the file system says that it can't
        self._folders = {""}
        self._masked = _file_mask()
        self._bytes = self._unlooked = self._next_look_bytes = 0

    def make(self, files: Sequence[WorkspacePath], linked: Sequence[WorkspacePath]) -> None:
        """In a thread of anyio's. Raises DiskFull, FileTooLarge."""
        try:
            for path in files:
                try:
                    self._copy(path)
                except FileTooLarge:
                    raise
                except PathError:
                    self.missing.append(path)
            for path in linked:
                self._link(path, f"{self._workspace.root}/{path}")
        except OSError as error:
            trouble = system_trouble(error, "the scratch copy was not made")
            if trouble is None:
                raise
            raise trouble from error

    def _make_room(self, size: int) -> None:
        """Raises DiskFull, FileTooLarge; ends the copying for a caller who is gone."""
        self._bytes += size
        if self._bytes > MOST_TREE_BYTES:
            raise FileTooLarge(
                "", f"the tree has more than the {MOST_TREE_BYTES >> 20} MB that a scratch copy may have"
            )
        self._unlooked -= 1
        if self._unlooked < 0 or self._bytes > self._next_look_bytes:
            self._unlooked, self._next_look_bytes = LOOK_EVERY, self._bytes + LOOK_BYTES
            from_thread.check_cancelled()
            free = shutil.disk_usage(self.folder).free
            if free - size < LEFT_FREE_BYTES:
                raise DiskFull(f"{free >> 20} MB are free where scratch copies are made: too little for the tree")

    def _copy(self, path: WorkspacePath) -> None:
        """Raises PathError where there is no such file any more."""
        try:
            opened = self._workspace.pieces(path)
        except SymlinkRefused:
            found = self._workspace.stat(path)
            if found is None or found.target is None or not stays_inside(path, found.target):
                raise
            self._link(path, found.target)
            return
        with closing(opened) as pieces:
            self._make_room(pieces.stat.signature.size)
            for _ in range(READ_TRIES):
                before = os.fstat(pieces.handle)
                self.files[path] = self._copied(path, pieces.handle, before)
                if signature_of(os.fstat(pieces.handle)) == signature_of(before):
                    return
                os.unlink(f"{self.folder}/{path}")
                del self.files[path]
        raise ChangedWhileRead(path, "another program keeps writing to it")

    def _copied(self, path: WorkspacePath, source: int, found: os.stat_result) -> Copied:
        self._make_parents(path)
        mode = found.st_mode & 0o777
        copy = os.open(f"{self.folder}/{path}", _WRITE_NEW, mode)
        try:
            cloned, hashed, at = self._clone(copy, source), hashlib.sha256(), 0
            while at < found.st_size and (block := os.pread(source, PIECE_BYTES, at)):
                hashed.update(block)
                at += len(block)
                if not cloned:
                    _write(copy, block)
            if mode & self._masked:
                os.fchmod(copy, mode)
            os.utime(copy, ns=(found.st_mtime_ns, found.st_mtime_ns))  # for `make`
            return Copied(Digest(f"sha256:{hashed.hexdigest()}"), signature_of(os.fstat(copy)), mode)
        finally:
            os.close(copy)

    def _clone(self, copy: int, source: int) -> bool:
        if not self.clones:
            return False
        try:
            fcntl.ioctl(copy, FICLONE, source)
        except OSError as error:
            if error.errno not in _NO_CLONES:
                raise
            self.clones = False
        return self.clones

    def _link(self, path: WorkspacePath, target: str) -> None:
        self._make_parents(path)
        os.symlink(target, f"{self.folder}/{path}")
        self.links[path] = target

    def _make_parents(self, path: str) -> None:
        above = path.rpartition("/")[0]
        if above not in self._folders:
            self._make_parents(above)
            os.mkdir(f"{self.folder}/{above}")
            self._folders.add(above)


class LocalScratchTree:
    """See `ports.commands.ScratchTree`."""

    def __init__(self, copy: TreeCopy, ignore: Ignore, disk: Disk, kept_for: tuple[str, str] = ("", "")) -> None:
        self._copy, self._ignore, self._disk = copy, ignore, disk
        self._at = Confinement(copy.folder, disk)  # held: whatever takes the folder's place is not looked at
        self.folder, self.kept_for = copy.folder, kept_for
        self.copied_by = "reflink" if copy.clones and copy.files else "copy"
        self.missing = tuple(copy.missing)

    async def changes(self, *, most_bytes: int) -> ScratchChanges:
        return await to_thread.run_sync(Comparison(self._copy, self._at, self._ignore, most_bytes).changes)

    def release(self) -> None:
        self._at.close()

    async def remove(self) -> None:
        with anyio.CancelScope(shield=True):
            self._at.close()
            await to_thread.run_sync(remove, self.folder)
            await to_thread.run_sync(partial(Path(f"{self.folder}{MANIFEST}").unlink, missing_ok=True))


class Comparison:
    """What is in a folder by now against what was copied there. No link is followed, whatever the command made."""

    def __init__(self, copy: TreeCopy, at: Confinement, ignore: Ignore, most_bytes: int) -> None:
        self._copied, self._links, self._at, self._ignore = copy.files, copy.links, at, ignore
        self._left_bytes = most_bytes
        self._seen: set[str] = set()
        self._closed: list[str] = []  # folders that can't be read: nothing is known of what was copied there
        self._changed: list[ScratchChange] = []
        self._left_out: list[tuple[str, str]] = []

    def changes(self) -> ScratchChanges:
        """In a thread. Raises OSError where the disk fails."""
        pending = [""]
        while pending:
            folder = pending.pop()
            try:
                with self._at.directory(WorkspacePath(folder or ".")) as handle:
                    for name in self._at.disk.names(handle):
                        path = f"{folder}/{name}" if folder else name
                        if self._look(handle, name, path):
                            pending.append(path)
            except PathError as error:
                self._leave_out(folder, error.message)
                self._closed.append(f"{folder}/")
        for path in (self._copied.keys() | self._links.keys()) - self._seen:
            if path.startswith(tuple(self._closed)):
                continue
            if path in self._copied:
                self._changed.append(_deleted(path, self._copied[path]))
            else:
                self._leave_out(path, "a symbolic link that was removed")
        self._changed.sort(key=lambda change: change.path)
        return ScratchChanges(tuple(self._changed), tuple(sorted(self._left_out)))

    def _look(self, handle: int, name: str, path: str) -> bool:
        """Whether it is a directory to go into."""
        found = self._at.disk.stat_at(handle, name)
        kind = kind_of(found)
        self._seen.add(path)
        if not valid_name(name):
            self._leave_out(path, "its name breaks the name rule")
        elif kind == "directory":
            return not self._ignored(path, directory=True) or self._has_copies(path)
        elif kind == "symlink":
            if self._at.disk.read_link(handle, name) != self._links.get(path) and not self._ignored(path):
                self._leave_out(path, "a symbolic link")
        elif path not in self._copied and self._ignored(path):
            pass
        elif kind != "file":
            self._leave_out(path, "a device, socket or pipe")
        else:
            self._compare(handle, name, WorkspacePath(path), found)
        return False

    def _compare(self, handle: int, name: str, path: WorkspacePath, found: os.stat_result) -> None:
        copied, mode = self._copied.get(path), stat.S_IMODE(found.st_mode)
        if copied is not None and (copied.signature, copied.mode) == (signature_of(found), mode):
            return
        try:
            with self._at.regular(handle, name, path) as (file, opened):
                size = opened.st_size
                if copied is not None and copied.mode == mode and digest_from(self._at.disk, file) == copied.digest:
                    return
                if size > self._left_bytes:
                    self._leave_out(path, f"its {size} bytes are more than what may come back")
                    return
                content = b"".join(blocks_of(self._at.disk, file))
        except PathError as error:
            self._leave_out(path, error.message)
            return
        self._left_bytes -= len(content)
        before = None if copied is None else copied.digest
        self._changed.append(ScratchChange(path=path, before=before, content=content, mode=mode))

    def _ignored(self, path: str, *, directory: bool = False) -> bool:
        return self._ignore.ignored(WorkspacePath(path), directory=directory)

    def _has_copies(self, folder: str) -> bool:
        above = f"{folder}/"
        return any(path.startswith(above) for path in self._copied)

    def _leave_out(self, path: str, why: str) -> None:
        self._left_out.append((escaped(path), why))


def _deleted(path: str, copied: Copied) -> ScratchChange:
    return ScratchChange(path=WorkspacePath(path), before=copied.digest, content=None, mode=None)


def _file_mask() -> int:
    """The permission bits that new files don't get. Only Linux tells it without setting it for all threads."""
    try:
        status = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return 0o777
    return int(status.partition("\nUmask:")[2].split()[0], 8)


def stays_inside(path: WorkspacePath, target: str) -> bool:
    """Whether a link at `path` leads to a place below the root, whatever other such links are on the way.

    `target` as a stat has it, escaped: what needs that is not followed up.
    """
    up, down = 0, target.split("/")
    while down and down[0] == "..":
        up, down = up + 1, down[1:]
    return not target.startswith("/") and up <= path.count("/") and ".." not in down and "\\" not in target


def _write(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]
