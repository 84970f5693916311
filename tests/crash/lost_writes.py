"""A disk that forgets what was not synced, and disks with one call left out."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress

from orchestrator.workspace.disk import Disk, Rename


class LosingDisk(Disk):
    """The kernel's disk, with a power switch: what is pending when it is pulled is lost.

    Pending are the bytes of a file until the file is synced, and the names in a directory until
    the directory is. `calls` is what was asked of it, in order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        self._torn: dict[int, str] = {}  # inode → the handle's path in /proc, resolved when power fails
        self._pending: list[tuple[str, Callable[[], None]]] = []  # directory, how to undo it

    def open_at(self, directory: int, name: str, flags: int, mode: int = 0) -> int:
        if flags & os.O_CREAT:
            self.calls.append("create")
        return super().open_at(directory, name, flags, mode)

    def write(self, handle: int, data: memoryview) -> int:
        self.calls.append("write")
        self._torn[os.fstat(handle).st_ino] = _where(handle)
        return super().write(handle, data)

    def read(self, handle: int, count: int, offset: int) -> bytes:
        self.calls.append("read")
        return super().read(handle, count, offset)

    def take_lease(self, handle: int) -> bool:
        self.calls.append("lease")
        return super().take_lease(handle)

    def sync(self, handle: int) -> None:
        found = os.fstat(handle)
        where = _where(handle)
        super().sync(handle)
        if stat.S_ISDIR(found.st_mode):
            self.calls.append("sync directory")
            self._pending = [entry for entry in self._pending if entry[0] != where]
        else:
            self.calls.append("sync file")
            self._torn.pop(found.st_ino, None)

    def rename(self, from_dir: int, old: str, to_dir: int, new: str, how: Rename) -> None:
        source, target = f"{_where(from_dir)}/{old}", f"{_where(to_dir)}/{new}"
        super().rename(from_dir, old, to_dir, new, how)
        self.calls.append(how)
        self._pending.append(
            (_where(to_dir), lambda: _swap(source, target) if how == "exchange" else _back(target, source))
        )

    def unlink_at(self, directory: int, name: str) -> None:
        self.calls.append("unlink")
        super().unlink_at(directory, name)

    def make_directory(self, directory: int, name: str) -> None:
        where = _where(directory)
        super().make_directory(directory, name)
        self.calls.append("make directory")
        self._pending.append((where, lambda: _back(f"{where}/{name}", f"{where}/{name}.lost")))

    def power_fails(self, *, names: bool) -> None:
        """All bytes that are not synced are lost; with `names`, all names that are not synced too."""
        for root, _, files in os.walk(self.root):
            for name in files:
                path = f"{root}/{name}"
                if os.stat(path).st_ino in self._torn:
                    os.truncate(path, 0)
        if names:
            for _, undo in reversed(self._pending):
                with suppress(FileNotFoundError):
                    undo()

    def open_root(self, path: str) -> int:
        self.root = path
        return super().open_root(path)


class NoFileSync(LosingDisk):
    def sync(self, handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            super().sync(handle)


class NoDirectorySync(LosingDisk):
    def sync(self, handle: int) -> None:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            super().sync(handle)


class NoSyncOfParents(LosingDisk):
    """Only the directory that a rename went to is synced."""

    def sync(self, handle: int) -> None:
        if self.calls[-1] != "make directory":
            super().sync(handle)


class NoLease(LosingDisk):
    def take_lease(self, handle: int) -> bool:
        return False


class Overwriting(LosingDisk):
    """Renames to a new name don't look whether something has it."""

    def rename(self, from_dir: int, old: str, to_dir: int, new: str, how: Rename) -> None:
        super().rename(from_dir, old, to_dir, new, "replace" if how == "noreplace" else how)


def _where(handle: int) -> str:
    return os.readlink(f"/proc/self/fd/{handle}")


def _swap(one: str, other: str) -> None:
    os.rename(one, f"{one}.x")
    os.rename(other, one)
    os.rename(f"{one}.x", other)


def _back(now: str, then: str) -> None:
    os.rename(now, then)
