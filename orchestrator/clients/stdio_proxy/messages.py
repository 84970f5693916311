"""MCP's lines as the stdio transport needs to see them: who asks, who answers, and what to say for a lost daemon.

The transport passes bytes on as they are. It reads a client's line to learn its id, and writes one anew
only to give a write call the `request_id` that makes sending it again safe.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Container, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from orchestrator.core.errors import DaemonRestarted, OrchestratorError

Id = int | str
Kind = Literal["request", "initialize", "initialized", "cancelled", "other"]

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
    kind: Kind
    id: Id | None = None  # of the request, or of the one that is cancelled
    call: Call | None = None
    params: Mapping[str, Any] = MappingProxyType({})  # of a request


def read_message(line: bytes, writes: Container[str] = ()) -> ClientMessage:
    """Read a line of the client; `line` comes back changed only where one of the tools `writes` gets a `request_id`."""
    message = _object(line)
    if message is None:
        return ClientMessage(line, "other")
    method, id = message.get("method"), _id(message.get("id"))
    if not isinstance(method, str):
        return ClientMessage(line, "other")
    if id is None:
        return _notification(line, method, message)
    given = message.get("params")
    params: dict[str, Any] = given if isinstance(given, dict) else {}
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
    kind: Kind = "initialize" if method == "initialize" else "request"
    return ClientMessage(line, kind, id, Call(id, method, request_id, modern), params)


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
    if call.request_id is not None:
        details: dict[str, Any] = {"request_id": call.request_id}
        hint = f'Send the same call again with request_id="{call.request_id}": it is never applied twice.'
    else:
        details, hint = {}, "Send the same call again."
    return failed(
        call, DaemonRestarted("the daemon ended while this call was open; it runs again", hint=hint, details=details)
    )


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


def _notification(line: bytes, method: str, message: dict[str, Any]) -> ClientMessage:
    if method == "notifications/initialized":
        return ClientMessage(line, "initialized")
    params = message.get("params")
    if method == "notifications/cancelled" and isinstance(params, dict):
        return ClientMessage(line, "cancelled", _id(params.get("requestId")))
    return ClientMessage(line, "other")


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
