"""The daemon's socket: where it is, that nobody else can answer there, a connection to it and the first line on it.

Standard library only, as `locations`.
"""

# Importing pathlib would take 6 ms of the stdio transport's 45.
# ruff: noqa: PTH100, PTH103, PTH112, PTH116, PTH117, PTH120

from __future__ import annotations

import json
import os
import socket
import stat
import struct

from orchestrator.core.errors import OperatorError, escaped

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take 2 ms of each hook
    from typing import Final, Literal

PROTOCOL: Final = 1
"""The version of the preamble."""

MAX_SOCKET_PATH_BYTES = 100
"""The kernel takes 107; some clients pad the path."""


class SocketDirectoryUnsafe(OperatorError, code="socket_directory_unsafe"):
    """The socket's directory is not ours alone, so another user could answer in the daemon's place."""


class SocketPathTooLong(OperatorError, code="socket_path_too_long"):
    """The kernel has no room for the socket's path."""


def socket_path(identity: str, given: str | None = None) -> str:
    """Where the daemon listens; makes the directory 0700 where it is missing, and checks it.

    Raises SocketDirectoryUnsafe or SocketPathTooLong.
    """
    path = f"{runtime_directory()}/{identity}.sock" if given is None else os.path.abspath(given)
    if len(os.fsencode(path)) >= MAX_SOCKET_PATH_BYTES:
        raise SocketPathTooLong(f"{escaped(path)} has {len(os.fsencode(path))} bytes; the socket's path may have 99")
    directory = os.path.dirname(path)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    check_socket_directory(directory)
    return path


def runtime_directory() -> str:
    """Where sockets are; not made and not checked here.

    In `$XDG_RUNTIME_DIR` if that is our own and the path stays short, else in /tmp; never in `$TMPDIR`, of which
    two clients may see two.
    """
    xdg = os.environ.get("XDG_RUNTIME_DIR", "").rstrip("/")
    longest = len(os.fsencode(f"{xdg}/orchestrator/0123456789abcdef.sock"))
    ours = os.path.isabs(xdg) and os.path.isdir(xdg) and os.stat(xdg).st_uid == os.getuid()
    if ours and longest < MAX_SOCKET_PATH_BYTES:
        return f"{xdg}/orchestrator"
    return f"/tmp/orchestrator-{os.getuid()}"


def check_socket_directory(directory: str) -> None:
    """Raises SocketDirectoryUnsafe unless it is a directory (no link) of ours that others can't enter."""
    try:
        found = os.lstat(directory)
    except OSError as error:
        raise SocketDirectoryUnsafe(f"{escaped(directory)}: {error.strerror}") from error
    shown = escaped(directory)
    if not stat.S_ISDIR(found.st_mode):
        raise SocketDirectoryUnsafe(f"{shown} is not a directory", hint="Remove it.")
    if found.st_uid != os.getuid():
        raise SocketDirectoryUnsafe(f"{shown} belongs to uid {found.st_uid}", hint="Remove it, or set XDG_RUNTIME_DIR.")
    if found.st_mode & 0o077:
        raise SocketDirectoryUnsafe(f"{shown} has mode {found.st_mode & 0o777:04o}", hint=f"chmod 700 {shown}")


def connect(path: str, timeout_s: float = 10.0) -> socket.socket:
    """A connection to the daemon, its directory checked first: what answers gets our token.

    `timeout_s` bounds the connect and stays set on the connection.
    Raises OSError where nothing answers, SocketDirectoryUnsafe.
    """
    directory = os.path.dirname(path)
    if not os.path.lexists(directory):
        raise FileNotFoundError(path)
    check_socket_directory(directory)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # A non-blocking connect fails at once where a blocking one waits for room in the backlog.
        limit = struct.pack("@ll", int(timeout_s), int(timeout_s % 1 * 1_000_000))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        connection.connect(path)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("@ll", 0, 0))
        connection.settimeout(timeout_s)
    except BaseException:
        connection.close()
        raise
    return connection


def answers(path: str) -> bool:
    """Whether something accepts connections there: the one test of whether a daemon runs."""
    try:
        connect(path, 2.0).close()
    except BlockingIOError:
        return True  # it listens, and is busy
    except (OSError, SocketDirectoryUnsafe):
        return False
    return True


def preamble(transport: Literal["rpc", "mcp"], **given: str | int | None) -> bytes:
    """The first line on the socket, as `api.framing.Preamble` reads it; what is empty or false is left out."""
    members = {"orchestrator": PROTOCOL, "transport": transport, **given}
    return json.dumps({name: value for name, value in members.items() if value}, separators=(",", ":")).encode() + b"\n"
