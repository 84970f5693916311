"""What the stdio transport answers itself, so that a client has its tools before the daemon is up.

The answers to `initialize`, `server/discover` and `tools/list` are constants of a version. They lie in `answers/`,
which `make docs` writes from a daemon's own replies; a test compares the two byte for byte. A request of any other
shape than the usual one goes to the daemon.
"""

# Importing pathlib would take 6 ms of the transport's 45.
# ruff: noqa: PTH100, PTH118, PTH120, PTH123

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from orchestrator.clients.stdio_proxy import messages

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "answers")
HANDSHAKE_FILE = "handshake.json"

_META = "io.modelcontextprotocol/"


def tools_file(*, structured: bool) -> str:
    """The name of the file with the tools, one a line behind the smallest toolset that has it."""
    return "tools-structured.txt" if structured else "tools.txt"


class Handshake:
    """The constant answers for one client of one toolset."""

    def __init__(self, toolset: str, *, structured: bool) -> None:
        self._toolset, self._structured = toolset, structured
        self._greeted = False  # by `initialize`, answered here
        with open(os.path.join(FOLDER, HANDSHAKE_FILE), encoding="utf-8") as file:
            self._known: dict[str, Any] = json.load(file)
        self.writes: frozenset[str] = frozenset(self._known["writes"])

    def reply(self, message: messages.ClientMessage) -> bytes | None:
        """The daemon's answer to a line of the client, if it is one of the constants."""
        if message.call is None:
            return None
        result: dict[str, Any] | None = None
        match message.call.method, message.params:
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
            case "tools/list", params if not params.keys() - {"_meta"}:
                result = self._tools(params)
            case _:
                pass
        if message.call.method == "initialize":
            self._greeted = result is not None
        if result is None:
            return None
        id = json.dumps(message.call.id, ensure_ascii=False)
        text = json.dumps(result, separators=(",", ":"), ensure_ascii=False)
        return f'{{"jsonrpc":"2.0","id":{id},"result":{text}}}\n'.encode("utf-8", "surrogatepass")

    def _tools(self, params: Mapping[str, Any]) -> dict[str, Any] | None:
        modern = self._is_modern(params)
        if not modern and (not self._greeted or _speaks(params)):
            return None
        with open(os.path.join(FOLDER, tools_file(structured=self._structured)), encoding="utf-8") as file:
            rows = [row.split(" ", 1) for row in file]
        tools = [json.loads(tool) for smallest, tool in rows if smallest in ("core", self._toolset)]
        era = self._known["list"]["2026" if modern else "2025"]
        return {**era, "tools": tools if modern else [_as_in_2025(tool) for tool in tools]}

    def _is_modern(self, params: Mapping[str, Any]) -> bool:
        meta = params.get("_meta")
        match meta:
            case dict() if _speaks(params) in self._known["modern_versions"]:
                info = meta.get(f"{_META}clientInfo", {"name": "", "version": ""})
                named = isinstance(info, dict) and all(isinstance(info.get(key), str) for key in ("name", "version"))
                return named and isinstance(meta.get(f"{_META}clientCapabilities"), dict)
            case _:
                return False


def _speaks(params: Mapping[str, Any]) -> str | None:
    """The revision that a request names for itself."""
    meta = params.get("_meta")
    version = meta.get(f"{_META}protocolVersion") if isinstance(meta, dict) else None
    return version if isinstance(version, str) else None


def _as_in_2025(tool: dict[str, Any]) -> dict[str, Any]:
    """The order in which the SDK writes a schema for that era."""
    for key in ("inputSchema", "outputSchema"):
        if key in tool:
            first = ("properties", "required", "type")
            schema = tool[key]
            tool[key] = {**{name: schema[name] for name in first if name in schema}, **schema}
    return tool
