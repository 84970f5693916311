"""The transports that are not our own line protocol: each makes a call and gives the answer in one form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.daemon.cli import cli_bytes
from tests.security.hostile_workspace import Answer, Caller, HostileWorkspace
from tests.security.http_client import HttpCaller


def _answer(raw: bytes, result: dict[str, Any]) -> Answer:
    """What a tool's result says."""
    if not result.get("isError"):
        return Answer(raw, {"result": result})
    return Answer(raw, {"error": {"data": json.loads(result["content"][0]["text"])}})


class McpHttp:
    """MCP over HTTP, in the newest version."""

    def __init__(self, hostile: HostileWorkspace) -> None:
        self._hostile = hostile
        self._caller = self._new_agent()

    def _new_agent(self) -> HttpCaller:
        person = self._hostile.person
        added = person.done("agent_add", name=f"by-http-{self._hostile.head()}", approver=self._hostile.approver)
        return HttpCaller(str(person.done("status")["http"]), added["token"], path="/mcp?toolset=full")

    def call(self, operation: str, **params: object) -> Answer:
        asked = {"name": operation, "arguments": params}
        response = self._caller.rpc("tools/call", asked)
        if response.status == 429:  # so many calls in a second are for another agent to go on with
            self._caller = self._new_agent()
            response = self._caller.rpc("tools/call", asked)
        assert response.status == 200, response
        return _answer(response.body, response.message["result"])


class McpStdio:
    """`orchestrator mcp`, in the version before."""

    def __init__(self, hostile: HostileWorkspace) -> None:
        daemon = hostile.daemon
        self._process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator", "mcp", "--toolset", "full", "--agent", "by-stdio"],
            cwd=daemon.workspace,
            env={**daemon.env, "PYTHONPATH": os.getcwd()},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._last = 0
        client = {"name": "test", "version": "1"}
        self._ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        self._say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _say(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _ask(self, method: str, params: dict[str, Any]) -> bytes:
        assert self._process.stdout is not None
        self._last += 1
        self._say({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        return self._process.stdout.readline()

    def call(self, operation: str, **params: object) -> Answer:
        line = self._ask("tools/call", {"name": operation, "arguments": params})
        return _answer(line, json.loads(line)["result"])

    def close(self) -> None:
        """End its input, and wait for it."""
        self._process.communicate(timeout=60)


class CommandLine:
    """A command for each call, as the agent's own shell types it."""

    def __init__(self, hostile: HostileWorkspace) -> None:
        self._daemon = hostile.daemon

    def call(self, operation: str, **params: object) -> Answer:
        by_search = ("--search", "outside", "--replace", "x") if operation == "edit_file" else ()
        typed = ({"read_file": "open", "edit_file": "edit"}[operation], *by_search, str(params["path"]))
        done = cli_bytes(self._daemon, "--agent", "by-cli", "--json", *typed, cwd=self._daemon.workspace)
        said = json.loads(done.stdout)
        return Answer(done.stdout + done.stderr, {"result" if done.returncode == 0 else "error": {"data": said}})


@contextmanager
def transport(name: str, hostile: HostileWorkspace) -> Iterator[Caller]:
    """One of `NAMES`, on this daemon."""
    match name:
        case "MCP over HTTP":
            yield McpHttp(hostile)
        case "MCP over stdio":
            stdio = McpStdio(hostile)
            yield stdio
            stdio.close()
        case _:
            yield CommandLine(hostile)


NAMES = ("MCP over HTTP", "MCP over stdio", "the command line")
