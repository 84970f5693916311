"""MCP's lines as the stdio transport needs to see them: who asks, and what is answered without the daemon.

The transport passes bytes on as they are. It reads a client's line to learn its id, and writes one anew
only to give a write call the `request_id` that makes sending it again safe. So that a client has its tools before
the daemon is up, the answers to `initialize`, `server/discover` and `tools/list` are constants of a version. They lie
in `answers/`, which `make docs` writes from a daemon's own replies; a test compares the two. A request
of any other shape than the usual one goes to the daemon.
"""

# Importing pathlib would take 6 ms of the transport's 45.
# ruff: noqa: PTH100, PTH118, PTH120, PTH123, PTH110

from __future__ import annotations

import json
import os
import re
from collections.abc import Container, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from orchestrator.api.toolsets import DROP_IN
from orchestrator.core.errors import DaemonRestarted, OrchestratorError

Id = int | str

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "answers")
HANDSHAKE_FILE = "handshake.json"

_META = "io.modelcontextprotocol/"
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
    answers: Id | None = None  # the daemon's own request that it is the reply to

    @property
    def cancelled(self) -> Id | None:
        """The request that a notification cancels."""
        return _id(self.params.get("requestId"))


def read_message(line: bytes, writes: Container[str] = ()) -> ClientMessage:
    """Read a line of the client; `line` comes back changed only where one of the tools `writes` gets a `request_id`."""
    message = _object(line) or {}
    method, id, given = message.get("method"), _id(message.get("id")), message.get("params")
    if not isinstance(method, str):
        return ClientMessage(line, answers=id)
    params: dict[str, Any] = given if isinstance(given, dict) else {}
    if id is None:
        return ClientMessage(line, method, params)
    modern = f"{_META}protocolVersion" in _meta(params)
    request_id, name = None, params.get("name")
    if method == "tools/call" and isinstance(name, str) and name in writes:
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


def asked(line: bytes) -> Id | None:
    """The id of the request that a line of the daemon is, such as a question to the client's person."""
    message = _object(line)
    return None if message is None or "method" not in message else _id(message.get("id"))


def withdrawn(id: Id) -> bytes:
    """Tells the client that nobody waits any more for its answer to a request of the daemon."""
    params = {"requestId": id, "reason": "the daemon that asked has ended"}
    return _line({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


def tools_file(*, structured: bool) -> str:
    """The name of the file with the tools, one a line behind the smallest toolset that has it."""
    return "tools-structured.txt" if structured else "tools.txt"


class Handshake:
    """The constant answers for one client of one toolset."""

    def __init__(self, toolset: str, *, structured: bool, mark: str = "") -> None:
        self._toolset, self._structured = toolset, structured
        self._mark = mark  # a file that is there while not everybody is offered the same tools
        self._greeted = False  # by `initialize`, answered here
        with open(os.path.join(FOLDER, HANDSHAKE_FILE), encoding="utf-8") as file:
            self._known: dict[str, Any] = json.load(file)
        if toolset in DROP_IN:  # its server's clients were told nothing
            for greeting in ("initialize", "discover"):
                self._known[greeting].pop("instructions")
                self._known[greeting]["capabilities"].pop("resources")
        self.writes: frozenset[str] = frozenset(self._known["writes"])

    def reply(self, message: ClientMessage) -> bytes | None:
        """The daemon's answer to a line of the client, if it is one of the constants."""
        call = message.call
        if call is None:
            return None
        result: dict[str, Any] | None = None
        match call.method, message.params:
            case "initialize", {
                "protocolVersion": str(version),
                "capabilities": dict(),
                "clientInfo": {"name": str(), "version": str()},
            }:
                known = self._known["handshake_versions"]
                agreed = version if version in known else known[-1]
                result = {**self._known["initialize"], "protocolVersion": agreed}
            case "server/discover", params if self._is_modern(params):
                result = self._known["discover"]
            case "tools/list", params if not params.keys() - {"_meta"} and not os.path.exists(self._mark):
                if self._is_modern(params):
                    result = {**self._known["list"]["2026"], "tools": self._tools()}
                elif self._greeted and not call.modern:
                    result = {**self._known["list"]["2025"], "tools": self._tools()}
        if call.method == "initialize":
            self._greeted = result is not None
        if result is None:
            return None
        id = json.dumps(call.id, ensure_ascii=False)
        text = json.dumps(result, separators=(",", ":"), ensure_ascii=False)
        return f'{{"jsonrpc":"2.0","id":{id},"result":{text}}}\n'.encode("utf-8", "surrogatepass")

    def _tools(self) -> list[dict[str, Any]]:
        with open(os.path.join(FOLDER, tools_file(structured=self._structured)), encoding="utf-8") as file:
            rows = [row.split(" ", 1) for row in file]
        own = (self._toolset,) if self._toolset in DROP_IN else ("core", self._toolset)
        return [json.loads(tool) for smallest, tool in rows if smallest in own]

    def _is_modern(self, params: Mapping[str, Any]) -> bool:
        meta = _meta(params)
        info = meta.get(f"{_META}clientInfo", {"name": "", "version": ""})
        return (
            meta.get(f"{_META}protocolVersion") in self._known["modern_versions"]
            and isinstance(info, dict)
            and all(isinstance(info.get(key), str) for key in ("name", "version"))
            and isinstance(meta.get(f"{_META}clientCapabilities"), dict)
        )


def lost(call: Call) -> bytes:
    """The answer to a call that was open when the daemon ended."""
    hint = "Send the same call again."
    if call.request_id is not None:
        hint = f'Send the same call again with request_id="{call.request_id}": it is never applied twice.'
    return failed(call, DaemonRestarted("the daemon ended while this call was open; it runs again", hint=hint))


def failed(call: Call, error: OrchestratorError) -> bytes:
    """An error as the model sees it: a tool's result; to any other request a JSON-RPC error, which people see."""
    details = {"request_id": call.request_id, **error.details} if call.request_id else error.details
    refusal = {"code": error.code, "message": error.message, "hint": error.hint, "details": details}
    if call.method != "tools/call":
        message = f"{error.message}. {error.hint}" if error.hint else error.message
        return _line({"jsonrpc": "2.0", "id": call.id, "error": {"code": -32000, "message": message, "data": refusal}})
    if "`orchestrator" in error.hint and "Ask " not in error.hint:
        refusal["hint"] = f"Ask the person you work for. {error.hint}"
    result: dict[str, Any] = {"content": [{"type": "text", "text": json.dumps(refusal)}], "isError": True}
    if call.modern:
        result["resultType"] = "complete"
    return _line({"jsonrpc": "2.0", "id": call.id, "result": result})


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def _meta(params: Mapping[str, Any]) -> Mapping[str, Any]:
    meta = params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def _id(value: object) -> Id | None:
    return value if isinstance(value, (int, str)) and not isinstance(value, bool) else None


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"
