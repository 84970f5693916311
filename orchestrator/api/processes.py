"""Daemons found by the locks that they hold, even if their sockets and location files are gone.

Standard library only, as `locations`: the stdio transport asks here before it starts a daemon.
"""

# ruff: noqa: PTH123, RUF007

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from orchestrator.api.locations import Location

if TYPE_CHECKING:
    import socket

LOCK_FILE = "daemon.lock"
"""In the state directory; its first line is the process that holds it, its second what that one is doing."""


class Holder(NamedTuple):
    """Who holds a state directory."""

    pid: int
    doing: str  # of a start: how far it is; empty once it serves


class Peer(NamedTuple):
    """Who is at the other end of a Unix socket."""

    pid: int  # 0 where the system does not say it: macOS
    uid: int


def holder_of(state_dir: str) -> Holder | None:
    """Who holds the lock of a state directory, as the lock itself says; None: nobody, or there is no such directory."""
    path = f"{state_dir}/{LOCK_FILE}"
    if not _is_locked(path):
        return None
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            pid, _, rest = file.read(1000).partition("\n")
        return Holder(int(pid), rest.strip())
    except (OSError, ValueError):
        return Holder(0, "")  # it has not written that yet


def serving(root: str) -> Location | None:
    """The daemon that serves a workspace, whatever its HOME; None where none is found."""
    return next((found for found in all_serving() if found.workspace == root), None)


def nested(root: str) -> Location | None:
    """A daemon that serves a workspace inside or around `root`, whatever its HOME."""
    for found in all_serving():
        if found.workspace.startswith(f"{root.rstrip('/')}/") or root.startswith(f"{found.workspace.rstrip('/')}/"):
            return found
    return None


def all_serving() -> Iterator[Location]:
    """Each process that holds an exclusive lock and names a workspace whose root is locked. Only on Linux."""
    for pid in _lock_holders():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = [os.fsdecode(word) for word in file.read().split(b"\0")]
        except OSError:
            continue  # it has ended, or is hidden from us
        options = dict(zip(words, words[1:], strict=False))
        if options.keys() >= {"--workspace", "--state-dir", "--socket"}:
            workspace = os.path.realpath(options["--workspace"])
            if _is_locked(workspace):
                yield Location(workspace, options["--state-dir"], options["--socket"], pid, "running")


def peer_of(connected: socket.socket) -> Peer:
    """The process at the other end, as the kernel knows it."""
    import socket
    import struct

    if hasattr(socket, "SO_PEERCRED"):
        pid, uid, _ = struct.unpack("3i", connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        return Peer(pid, uid)
    level, option = 0, 1  # SOL_LOCAL, LOCAL_PEERCRED on macOS: struct xucred
    _, uid = struct.unpack_from("II", connected.getsockopt(level, option, 76))
    return Peer(0, uid)


def _lock_holders() -> list[int]:
    try:
        with open("/proc/locks", encoding="ascii", errors="replace") as file:
            lines = [line.split() for line in file]
    except OSError:
        return []
    found = (line[4] for line in lines if line[1:4] == ["FLOCK", "ADVISORY", "WRITE"] and line[4].isdecimal())
    return sorted({int(pid) for pid in found if pid != "0"})


def _is_locked(path: str) -> bool:
    """Whether somebody holds an exclusive lock there."""
    import fcntl

    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in (errno.EAGAIN, errno.EACCES)
    finally:
        os.close(handle)
    return False
