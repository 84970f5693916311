"""Linux inotify: a descriptor, watches on directories, and their events.

Called directly, because watchfiles keeps three things from us: that the queue overflowed, which
folders it could not watch, and (it follows links) that it watches outside the workspace.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Iterator

import msgspec

IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE = 0x2, 0x4, 0x8
IN_MOVED_FROM, IN_MOVED_TO, IN_CREATE, IN_DELETE = 0x40, 0x80, 0x100, 0x200
IN_DELETE_SELF, IN_MOVE_SELF = 0x400, 0x800
IN_UNMOUNT, IN_Q_OVERFLOW, IN_IGNORED = 0x2000, 0x4000, 0x8000
IN_ONLYDIR, IN_EXCL_UNLINK, IN_ISDIR = 0x1000000, 0x4000000, 0x40000000

_OF_NAMES = IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE | IN_DELETE
WATCHED = IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | _OF_NAMES | IN_ONLYDIR | IN_EXCL_UNLINK
"""Never that something was opened or read: our own reads would fill the queue."""

WATCHED_ROOT = WATCHED | IN_DELETE_SELF | IN_MOVE_SELF

_HEADER = struct.Struct("iIII")
_READ_BYTES = 256 * 1024


class Notice(msgspec.Struct, frozen=True):
    """One event, as the kernel gives it; `watch` is -1 for an overflow."""

    watch: int
    mask: int
    name: str  # in the watched directory; "" is the directory itself


class Inotify:
    """One notifier. Thread-safe, as the kernel is. Raises OSError; NotImplementedError off Linux."""

    def __init__(self) -> None:
        if sys.platform != "linux":
            raise NotImplementedError("inotify is Linux's")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.handle = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def add(self, directory: int, mask: int) -> int:
        """Watch an open directory, whatever its name is by now; the same one twice gives the same number.

        ENOSPC: the machine's limit of watches is reached.
        """
        at = f"/proc/self/fd/{directory}".encode()
        return self._checked(self._libc.inotify_add_watch(self.handle, at, ctypes.c_uint32(mask)))

    def remove(self, watch: int) -> None:
        """Watch it no more; one that is gone already is no error."""
        try:
            self._checked(self._libc.inotify_rm_watch(self.handle, watch))
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise

    def read(self) -> Iterator[Notice]:
        """What waits in the queue now."""
        while True:
            try:
                data = os.read(self.handle, _READ_BYTES)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                watch, mask, _, length = _HEADER.unpack_from(data, at)
                at += _HEADER.size
                yield Notice(watch, mask, os.fsdecode(data[at : at + length].rstrip(b"\0")))
                at += length

    def close(self) -> None:
        os.close(self.handle)

    @staticmethod
    def _checked(result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return int(result)
