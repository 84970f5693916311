"""The locks that keep a second daemon away, and daemons found by them where sockets and location files are gone.

Standard library only, as `locations`: the stdio transport asks here before it starts a daemon.
"""

# ruff: noqa: PTH118, PTH123, RUF007

from __future__ import annotations

import errno
import fcntl
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from orchestrator.api.locations import Location
from orchestrator.core.errors import WorkspaceHeld
from orchestrator.core.system_errors import state_trouble

if TYPE_CHECKING:
    import socket

LOCK_FILE = "daemon.lock"
"""In the state directory; it names the process that holds it."""

TRIES, PAUSE_S = 20, 0.005
"""Whoever asks who holds a lock takes it, shared, for an instant; a daemon outlasts that."""


class Peer(NamedTuple):
    """Who is at the other end of a Unix socket."""

    pid: int  # 0 where the system does not say it: macOS
    uid: int


def holder_of(state_dir: str) -> int | None:
    """The process that holds a state directory; 0 until it has said so, None where nobody does."""
    path = f"{state_dir}/{LOCK_FILE}"
    if not _is_locked(path):
        return None
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return int(file.read(32))
    except (OSError, ValueError):
        return 0


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


def hidden(root: str) -> bool:
    """Whether a daemon serves a workspace that no process here is: one of another container, or `/proc` hides it."""
    return sys.platform == "linux" and _is_locked(root) and serving(root) is None


def _is_locked(path: str) -> bool:
    """Whether somebody holds an exclusive lock there."""
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


def hold_root(root: str) -> int:
    """Lock the workspace's root directory, until this descriptor is closed. Raises WorkspaceHeld."""
    return _hold(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), root)


def hold_state(state_dir: str | os.PathLike[str]) -> int:
    """Lock the state directory, by a file in it that names the holder. Raises as `state_trouble`, or WorkspaceHeld."""
    path = os.path.join(state_dir, LOCK_FILE)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise state_trouble(error, path) from error
    holder = os.pread(handle, 32, 0).decode("ascii", "replace").partition("\n")[0]
    held = _hold(handle, os.fspath(state_dir), holder=holder)
    with suppress(OSError):  # a full disk: nobody can be informed
        os.ftruncate(handle, os.pwrite(handle, f"{os.getpid()}\n".encode(), 0))
    return held


def _hold(handle: int, what: str, *, holder: str = "") -> int:
    for left in reversed(range(TRIES)):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError as error:
            held = error.errno in (errno.EAGAIN, errno.EACCES)
            if held and left:
                time.sleep(PAUSE_S)
                continue
            os.close(handle)
            if not held:
                raise
            who = f" (process {holder})" if holder else ""
            raise WorkspaceHeld(
                f"another daemon{who} serves {what}",
                hint="`orchestrator status` shows it; `orchestrator stop` ends it.",
            ) from error
    return handle
