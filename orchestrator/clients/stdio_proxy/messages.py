"""MCP's lines as the stdio transport needs to see them: who asks, who answers, and how a lost daemon is reported.

The transport passes bytes on as they are. It reads a client's line to learn its id, and writes one anew
only to give a write call the `request_id` that makes sending it again safe.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Container, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from orchestrator.core.errors import DaemonRestarted, OrchestratorError

Id = int | str

_PROTOCOL_IN_META = "io.modelcontextprotocol/protocolVersion"
_USUAL_REPLY = re.compile(rb'\{"jsonrpc":"2\.0","id":(-?[0-9]+|"(?:[^"\\]|\\.)*"),"(?:result|error)":')


class Call(NamedTuple):
    """A request of the client that has no reply yet. A write has a `request_id`, so each can be sent again."""

    id: Id
    method: str
    request_id: str | None = None
    modern: bool = False  # the 2026 era, whose results name their type


class ClientMessage(NamedTuple):
    """One line of the client."""

    line: bytes
    method: str = ""  # empty for a reply, and for what is no message
    params: Mapping[str, Any] = MappingProxyType({})
    call: Call | None = None

    @property
    def cancelled(self) -> Id | None:
        """The request that a notification cancels."""
        return _id(self.params.get("requestId"))


def read_message(line: bytes, writes: Container[str] = ()) -> ClientMessage:
    """Read a line of the client; `line` comes back changed only where one of the tools `writes` gets a `request_id`."""
    message = _object(line) or {}
    method, id, given = message.get("method"), _id(message.get("id")), message.get("params")
    if not isinstance(method, str):
        return ClientMessage(line)
    params: dict[str, Any] = given if isinstance(given, dict) else {}
    if id is None:
        return ClientMessage(line, method, params)
    meta = params.get("_meta")
    modern = isinstance(meta, dict) and _PROTOCOL_IN_META in meta
    request_id = None
    if method == "tools/call" and params.get("name") in writes:
        arguments = params.get("arguments")
        if arguments is None:
            arguments = params["arguments"] = {}
        if isinstance(arguments, dict):
            if arguments.get("request_id") is None:
                arguments["request_id"] = os.urandom(16).hex()
                line = _line(message)
            request_id = str(arguments["request_id"])
    return ClientMessage(line, method, params, Call(id, method, request_id, modern))


def replied(line: bytes) -> Id | None:
    """The id of the call that a line of the daemon answers. Its replies are long: only their first bytes are read."""
    usual = _USUAL_REPLY.match(line)
    if usual is not None:
        id: Id = json.loads(usual[1])
        return id
    message = _object(line)
    return None if message is None or "method" in message else _id(message.get("id"))


def lost(call: Call) -> bytes:
    """The answer to a call that was open when the daemon ended."""
    hint = "Send the same call again."
    if call.request_id is not None:
        hint = f'Send the same call again with request_id="{call.request_id}": it is never applied twice.'
    return failed(call, DaemonRestarted("the daemon ended while this call was open; it runs again", hint=hint))


def failed(call: Call, error: OrchestratorError) -> bytes:
    """An error as the model sees it: a tool's result, or for any other request a JSON-RPC error."""
    if call.method != "tools/call":
        return refused(call.id, error)
    refusal: dict[str, Any] = {"code": error.code, "message": error.message, "hint": error.hint}
    refusal["details"] = {"request_id": call.request_id, **error.details} if call.request_id else error.details
    result: dict[str, Any] = {"content": [{"type": "text", "text": json.dumps(refusal)}], "isError": True}
    if call.modern:
        result["resultType"] = "complete"
    return _line({"jsonrpc": "2.0", "id": call.id, "result": result})


def refused(id: Id, error: OrchestratorError) -> bytes:
    """A JSON-RPC error; clients show its message to their user."""
    refusal = {"code": error.code, "message": error.message, "hint": error.hint, "details": error.details}
    message = f"{error.message}. {error.hint}" if error.hint else error.message
    return _line({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": message, "data": refusal}})


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def _id(value: object) -> Id | None:
    return value if isinstance(value, (int, str)) and not isinstance(value, bool) else None


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
