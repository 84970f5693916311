"""Paths to handles, under the root's handle; the kernel judges, and its errors become ours here alone."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from orchestrator.core.content import Signature
from orchestrator.core.errors import (
    AccessRefused,
    ChangedWhileRead,
    CrossDevice,
    DiskFull,
    FileExists,
    FileNotFound,
    NotADirectory,
    NotAFile,
    NotARegularFile,
    OrchestratorError,
    OutsideWorkspace,
    PathTooLong,
    SymlinkRefused,
    escaped,
)
from orchestrator.core.ids import WorkspacePath
from orchestrator.ports import Disk, FileStat

Identity = tuple[int, int]
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY


class Confinement:
    """The root, and everything that is found under it.

    What is the daemon's own is as if absent: the directories in `hidden`, by (device, inode),
    with all that is in them, and the files that `is_own` knows, which matters for hard links.
    """

    def __init__(
        self,
        root: str,
        disk: Disk,
        *,
        hidden: frozenset[Identity] = frozenset(),
        is_own: Callable[[Identity], bool] = lambda identity: False,
    ) -> None:
        self.disk = disk
        self.root = disk.open_root(root)
        self._hidden, self._is_own = hidden, is_own

    def close(self) -> None:
        self.disk.close(self.root)

    def hides(self, found: os.stat_result) -> bool:
        """Whether this is one of the daemon's own."""
        identity = (found.st_dev, found.st_ino)
        if identity in self._hidden:
            return True
        return stat.S_ISREG(found.st_mode) and found.st_nlink > 1 and self._is_own(identity)

    @contextmanager
    def parent(self, path: WorkspacePath) -> Iterator[tuple[int, str]]:
        """The handle of the directory that holds a path, and the name in it. Raises the PathError family."""
        above, _, name = path.rpartition("/")
        with self.directory(WorkspacePath(above or "."), asked=path) as handle:
            yield handle, name

    @contextmanager
    def directory(self, path: WorkspacePath, *, asked: WorkspacePath | None = None) -> Iterator[int]:
        """The handle of a directory, open for as long as the block runs."""
        with translated(asked or path, self):
            handle = self.disk.open_beneath(self.root, path, _DIRECTORY)
        try:
            self._check_hidden(path, handle, asked or path)
            yield handle
        finally:
            self.disk.close(handle)

    def _check_hidden(self, path: WorkspacePath, handle: int, asked: WorkspacePath) -> None:
        """The daemon's state directory, and all below it, is as if absent."""
        if not self._hidden:
            return
        if self.hides(self.disk.stat(handle)):
            raise FileNotFound(asked, "there is nothing of this name")
        above = path.rpartition("/")[0]
        while above:
            with translated(asked, self):
                upper = self.disk.open_beneath(self.root, above, _DIRECTORY)
            try:
                if self.hides(self.disk.stat(upper)):
                    raise FileNotFound(asked, "there is nothing of this name")
            finally:
                self.disk.close(upper)
            above = above.rpartition("/")[0]

    @contextmanager
    def regular(self, directory: int, name: str, path: WorkspacePath) -> Iterator[tuple[int, os.stat_result]]:
        """A regular file, open for reading; nothing else is ever opened, so no FIFO sees a reader."""
        with translated(path, self):
            found = self.disk.stat_at(directory, name)
        self.require_regular(found, path)
        with translated(path, self):
            handle = self.disk.open_at(directory, name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            opened = self.disk.stat(handle)
            self.require_regular(opened, path)
            if (opened.st_dev, opened.st_ino) != (found.st_dev, found.st_ino):
                raise ChangedWhileRead(path, "it was exchanged while it was opened")
            yield handle, opened
        finally:
            self.disk.close(handle)

    def require_regular(self, found: os.stat_result, path: WorkspacePath) -> None:
        """Raises SymlinkRefused, NotAFile, NotARegularFile, CrossDevice, FileNotFound."""
        kind = kind_of(found)
        if kind == "symlink":
            raise SymlinkRefused(path, "it is a symbolic link")
        if kind == "directory":
            raise NotAFile(path, "it is a directory", hint="Use list_files.")
        if kind != "file":
            raise NotARegularFile(path, "it is a device, socket or pipe")
        if self.hides(found):
            raise FileNotFound(path, "there is nothing of this name")
        if found.st_dev != self.disk.stat(self.root).st_dev:
            raise CrossDevice(path, "it lies on another file system")


def kind_of(found: os.stat_result) -> str:
    """`file`, `directory`, `symlink` or `other`."""
    mode = found.st_mode
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "symlink" if stat.S_ISLNK(mode) else "other"


def signature_of(found: os.stat_result) -> Signature:
    return Signature(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def stat_of(found: os.stat_result, target: str | None = None) -> FileStat:
    return FileStat(
        kind=kind_of(found),  # type: ignore[arg-type]  # one of the four literals
        signature=signature_of(found),
        mode=stat.S_IMODE(found.st_mode),
        nlink=found.st_nlink,
        uid=found.st_uid,
        target=escaped(target) if target is not None else None,
    )


@contextmanager
def translated(path: WorkspacePath, confinement: Confinement | None = None) -> Iterator[None]:
    """Turn the kernel's errors into ours."""
    try:
        yield
    except OSError as error:
        raise refusal(path, error, confinement) from error


def refusal(path: WorkspacePath, error: OSError, confinement: Confinement | None = None) -> OrchestratorError:
    """What an error of the kernel means for the caller."""
    match error.errno:
        case errno.ENOENT:
            return FileNotFound(path, "there is nothing of this name")
        case errno.ELOOP:
            return SymlinkRefused(path, "it, or a directory in it, is a symbolic link")
        case errno.EXDEV:
            return _crossed(path, confinement)
        case errno.ENOTDIR:
            return _no_directory(path, confinement)
        case errno.EEXIST:
            return FileExists(path, "something of this name is there")
        case errno.EISDIR:
            return NotAFile(path, "it is a directory")
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return AccessRefused(path, f"the operating system refuses: {error.strerror}")
        case errno.ENAMETOOLONG:
            return PathTooLong(path, "a name in it is too long for the file system")
        case errno.ENOSPC | errno.EDQUOT:
            return DiskFull(f"no space is left for {path}; nothing was changed")
        case errno.EAGAIN:
            return ChangedWhileRead(path, "renames keep moving it")
        case errno.ENXIO:
            return NotARegularFile(path, "it is a device, socket or pipe")
        case _:
            return AccessRefused(path, f"the operating system refuses: {error.strerror}")


def _crossed(path: WorkspacePath, confinement: Confinement | None) -> OrchestratorError:
    """EXDEV under BENEATH: a mount in the way, or a way out."""
    if confinement is not None and _first_strange(path, confinement) == "mount":
        return CrossDevice(path, "a directory in it lies on another file system")
    return OutsideWorkspace(path, "it leads out of the workspace")


def _no_directory(path: WorkspacePath, confinement: Confinement | None) -> OrchestratorError:
    """ENOTDIR: a file in the middle, or a link where a directory was asked for."""
    if confinement is not None and _first_strange(path, confinement) == "symlink":
        return SymlinkRefused(path, "it, or a directory in it, is a symbolic link")
    return NotADirectory(path, "a name in it is a file, where a directory is needed")


def _first_strange(path: WorkspacePath, confinement: Confinement) -> str | None:
    """The first component that is a link or another file system; for the choice of words only."""
    disk = confinement.disk
    device = disk.stat(confinement.root).st_dev
    here = disk.open_at(confinement.root, ".", _DIRECTORY)
    try:
        for name in path.split("/"):
            try:
                found = disk.stat_at(here, name)
                if stat.S_ISLNK(found.st_mode):
                    return "symlink"
                if found.st_dev != device:
                    return "mount"
                below = disk.open_at(here, name, _DIRECTORY)
            except OSError:
                return None
            disk.close(here)
            here = below
    finally:
        disk.close(here)
    return None
