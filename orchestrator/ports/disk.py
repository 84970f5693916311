"""The system calls of a durable change, one by one."""

from __future__ import annotations

import os
from typing import Literal, Protocol

import msgspec


class DiskFeatures(msgspec.Struct, frozen=True):
    """What this machine can do for us; what it can't is learned as it is tried."""

    openat2: bool = True
    exchange: bool = True
    noreplace: bool = True
    leases: bool = True

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is missing, for a person; empty where nothing is degraded."""
        missing = (
            (self.openat2, "no openat2: paths are walked name by name, and a bind mount of the same disk is not seen"),
            (self.exchange, "no exchanging rename: another program's write in the last instant before ours is lost"),
            (self.noreplace, "no exclusive rename: a file that is made in the last instant before ours is lost"),
            (self.leases, "no leases: a program that keeps a file open may write to its old copy after the change"),
        )
        return tuple(sentence for there, sentence in missing if not there)


Rename = Literal["replace", "noreplace", "exchange"]


class Disk(Protocol):
    """Every call on a workspace file, at the level of the kernel; descriptors in, OSError out.

    The one port under which a test can count, fail or lose any of them. Thread-safe.
    """

    @property
    def features(self) -> DiskFeatures: ...

    def open_root(self, path: str) -> int:
        """A handle of the workspace's root; the path may lead through links."""

    def open_beneath(self, root: int, path: str, flags: int) -> int:
        """Open below a root. ELOOP: a link. EXDEV: out of the root, or into another file system."""

    def open_at(self, directory: int, name: str, flags: int, mode: int = 0) -> int:
        """Open one name in a directory; never a link. New files have `mode` & ~umask."""

    def close(self, handle: int) -> None: ...

    def stat(self, handle: int) -> os.stat_result: ...

    def stat_at(self, directory: int, name: str) -> os.stat_result:
        """Of the name itself, if it is a link too. `..`, `../..` … are the directories above."""

    def read_link(self, directory: int, name: str) -> str: ...

    def names(self, directory: int) -> list[str]: ...

    def folders(self, directory: int) -> list[str]:
        """The names of directories in it, links left out; without a stat of each where the system allows."""

    def read(self, handle: int, count: int, offset: int) -> bytes:
        """Up to `count` bytes; empty at the end."""

    def write(self, handle: int, data: memoryview) -> int:
        """How many of the bytes were taken; may be fewer than given."""

    def sync(self, handle: int) -> None:
        """Everything of this file, or every name in this directory, is on the platter on return."""

    def rename(self, from_dir: int, old: str, to_dir: int, new: str, how: Rename) -> None:
        """`noreplace` fails with EEXIST, `exchange` swaps; EINVAL, ENOSYS or ENOTSUP where it can't be had."""

    def unlink_at(self, directory: int, name: str) -> None: ...

    def make_directory(self, directory: int, name: str) -> None: ...

    def remove_directory(self, directory: int, name: str) -> None:
        """ENOTEMPTY if anything is in it."""

    def set_mode(self, handle: int, mode: int) -> None: ...

    def set_owner(self, handle: int, uid: int, gid: int) -> None:
        """-1 leaves that one as it is."""

    def attribute_names(self, handle: int) -> list[str]:
        """The extended attributes, ACLs among them; empty where the file system has none."""

    def attribute(self, handle: int, name: str) -> bytes: ...

    def set_attribute(self, handle: int, name: str, value: bytes) -> None: ...

    def remove_attribute(self, handle: int, name: str) -> None: ...

    def take_lease(self, handle: int) -> bool:
        """A read lease, which ends with the handle. False: leases can't be had here. EAGAIN: somebody writes."""
