"""The system calls of a durable change, one by one; those that Python lacks through the C library."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import signal
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Literal

from orchestrator.core.content import Signature
from orchestrator.core.errors import escaped
from orchestrator.ports.workspace import FileStat

Rename = Literal["replace", "noreplace", "exchange"]
Identity = tuple[int, int]
"""(device, inode)."""

_LINUX = sys.platform.startswith("linux")
_OPENAT2 = 437
_RENAMEAT2 = {"x86_64": 316, "aarch64": 276, "riscv64": 276, "armv7l": 382, "ppc64le": 357, "s390x": 347}
_RESOLVE = 0x01 | 0x02 | 0x04 | 0x08  # NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS, BENEATH
_RENAME = {"noreplace": 1, "exchange": 2}
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_TRIES = 10
_UNKNOWN = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)
_NO_LEASE = (*_UNKNOWN, errno.EACCES, errno.ENOLCK, errno.EPERM)


class _Leases:
    """Whether leases are safe to take in this process: SIGIO, which a broken one sends, must be ignored first."""

    allowed = False


def ignore_lease_breaks() -> None:
    """Called once by the main thread before the first lease; a lease break would end the process otherwise."""
    if _LINUX:
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        _Leases.allowed = True


class Disk:
    """Every call on a workspace file, at the level of the kernel; descriptors in, OSError out. Thread-safe.

    The one place under which a test can count, fail or lose any of them. `walk=True` opens component by component
    even where the kernel has openat2.
    """

    def __init__(self, *, walk: bool = False) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._renameat2 = _RENAMEAT2.get(platform.machine()) if _LINUX else None
        self._has_openat2 = not walk and self._try_openat2()
        self._open_beneath = self._openat2 if self._has_openat2 else self._walk
        self._lacks: set[Rename] = set() if self._renameat2 else {"exchange", "noreplace"}
        self._leases = _LINUX

    @property
    def degraded(self) -> tuple[str, ...]:
        """What this machine can't do for us, as sentences; some is only learned when it is first tried."""
        openat2, leases, lacks = self._has_openat2, self._leases and _Leases.allowed, self._lacks
        found = (
            (not openat2, "no openat2: paths are walked name by name, and a bind mount of the same disk is not seen"),
            ("exchange" in lacks, "no exchanging rename: what another program writes just before ours is lost"),
            ("noreplace" in lacks, "no exclusive rename: a file that is made just before ours is lost"),
            (not leases, "no leases: a program that keeps a file open may write to its old copy after the change"),
        )
        return tuple(sentence for missing, sentence in found if missing)

    # --- opening ----------------------------------------------------------------------

    def open_root(self, path: str) -> int:
        """A handle of the workspace's root; the path may lead through links."""
        return os.open(path, _DIRECTORY)

    def open_beneath(self, root: int, path: str, flags: int) -> int:
        """Open below a root. ELOOP: a link. EXDEV: out of the root, or into another file system."""
        if path.startswith("/") or ".." in path.split("/"):
            raise _error(errno.EXDEV, path)  # the kernel allows a '..' that stays inside; locks do not
        return self._open_beneath(root, path, flags | os.O_CLOEXEC)

    def _openat2(self, root: int, path: str, flags: int) -> int:
        name = os.fsencode(path)
        how = struct.pack("QQQ", flags, 0, _RESOLVE)
        for _ in range(_TRIES):
            handle = self._libc.syscall(
                ctypes.c_long(_OPENAT2), ctypes.c_int(root), name, how, ctypes.c_size_t(len(how))
            )
            if handle >= 0:
                return int(handle)
            number = ctypes.get_errno()
            if number not in (errno.EAGAIN, errno.EINTR):
                raise _error(number, path)
        raise _error(errno.EAGAIN, path)

    def _walk(self, root: int, path: str, flags: int) -> int:
        """Each component under the handle of the one before it."""
        *above, last = path.split("/")
        device = os.fstat(root).st_dev
        here = root
        try:
            for name in above:
                below = _open_within(here, name, _DIRECTORY, device)
                if here != root:
                    os.close(here)
                here = below
            return _open_within(here, last, flags, device)
        finally:
            if here != root:
                os.close(here)

    def _try_openat2(self) -> bool:
        if not _LINUX:
            return False
        root = os.open("/", _DIRECTORY)
        try:
            os.close(self._openat2(root, ".", _DIRECTORY))
        except OSError as error:
            if error.errno in (errno.ENOSYS, errno.EPERM):
                return False
            raise
        finally:
            os.close(root)
        return True

    def open_at(self, directory: int, name: str, flags: int, mode: int = 0) -> int:
        """Open one name in a directory; never a link. New files have `mode` & ~umask."""
        return os.open(name, flags | os.O_CLOEXEC | os.O_NOFOLLOW, mode, dir_fd=directory)

    def close(self, handle: int) -> None:
        os.close(handle)

    # --- looking ----------------------------------------------------------------------

    def stat_root(self, path: str) -> os.stat_result:
        """What is at the workspace's path now, though it be a link."""
        return os.lstat(path)

    def stat(self, handle: int) -> os.stat_result:
        return os.fstat(handle)

    def stat_at(self, directory: int, name: str) -> os.stat_result:
        """Of the name itself, if it is a link too. `..`, `../..` … are the directories above."""
        return os.stat(name, dir_fd=directory, follow_symlinks=False)

    def read_link(self, directory: int, name: str) -> str:
        return os.readlink(name, dir_fd=directory)

    def names(self, directory: int) -> list[str]:
        return os.listdir(directory)

    def entries(self, directory: int) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        """The names in it, one by one; whether one is a directory is mostly known without a stat."""
        return os.scandir(directory)

    def read(self, handle: int, count: int, offset: int) -> bytes:
        """Up to `count` bytes; empty at the end."""
        return os.pread(handle, count, offset)

    def data_from(self, handle: int, offset: int) -> int:
        """Where, from an offset on, the next bytes are that are not a hole's; `offset` itself where nobody can say."""
        try:
            return os.lseek(handle, offset, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return max(offset, os.fstat(handle).st_size)
            return offset

    # --- writing ----------------------------------------------------------------------

    def write(self, handle: int, data: memoryview) -> int:
        """How many of the bytes were taken; may be fewer than given."""
        return os.write(handle, data)

    def sync(self, handle: int) -> None:
        """Everything of this file, or every name in this directory, is on the platter on return."""
        if sys.platform == "darwin":
            fcntl.fcntl(handle, fcntl.F_FULLFSYNC)  # fsync there stops at the drive's cache
        else:
            os.fsync(handle)

    def rename(self, from_dir: int, old: str, to_dir: int, new: str, how: Rename) -> None:
        """`noreplace` fails with EEXIST, `exchange` swaps; EINVAL, ENOSYS or ENOTSUP where it can't be had."""
        if how == "replace":
            os.rename(old, new, src_dir_fd=from_dir, dst_dir_fd=to_dir)
            return
        if self._renameat2 is None:
            raise _error(errno.ENOSYS, new)
        names = (ctypes.c_int(from_dir), os.fsencode(old), ctypes.c_int(to_dir), os.fsencode(new))
        if self._libc.syscall(ctypes.c_long(self._renameat2), *names, ctypes.c_uint(_RENAME[how])) != 0:
            number = ctypes.get_errno()
            if number in _UNKNOWN:
                self._lacks.add(how)
            raise _error(number, new)

    def unlink_at(self, directory: int, name: str) -> None:
        os.unlink(name, dir_fd=directory)

    def make_directory(self, directory: int, name: str) -> None:
        os.mkdir(name, dir_fd=directory)

    def remove_directory(self, directory: int, name: str) -> None:
        """ENOTEMPTY if anything is in it."""
        os.rmdir(name, dir_fd=directory)

    # --- a file's metadata ------------------------------------------------------------

    def set_mode(self, handle: int, mode: int) -> None:
        os.fchmod(handle, mode)

    def set_owner(self, handle: int, uid: int, gid: int) -> None:
        """-1 leaves that one as it is."""
        os.fchown(handle, uid, gid)

    def attribute_names(self, handle: int) -> list[str]:
        """The extended attributes, ACLs among them; empty where the file system has none."""
        if not _LINUX:
            return []
        try:
            return os.listxattr(handle)
        except OSError as error:
            if error.errno in _UNKNOWN:
                return []
            raise

    def attribute(self, handle: int, name: str) -> bytes:
        return os.getxattr(handle, name)

    def set_attribute(self, handle: int, name: str, value: bytes) -> None:
        os.setxattr(handle, name, value)

    def remove_attribute(self, handle: int, name: str) -> None:
        os.removexattr(handle, name)

    def take_lease(self, handle: int) -> bool:
        """A read lease, which ends with the handle. False: leases can't be had here. EAGAIN: somebody writes."""
        if not _LINUX or not _Leases.allowed:
            return False
        try:
            fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError as error:
            if error.errno not in _NO_LEASE:
                raise
            if error.errno != errno.EACCES:  # that one is about this file: it is another user's
                self._leases = False
            return False
        return True


def _open_within(directory: int, name: str, flags: int, device: int) -> int:
    """One component: no link, and on the root's device."""
    try:
        handle = os.open(name, flags | os.O_NOFOLLOW, dir_fd=directory)
    except OSError as error:
        if error.errno == errno.ENOTDIR and _is_link(directory, name):
            raise _error(errno.ELOOP, name) from error
        raise
    found = os.fstat(handle)
    if found.st_dev != device or stat.S_ISLNK(found.st_mode):
        os.close(handle)
        raise _error(errno.EXDEV if found.st_dev != device else errno.ELOOP, name)
    return handle


def _is_link(directory: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


# --- what stat says ---------------------------------------------------------------------


def identity_of(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino


def kind_of(found: os.stat_result) -> Literal["file", "directory", "symlink", "other"]:
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
        kind=kind_of(found),
        signature=signature_of(found),
        mode=stat.S_IMODE(found.st_mode),
        uid=found.st_uid,
        target=escaped(target) if target is not None else None,
        device=found.st_dev,
    )
