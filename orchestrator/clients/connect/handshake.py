"""Starts the transport as a client does, asks for its tools, and sees that the daemon takes the caller."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from orchestrator.clients.running_daemon import readable
from orchestrator.core.errors import OperatorError, escaped
from orchestrator.version import VERSION

TIMEOUT_S = 20.0
"""A daemon may have to be started."""

PROTOCOL = "2025-06-18"

KEPT = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""What clients leave of the environment."""

_MESSAGES: tuple[Mapping[str, Any], ...] = (
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": PROTOCOL,
            "capabilities": {},
            "clientInfo": {"name": "orchestrator connect", "version": VERSION},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
    {"id": 3, "method": "ping"},  # the transport answers the others by itself; this one the daemon answers
)


class HandshakeFailed(OperatorError, code="handshake_failed"):
    """The transport does not do for a client what it must."""


class Handshake(NamedTuple):
    """What a client is offered."""

    tools: tuple[str, ...]
    took_s: float


def shake(command: Sequence[str], folder: str, timeout_s: float = TIMEOUT_S) -> Handshake:
    """Do it, in the folder that the client starts in. Raises HandshakeFailed."""
    started = time.monotonic()
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    try:
        process = subprocess.Popen(
            list(command),
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except (OSError, ValueError) as error:
        raise HandshakeFailed(
            f"{escaped(command[0])} does not start: {error}", hint="Connect again, to have its present path written."
        ) from error
    try:
        replies = _replies(process, started + timeout_s)
    finally:
        process.kill()
        process.communicate()
    tools = replies[2].get("tools", ())
    if not tools:
        raise HandshakeFailed("no tool is offered")
    return Handshake(tuple(tool["name"] for tool in tools), time.monotonic() - started)


def _replies(process: subprocess.Popen[bytes], deadline: float) -> dict[int, Any]:
    """The results by the ids of their requests."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(b"".join(json.dumps({"jsonrpc": "2.0", **each}).encode() + b"\n" for each in _MESSAGES))
        process.stdin.flush()
    except BrokenPipeError:
        pass  # why it ended is told below
    wanted = {each["id"] for each in _MESSAGES if "id" in each}
    found: dict[int, Any] = {}
    rest = b""
    while wanted - found.keys():
        if not readable(process.stdout.fileno(), max(0.0, deadline - time.monotonic())):
            raise HandshakeFailed("no answer in time", hint="`orchestrator doctor` looks at the daemon.")
        piece = os.read(process.stdout.fileno(), 1 << 16)
        if not piece:
            said = process.communicate()[1].decode("utf-8", "replace").strip()
            raise HandshakeFailed(f"the transport ended: {escaped(said[-500:]) or 'without a word'}")
        *lines, rest = (rest + piece).split(b"\n")
        for reply in map(_decoded, lines):
            if "error" in reply:
                raise HandshakeFailed(str(reply["error"].get("message")), hint="`orchestrator doctor` says more.")
            if reply.get("id") in wanted:
                found[reply["id"]] = reply.get("result") or {}
    return found


def _decoded(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError as error:
        raise HandshakeFailed(f"what answers speaks no MCP: {line[:100]!r}") from error
    return message if isinstance(message, dict) else {}
