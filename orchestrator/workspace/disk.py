"""The kernel, call by call: openat2, renameat2 and leases through the C library, the rest through os."""

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
from collections.abc import Callable

from orchestrator.ports import Rename

_OPENAT2 = 437
_RENAMEAT2 = {"x86_64": 316, "aarch64": 276, "riscv64": 276}
_RESOLVE = 0x01 | 0x02 | 0x04 | 0x08  # NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS, BENEATH
_RENAME = {"replace": 0, "noreplace": 1, "exchange": 2}
_TRIES = 10
_LINUX = sys.platform.startswith("linux")
_NO_LEASE = (errno.EACCES, errno.EINVAL, errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EPERM)


class _Leases:
    """Whether leases are safe to take in this process: SIGIO, which a broken one sends, must be ignored first."""

    allowed = False


def ignore_lease_breaks() -> None:
    """Called once by the main thread before the first lease; a lease break would end the process otherwise."""
    if _LINUX:
        signal.signal(signal.SIGIO, signal.SIG_IGN)
        _Leases.allowed = True


class KernelDisk:
    """See `ports.Disk`. `walk=True` opens component by component even where the kernel has openat2."""

    def __init__(self, *, walk: bool = False) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._rename_number = _RENAMEAT2.get(platform.machine()) if _LINUX else None
        self._open_beneath: Callable[[int, str, int], int] = self._openat2
        self._lacks: list[str] = []
        if walk or not self._has_openat2():
            self._open_beneath = self._walk
            if not walk:
                self._lacks.append("no openat2 here: paths are walked component by component, which is slower")
        if self._rename_number is None:
            self._lacks.append(
                "no exchanging rename here: another program's write in the last instant before ours can be lost"
            )

    @property
    def features(self) -> tuple[str, ...]:
        return tuple(self._lacks)

    # --- opening ----------------------------------------------------------------------

    def open_root(self, path: str) -> int:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def open_beneath(self, root: int, path: str, flags: int) -> int:
        return self._open_beneath(root, path, flags | os.O_CLOEXEC | os.O_NOFOLLOW)

    def _openat2(self, root: int, path: str, flags: int) -> int:
        name = path.encode("utf-8", "surrogateescape")
        how = ctypes.create_string_buffer(struct.pack("QQQ", flags, 0, _RESOLVE), 24)
        for _ in range(_TRIES):
            handle = self._libc.syscall(_OPENAT2, root, name, how, ctypes.c_size_t(24))
            if handle >= 0:
                return int(handle)
            number = ctypes.get_errno()
            if number not in (errno.EAGAIN, errno.EINTR):
                raise OSError(number, os.strerror(number), path)
        raise OSError(errno.EAGAIN, "renames keep moving the path", path)

    def _walk(self, root: int, path: str, flags: int) -> int:
        """Each component under the handle of the one before it."""
        device = os.fstat(root).st_dev
        if path == ".":
            return os.open(".", flags, dir_fd=root)
        *above, last = path.split("/")
        here = root
        try:
            for name in above:
                below = self._step(here, name)
                if here != root:
                    os.close(here)
                here = below
                if os.fstat(here).st_dev != device:
                    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
            handle = os.open(last, flags, dir_fd=here)
        finally:
            if here != root:
                os.close(here)
        if os.fstat(handle).st_dev != device:
            os.close(handle)
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
        if stat.S_ISLNK(os.fstat(handle).st_mode):
            os.close(handle)
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        return handle

    @staticmethod
    def _step(directory: int, name: str) -> int:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(name, flags, dir_fd=directory)
        except OSError as error:
            if error.errno == errno.ENOTDIR and stat.S_ISLNK(os.lstat(name, dir_fd=directory).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from error
            raise

    def _has_openat2(self) -> bool:
        if not _LINUX:
            return False
        root = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.close(self._openat2(root, ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        except OSError as error:
            if error.errno in (errno.ENOSYS, errno.EPERM):
                return False
            raise
        finally:
            os.close(root)
        return True

    def open_at(self, directory: int, name: str, flags: int, mode: int = 0) -> int:
        return os.open(name, flags | os.O_CLOEXEC | os.O_NOFOLLOW, mode, dir_fd=directory)

    def close(self, handle: int) -> None:
        os.close(handle)

    # --- looking ----------------------------------------------------------------------

    def stat(self, handle: int) -> os.stat_result:
        return os.fstat(handle)

    def stat_at(self, directory: int, name: str) -> os.stat_result:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)

    def read_link(self, directory: int, name: str) -> str:
        return os.readlink(name, dir_fd=directory)

    def names(self, directory: int) -> list[str]:
        return os.listdir(directory)

    def read(self, handle: int, count: int, offset: int) -> bytes:
        return os.pread(handle, count, offset)

    # --- writing ----------------------------------------------------------------------

    def write(self, handle: int, data: memoryview) -> int:
        return os.write(handle, data)

    def sync(self, handle: int) -> None:
        os.fsync(handle)

    def rename(self, from_dir: int, old: str, to_dir: int, new: str, how: Rename) -> None:
        if how == "replace":
            os.rename(old, new, src_dir_fd=from_dir, dst_dir_fd=to_dir)
            return
        if self._rename_number is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), new)
        source, target = os.fsencode(old), os.fsencode(new)
        done = self._libc.syscall(self._rename_number, from_dir, source, to_dir, target, ctypes.c_uint(_RENAME[how]))
        if done != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), new)

    def unlink_at(self, directory: int, name: str) -> None:
        os.unlink(name, dir_fd=directory)

    def make_directory(self, directory: int, name: str) -> None:
        os.mkdir(name, dir_fd=directory)

    def copy_attributes(self, source: int, target: int) -> tuple[str, ...]:
        warnings: list[str] = []
        known, ours = os.fstat(source), os.fstat(target)
        if (known.st_uid, known.st_gid) != (ours.st_uid, ours.st_gid):
            try:
                os.fchown(target, known.st_uid, known.st_gid)
            except PermissionError:
                warnings.append("owner and group could not be kept: the daemon's user may not set them")
        dropped = known.st_mode & (stat.S_ISUID | stat.S_ISGID)
        if dropped:
            warnings.append("the setuid and setgid bits were dropped, as after any write")
        os.fchmod(target, stat.S_IMODE(known.st_mode) & ~(stat.S_ISUID | stat.S_ISGID))
        if _LINUX:
            warnings += _copy_xattrs(source, target)
        return tuple(warnings)

    def set_mode(self, handle: int, mode: int) -> None:
        os.fchmod(handle, mode & 0o777)

    def take_lease(self, handle: int) -> bool:
        if not _LINUX or not _Leases.allowed:
            return False
        try:
            fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError as error:
            if error.errno in _NO_LEASE:
                return False
            raise
        return True


def _copy_xattrs(source: int, target: int) -> list[str]:
    """Extended attributes and ACLs, which are some of them."""
    warnings = []
    try:
        names = os.listxattr(source)
    except OSError:
        return []  # the file system has none
    for name in names:
        try:
            os.setxattr(target, name, os.getxattr(source, name))
        except OSError as error:
            warnings.append(f"the attribute {name} could not be kept: {error.strerror}")
    return warnings
