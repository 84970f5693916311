"""Opens paths below the root's handle; the kernel resolves and refuses."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from orchestrator.core import errors as e
from orchestrator.core.errors import escaped
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.system_errors import system_trouble
from orchestrator.workspace.disk import Disk, identity_of, kind_of
from orchestrator.workspace.own_files import OwnFiles

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY
LOOK = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
OPEN_TRIES = 3
MOST_ABOVE = 4096
BLOCK_BYTES = 1024 * 1024


class Confinement:
    """The root, and everything that is found under it.

    What is the daemon's `own` is as if absent: its directories, with all that is in them, and hard links to its files.
    """

    def __init__(self, root: str, disk: Disk, *, own: OwnFiles | None = None) -> None:
        self.disk = disk
        self.root = disk.open_root(root)
        found = disk.stat(self.root)
        self.device = found.st_dev
        self._root_identity = identity_of(found)
        self._own = own or OwnFiles(())
        self._hidden = self._own.directories() if self._own.inside(root) else frozenset()

    def close(self) -> None:
        self.disk.close(self.root)

    def hides(self, found: os.stat_result) -> bool:
        """Whether this is one of the daemon's own."""
        if self._hidden and identity_of(found) in self._hidden:
            return True
        return found.st_nlink > 1 and stat.S_ISREG(found.st_mode) and self._own.holds(identity_of(found))

    # --- directories ------------------------------------------------------------------

    @contextmanager
    def parent(self, path: WorkspacePath) -> Iterator[tuple[int, str]]:
        """The handle of the directory that holds a path, and the name in it. Raises the PathError family."""
        if "/" not in path and self._root_identity not in self._hidden:
            yield self.root, path  # open since the start, and it can be nowhere else
            return
        handle, name = self.open_parent(path)
        with self._held(handle):
            yield handle, name

    @contextmanager
    def directory(self, path: WorkspacePath) -> Iterator[int]:
        """The handle of a directory, open for as long as the block runs."""
        handle = self.open_directory(path)
        try:
            yield handle
        finally:
            self.disk.close(handle)

    @contextmanager
    def _held(self, handle: int) -> Iterator[int]:
        try:
            yield handle
        finally:
            self.disk.close(handle)

    def open_parent(self, path: WorkspacePath) -> tuple[int, str]:
        """As `parent`; the caller closes the handle."""
        above, _, name = path.rpartition("/")
        return self.open_directory(WorkspacePath(above or "."), asked=path), name

    def open_directory(self, path: WorkspacePath, *, asked: WorkspacePath | None = None) -> int:
        """A directory's handle, which can be synced; the caller closes it."""
        asked = asked or path
        try:
            handle = self.disk.open_beneath(self.root, path, DIRECTORY)
        except OSError as error:
            raise refusal(asked, error) from error
        if self._hidden:
            try:
                with translated(asked):
                    self._check_above(handle, asked)
            except BaseException:
                self.disk.close(handle)
                raise
        return handle

    def _check_above(self, handle: int, asked: WorkspacePath) -> None:
        """What was opened, and each directory from there up to the root, is not the daemon's own."""
        identity, upward = identity_of(self.disk.stat(handle)), ".."
        for _ in range(MOST_ABOVE):
            if identity in self._hidden:
                raise e.FileNotFound(asked, NOTHING)
            if identity == self._root_identity:
                return
            above = identity_of(self.disk.stat_at(handle, upward))
            if above == identity:
                break
            identity, upward = above, upward + "/.."
        raise e.OutsideWorkspace(asked, "a directory in it was moved out of the workspace in the meantime")

    # --- files ------------------------------------------------------------------------

    @contextmanager
    def regular(self, directory: int, name: str, path: WorkspacePath) -> Iterator[tuple[int, os.stat_result]]:
        """A regular file, open for reading for as long as the block runs."""
        handle, found = self.open_regular(directory, name, path)
        with self._held(handle):
            yield handle, found

    def open_file(self, path: WorkspacePath) -> tuple[int, os.stat_result]:
        """A regular file by its whole path, open for reading; the caller closes it. Raises as `open_regular`.

        The kernel resolves the path in one go; whatever it does not take goes the way that can say why.
        """
        opened = self._opened_at_once(path) if not self._hidden else None
        if opened is not None:
            return opened
        with self.parent(path) as (directory, name):
            return self.open_regular(directory, name, path)

    def _opened_at_once(self, path: WorkspacePath) -> tuple[int, os.stat_result] | None:
        try:
            found = self.disk.stat_at(self.root, path)  # a link on the way is followed here, and refused below
            if not stat.S_ISREG(found.st_mode) or found.st_dev != self.device or self.hides(found):
                return None
            handle = self.disk.open_beneath(self.root, path, LOOK)
        except OSError:
            return None
        try:
            opened = self.disk.stat(handle)
            if identity_of(opened) == identity_of(found) and stat.S_ISREG(opened.st_mode):
                return handle, opened
        except OSError:
            pass
        self.disk.close(handle)
        return None

    def open_regular(self, directory: int, name: str, path: WorkspacePath) -> tuple[int, os.stat_result]:
        """Open for reading, once it is known to be a regular file: no FIFO ever sees a reader.

        Raises SymlinkRefused, NotAFile, NotARegularFile, CrossDevice, FileNotFound,
        AccessRefused, and ChangedWhileRead if it is exchanged again and again meanwhile.
        """
        for _ in range(OPEN_TRIES):
            with translated(path):
                found = self.disk.stat_at(directory, name)
                self._require_regular(found, path)
                handle = self.disk.open_at(directory, name, LOOK)
            try:
                with translated(path):
                    opened = self.disk.stat(handle)
                self._require_regular(opened, path)
            except BaseException:
                self.disk.close(handle)
                raise
            if identity_of(opened) == identity_of(found):
                return handle, opened
            self.disk.close(handle)
        raise e.ChangedWhileRead(path, "other programs keep replacing it")

    def _require_regular(self, found: os.stat_result, path: WorkspacePath) -> None:
        kind = kind_of(found)
        if kind == "symlink":
            raise e.SymlinkRefused(path, "it is a symbolic link")
        if kind == "directory":
            raise e.NotAFile(path, "it is a directory", hint="Use list_files.")
        if kind != "file":
            raise e.NotARegularFile(path, "it is a device, socket or pipe")
        if self.hides(found):
            raise e.FileNotFound(path, NOTHING)
        if found.st_dev != self.device:
            raise e.CrossDevice(path, "it lies on another file system")

    # --- contents ---------------------------------------------------------------------

    def content(self, directory: int, name: str, path: WorkspacePath) -> bytes | None:
        """The bytes under a name; None for nothing, or nothing regular. Raises IoFailed."""
        with absent(), self.regular(directory, name, path) as (handle, _):
            return b"".join(blocks_of(self.disk, handle))
        return None

    def holds(self, directory: int, name: str, expected: Digest | None, path: WorkspacePath) -> bool:
        """Whether a regular file with this content has the name. Raises what keeps it from being read, save absence."""
        with suppress(e.FileNotFound, e.ChangedWhileRead), self.regular(directory, name, path) as (handle, _):
            return digest_from(self.disk, handle) == expected
        return False

    def still_has(self, handle: int, path: WorkspacePath) -> bool:
        """Whether the directory of `path` is still the one that the handle refers to. Raises IoFailed."""
        with absent(), self.parent(path) as (present, _):
            return identity_of(self.disk.stat(present)) == identity_of(self.disk.stat(handle))
        return False

    def open_expected(self, directory: int, name: str, expected: Digest, path: WorkspacePath) -> int:
        """The handle of a regular file that is `expected`, under a read lease where those can be had.

        The lease is refused while anyone has the file open for writing; it ends when the caller
        closes the handle. Raises UnexpectedContent, FileBusy, IoFailed.
        """
        opened = None
        with absent():
            opened = self.open_regular(directory, name, path)
        if opened is None:
            raise UnexpectedContent
        try:
            self.take_lease(opened[0], path)
            if digest_from(self.disk, opened[0]) != expected:
                raise UnexpectedContent
        except BaseException:
            self.disk.close(opened[0])
            raise
        return opened[0]

    def take_lease(self, handle: int, path: WorkspacePath) -> None:
        """A read lease, where it can be had, for as long as the handle is open. Raises FileBusy."""
        try:
            self.disk.take_lease(handle)
        except OSError as error:
            if error.errno != errno.EAGAIN:
                raise
            raise e.FileBusy(path, "another program holds it open for writing") from error


