"""One call on the daemon's socket, all of it within a time."""

from __future__ import annotations

import json
import time

from orchestrator.api import locations, sockets
from orchestrator.core.errors import DaemonUnreachable, OrchestratorError

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take 2 ms of each hook
    from typing import Any


PIECE_BYTES = 1 << 20
MOST_BYTES = 64 * 1024 * 1024
"""The daemon sends no longer reply."""


class Refused(Exception):
    """The daemon's answer to a call that it refuses."""

    def __init__(self, refusal: dict[str, Any], notices: list[dict[str, Any]]) -> None:
        super().__init__(str(refusal.get("message", "")))
        self.refusal, self.notices = refusal, notices


def call(root: str, introduction: dict[str, Any], request: dict[str, Any], within_s: float) -> dict[str, Any]:
    """The reply of the workspace's daemon, with `result`; raises Refused, DaemonUnreachable, OrchestratorError."""
    deadline = time.monotonic() + within_s
    location = locations.read_location(locations.workspace_id(root))
    if location is None:
        raise DaemonUnreachable(f"no daemon runs for {root}")
    try:
        with sockets.connect(location.socket, within_s) as connection:
            line = json.dumps({"jsonrpc": "2.0", "id": 1, **request}, separators=(",", ":")).encode() + b"\n"
            connection.settimeout(_left(deadline))
            connection.sendall(sockets.preamble("rpc", **introduction) + line)
            received = b""
            while received.count(b"\n") < 2:
                welcome, newline, _ = received.partition(b"\n")
                if newline:
                    _check_welcome(welcome)
                connection.settimeout(_left(deadline))
                piece = connection.recv(PIECE_BYTES)
                if not piece or len(received) > MOST_BYTES:
                    raise DaemonUnreachable("the daemon closed the connection")
                received += piece
    except OSError as error:
        why = "it does not answer in time" if isinstance(error, TimeoutError) else str(error)
        raise DaemonUnreachable(f"the daemon of {root} cannot be reached: {why}") from error
    welcome, line, _ = received.split(b"\n", 2)
    _check_welcome(welcome)
    reply: dict[str, Any] = json.loads(line)
    notices = reply.get("notices") or []
    if "error" in reply:
        raise Refused(reply["error"]["data"], notices)
    return reply


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _check_welcome(line: bytes) -> None:
    welcome = json.loads(line)
    if welcome.get("ok") is not True:
        raise OrchestratorError(str(welcome.get("message")), hint=str(welcome.get("hint", "")))
