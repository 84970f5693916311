"""An agent's side of `orchestrator mcp`: the least that speaks MCP over its stdin and stdout."""

from __future__ import annotations

import json
import subprocess
import sys
from types import TracebackType
from typing import Any, NamedTuple, Self

from tests.daemon.daemon_process import RunningDaemon


class ToolAnswer(NamedTuple):
    """What a client gets from `tools/call`."""

    texts: list[str]
    structured: dict[str, Any] | None
    is_error: bool


class Transport:
    """One agent, connected through the real stdio transport, with all tools."""

    def __init__(self, daemon: RunningDaemon, agent: str) -> None:
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "orchestrator", "mcp", "--toolset", "full"),
                *("--workspace", str(daemon.workspace), "--state-dir", str(daemon.state_dir), "--agent", agent),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=daemon.env,
        )
        self._last = 0

    def __enter__(self) -> Self:
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "docs", "version": "1"}}
        self._ask("initialize", hello)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    def call(self, tool: str, arguments: dict[str, Any]) -> ToolAnswer:
        """Call a tool as a client does."""
        result = self._ask("tools/call", {"name": tool, "arguments": arguments})
        texts = [item["text"] for item in result["content"]]
        return ToolAnswer(texts, result.get("structuredContent"), bool(result.get("isError")))

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._last += 1
        self._write({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            reply = json.loads(line)
            if reply.get("id") == self._last:
                assert "result" in reply, reply
                result: dict[str, Any] = reply["result"]
                return result
        raise AssertionError(f"the transport closed before it answered {method}")

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