class UnexpectedContent(Exception):
    """Another content, or another kind of thing, or another directory than it should be."""


@contextmanager
def absent() -> Iterator[None]:
    """Leaves the block where a path does not lead to what was asked for; a disk that fails is no absence."""
    try:
        yield
    except e.IoFailed:
        raise
    except e.PathError:
        return


def blocks_of(disk: Disk, handle: int) -> Iterator[bytes]:
    """The content of a file, piece by piece."""
    at = 0
    while block := disk.read(handle, BLOCK_BYTES, at):
        yield block
        at += len(block)


def digest_from(disk: Disk, handle: int) -> Digest:
    """The digest of a whole file, in bounded memory."""
    hashed = hashlib.sha256()
    for block in blocks_of(disk, handle):
        hashed.update(block)
    return Digest("sha256:" + hashed.hexdigest())


# --- the kernel's errors as ours --------------------------------------------------------

NOTHING = "nothing has this name"


@contextmanager
def translated(path: WorkspacePath) -> Iterator[None]:
    """Turn the kernel's errors into ours."""
    try:
        yield
    except OSError as error:
        raise refusal(path, error) from error


_REFUSALS: dict[int, tuple[type[e.PathError], str]] = {
    errno.ENOENT: (e.FileNotFound, NOTHING),
    errno.ELOOP: (e.SymlinkRefused, "it, or a directory in it, is a symbolic link"),
    errno.EXDEV: (e.CrossDevice, "a directory in it lies on another file system"),
    errno.ENOTDIR: (e.NotADirectory, "a name in it is a file, where a directory is needed"),
    errno.EEXIST: (e.FileExists, "this name is taken"),
    errno.EISDIR: (e.NotAFile, "it is a directory"),
    errno.ENXIO: (e.NotARegularFile, "it is a device, socket or pipe"),
    errno.ENODEV: (e.NotARegularFile, "it is a device, socket or pipe"),
    errno.ENAMETOOLONG: (e.PathTooLong, "a name in it is too long for the file system"),
    errno.EIO: (e.IoFailed, f"the disk failed: {os.strerror(errno.EIO)}"),
    errno.EAGAIN: (e.ChangedWhileRead, "other programs keep moving it"),
}


def refusal(path: WorkspacePath, error: OSError) -> e.OrchestratorError:
    """What an error of the kernel means for the caller."""
    trouble = system_trouble(error, f"{escaped(path)} can't be reached; nothing was changed")
    if trouble is not None:
        return trouble
    if error.errno == errno.EXDEV and (path.startswith("/") or ".." in path.split("/")):
        return e.OutsideWorkspace(path, "it leads out of the workspace")
    other = e.AccessRefused, f"the operating system refuses: {error.strerror}"
    refused, why = _REFUSALS.get(error.errno or 0, other)
    return refused(path, why)
