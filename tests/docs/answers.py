"""The daemon's own answers to what the stdio transport answers itself, as `make docs` writes them down."""

from __future__ import annotations

import json
import socket
import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from orchestrator.api import sockets
from orchestrator.api.operations import toolset
from orchestrator.clients.stdio_proxy.messages import FOLDER, HANDSHAKE_FILE, tools_file
from orchestrator.servers.toolsets.drop_in import DROP_IN
from tests.daemon.daemon_process import RunningDaemon

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
CLIENT = {"name": "client", "version": "1"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": CLIENT,
}


def initialize(version: str, **more: Any) -> dict[str, Any]:
    """The first line of a client of 2025 or before."""
    params = {"protocolVersion": version, "capabilities": {"roots": {}}, "clientInfo": CLIENT, **more}
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


def request(method: str, id: int | str = 1, **params: Any) -> dict[str, Any]:
    """A request without params where there are none."""
    return {"jsonrpc": "2.0", "id": id, "method": method, **({"params": params} if params else {})}


def asked(path: str, messages: Iterable[dict[str, Any]], *, toolset: str, structured: bool) -> Iterator[bytes]:
    """The daemon's reply to each, as bytes."""
    with sockets.connect(path, 30.0) as connection, connection.makefile("rb") as lines:
        connection.sendall(sockets.preamble("mcp", agent="asker", toolset=toolset, structured=structured))
        assert json.loads(lines.readline())["ok"]
        for message in messages:
            connection.sendall(json.dumps(message, ensure_ascii=False).encode() + b"\n")
            yield lines.readline()
        connection.shutdown(socket.SHUT_WR)


def written(path: str) -> dict[str, str]:
    """What the files in `answers/` must hold, by name, as the daemon on this socket answers."""
    full, core = toolset("full", reviewer=True), {operation.name for operation in toolset("core")}
    files: dict[str, str] = {}
    handshake: dict[str, Any] = {"handshake_versions": HANDSHAKE_VERSIONS, "modern_versions": MODERN_VERSIONS}
    tools = (*full, *chain.from_iterable(entry.tools for entry in DROP_IN.values()))
    handshake["writes"] = list(dict.fromkeys(tool.name for tool in tools if tool.takes("request_id")))
    for structured in (False, True):
        old = [initialize(HANDSHAKE_VERSIONS[-1]), request("tools/list")]
        new = [request("server/discover", _meta=META), request("tools/list", _meta=META)]
        replies: list[dict[str, Any]] = []
        for messages in (old, new):
            raw = asked(path, messages, toolset="full", structured=structured)
            replies += [json.loads(line)["result"] for line in raw]
        handshake["initialize"], handshake["discover"] = replies[0], replies[2]
        handshake["list"] = {"2025": {**replies[1], "tools": []}, "2026": {**replies[3], "tools": []}}
        files[tools_file(structured=structured)] = "".join(
            f"{'core' if tool['name'] in core else 'full'} {_text(tool)}\n" for tool in replies[3]["tools"]
        )
        for name in DROP_IN:
            (reply,) = asked(path, [request("tools/list", _meta=META)], toolset=name, structured=structured)
            rows = (f"{name} {_text(tool)}\n" for tool in json.loads(reply)["result"]["tools"])
            files[tools_file(structured=structured)] += "".join(rows)
    files[HANDSHAKE_FILE] = json.dumps(handshake, ensure_ascii=False, indent=1) + "\n"
    return files


def write() -> None:
    """Start a daemon, and write its answers down."""
    with tempfile.TemporaryDirectory(prefix="o-", dir="/tmp") as folder:
        daemon = RunningDaemon(Path(folder).resolve())
        daemon.start()
        try:
            for name, text in written(str(daemon.socket)).items():
                Path(FOLDER, name).write_text(text, encoding="utf-8")
        finally:
            daemon.stop()


def _text(tool: dict[str, Any]) -> str:
    return json.dumps(tool, separators=(",", ":"), ensure_ascii=False)
