"""Every transport: each makes a call and gives the answer in one form."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from orchestrator.api.operations import BY_NAME, toolset
from orchestrator.clients.cli import orchestrator
from orchestrator.clients.cli.context import DONE, WAITING
from orchestrator.clients.cli.operation_commands import OperationCommand, TextFile
from tests.daemon.shell import Shell
from tests.security.hostile_workspace import TIMEOUT_S, Answer, HostileWorkspace
from tests.security.http_client import HttpCaller

_TOOLS = frozenset(operation.name for operation in toolset("full"))


def _answer(raw: bytes, result: dict[str, Any]) -> Answer:
    """What a tool's result says."""
    if not result.get("isError"):
        return Answer(raw, {"result": result})
    return Answer(raw, {"error": {"data": json.loads(result["content"][0]["text"])}})


class _Transport:
    turned_away = 0
    """Requests that were refused and noted before they were calls, and sent again."""


class _Mcp(_Transport):
    def ways(self, operation: str) -> tuple[str, ...]:
        """How calls of an operation are named here."""
        return (operation,) if operation in _TOOLS else ()


class McpHttp(_Mcp):
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
            self.turned_away += 1
            self._caller = self._new_agent()
            response = self._caller.rpc("tools/call", asked)
        assert response.status == 200, response
        return _answer(response.body, response.message["result"])

    def close(self) -> None:
        """Each request has a connection of its own."""


class McpStdio(_Mcp):
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
        assert select.select([self._process.stdout], [], [], TIMEOUT_S)[0], f"no answer to {params}"
        return self._process.stdout.readline()

    def call(self, operation: str, **params: object) -> Answer:
        line = self._ask("tools/call", {"name": operation, "arguments": params})
        return _answer(line, json.loads(line)["result"])

    def close(self) -> None:
        """End its input, and wait for it."""
        self._process.communicate(timeout=60)


class CommandLine(_Transport):
    """A command for each call, as the agent's own shell types it; an operator's as a person's does."""

    def __init__(self, hostile: HostileWorkspace, *, cwd: Path | None = None) -> None:
        self._shell = Shell(hostile.daemon, cwd or hostile.work, ORCHESTRATOR_APPROVER=hostile.approver)
        self._workspace, self._texts = hostile.work, hostile.base / "texts"
        self._texts.mkdir(exist_ok=True)

    def ways(self, operation: str) -> tuple[str, ...]:
        return tuple(words for words, command in COMMANDS.items() if command.operation.name == operation)

    def call(self, operation: str, **params: object) -> Answer:
        """`operation`: the command's words."""
        command = COMMANDS[operation]
        who = () if command.operation.operator_only else ("--agent", "by-cli")
        done = self._shell.run(*who, "--json", "--workspace", str(self._workspace), *self._typed(operation, params))
        said = json.loads(done.stdout.splitlines()[-1]) if done.stdout else {}
        answered = done.returncode in (DONE, WAITING)
        return Answer(done.stdout + done.stderr, {"result": said} if answered else {"error": {"data": said}})

    def _typed(self, words: str, params: dict[str, Any]) -> list[str]:
        """The command with these parameters; those of an edit's one change are options of their own."""
        changes = params.pop("changes", ())
        params.update(*changes)
        options, arguments = list[str](), list[str]()
        for parameter in COMMANDS[words].get_params(click.Context(COMMANDS[words])):
            given = params.pop(parameter.name, None)
            values = given if isinstance(given, list) else [given] * (given is not None)
            for value in values:
                if isinstance(parameter, click.Argument):
                    arguments.append(self._written(value) if isinstance(parameter.type, TextFile) else value)
                else:
                    options += [parameter.opts[0]] if value is True else [parameter.opts[0], value]
        assert params == {}, f"`{words}` does not take {params}"
        return [*words.split(), *options, "--", *arguments]

    def _written(self, text: str) -> str:
        """The name of a file that holds it."""
        (self._texts / "text").write_text(text)
        return str(self._texts / "text")

    def close(self) -> None:
        self._shell.close()


def _commands(group: click.Group, *above: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _commands(command, *above, name)
        else:
            yield " ".join((*above, name)), command


EVERY_COMMAND = dict(_commands(orchestrator))
COMMANDS = {words: command for words, command in EVERY_COMMAND.items() if isinstance(command, OperationCommand)}


class OwnSocket(_Transport):
    """Our own protocol, as an agent; an operator's operations as a person."""

    def __init__(self, hostile: HostileWorkspace) -> None:
        self._hostile, self._agent = hostile, hostile.line(agent="by-socket")

    def ways(self, operation: str) -> tuple[str, ...]:
        return (operation,)

    def call(self, operation: str, **params: object) -> Answer:
        entry = BY_NAME[operation]
        if entry.takes("approver"):
            params["approver"] = self._hostile.approver
        return (self._hostile.person if entry.operator_only else self._agent).call(operation, **params)

    def close(self) -> None:
        self._agent.close()


Transport = OwnSocket | McpHttp | McpStdio | CommandLine
NAMES: dict[str, type[Transport]] = {
    "our own socket": OwnSocket,
    "MCP over HTTP": McpHttp,
    "MCP over stdio": McpStdio,
    "the command line": CommandLine,
}


@contextmanager
def transport(name: str, hostile: HostileWorkspace) -> Iterator[Transport]:
    """One of `NAMES`, on this daemon."""
    caller = NAMES[name](hostile)
    try:
        yield caller
    finally:
        caller.close()
