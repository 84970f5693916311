"""Copies files of the workspace below a folder, and knows afterwards what it copied."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from anyio import from_thread

from orchestrator.core.content import Signature
from orchestrator.core.errors import ChangedWhileRead, DiskFull, FileTooLarge, PathError, SymlinkRefused
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.system_errors import system_trouble
from orchestrator.ports.workspace import PIECE_BYTES, Workspace
from orchestrator.workspace.disk import signature_of

MOST_TREE_BYTES = 4 << 30
LEFT_FREE_BYTES = 512 << 20
"""On the disk of the copies, where the journal is, too."""

LOOK_EVERY, LOOK_BYTES = 256, 64 << 20
"""Files, or bytes, between two looks whether the disk has room, and whether the caller is still there."""

READ_TRIES = 3

FICLONE = 0x40049409
_NO_CLONES = (errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.EPERM)
_WRITE_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


SETTLED_NS = 2_000_000_000
"""What changed so shortly before it was copied may change again with no other time: clocks of files are coarse."""


class Copied(NamedTuple):
    """One file as it was copied. `source`: of the workspace's; None where an equal one would prove nothing."""

    digest: Digest
    signature: Signature
    mode: int
    source: Signature | None = None


class TreeCopy:
    """Copies files below a folder, and knows afterwards what it copied."""

    def __init__(self, workspace: Workspace, folder: str) -> None:
        self._workspace, self.folder = workspace, folder
        self.files: dict[str, Copied] = {}
        self.links: dict[str, str] = {}
        self.missing: list[WorkspacePath] = []
        self.clones = True  # until the file system says that it can't
        self._masked = _file_mask()

    def make(self, files: Sequence[WorkspacePath], linked: Sequence[WorkspacePath] = ()) -> None:
        """In a thread of anyio's, to what was copied before. Raises DiskFull, FileTooLarge."""
        self.missing = []
        self._folders = folders_of(self.files.keys() | self.links.keys())
        self._bytes = sum(copied.signature.size for copied in self.files.values())
        self._unlooked = self._next_look_bytes = 0
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
            check_room(self.folder, size)

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
            settled = found.st_ctime_ns < time.time_ns() - SETTLED_NS
            digest = Digest(f"sha256:{hashed.hexdigest()}")
            return Copied(digest, signature_of(os.fstat(copy)), mode, signature_of(found) if settled else None)
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

    def remove(self, paths: Iterable[str]) -> None:
        """What was copied, with the directories that are empty then."""
        emptied = set[str]()
        for path in paths:
            Path(self.folder, path).unlink(missing_ok=True)
            self.files.pop(path, None)
            self.links.pop(path, None)
            emptied.add(path.rpartition("/")[0])
        for folder in sorted(emptied, key=len, reverse=True):
            above = folder
            while above:
                try:
                    os.rmdir(f"{self.folder}/{above}")
                except OSError as error:
                    if error.errno in (errno.ENOTEMPTY, errno.ENOENT):
                        break
                    raise
                above = above.rpartition("/")[0]

    def _make_parents(self, path: str) -> None:
        above = path.rpartition("/")[0]
        if above not in self._folders:
            self._make_parents(above)
            with suppress(FileExistsError):  # left by a file that could not be copied
                os.mkdir(f"{self.folder}/{above}")
            self._folders.add(above)


def check_room(folder: str, size: int = 0) -> None:
    """Raises DiskFull where so many bytes more would leave too little."""
    free = shutil.disk_usage(folder).free
    if free - size < LEFT_FREE_BYTES:
        raise DiskFull(f"{free >> 20} MB are free where scratch copies are made: too little for the tree")


def folders_of(paths: Iterable[str]) -> set[str]:
    """The directories above some paths, with the root, which is `""`."""
    folders = {""}
    for path in paths:
        while (path := path.rpartition("/")[0]) not in folders:
            folders.add(path)
    return folders


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
