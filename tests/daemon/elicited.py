"""MCP clients that ask their person, over the stdio transport; and what they ask."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, ElicitRequestFormParams, ElicitResult, ErrorData, TextContent

from tests.daemon.daemon_process import RunningDaemon

Era = Literal["auto", "legacy"]
"""2026-07-28, and the newest before it."""

Answer = Callable[[ElicitRequestFormParams], Awaitable[ElicitResult | ErrorData]]

POLICY = """
name = "forms"
extends = "default"

[[rule]]
name = "asked"
agents = ["*"]
actions = ["create", "write"]
paths = ["ci/**"]
verdict = "ask"
reason = "it runs on our machines"

[[rule]]
name = "secret notes"
agents = ["*"]
actions = ["read"]
paths = ["notes/**"]
verdict = "ask"

[[rule]]
name = "in the client"
agents = ["client:alice", "client:carol"]
actions = ["approve"]
paths = ["**"]
verdict = "allow"

[[rule]]
name = "by the code"
agents = ["client:bob", "client:carol"]
actions = ["approve"]
paths = ["**"]
verdict = "ask"
"""


class Person:
    """Whom a client asks: keeps the forms, and answers each with what was set."""

    def __init__(self, answer: Answer | None = None, **content: Any) -> None:
        self.forms: list[ElicitRequestFormParams] = []
        self._answer, self._content = answer, content

    async def __call__(self, context: Any, params: Any) -> ElicitResult | ErrorData:
        self.forms.append(params)
        if self._answer is not None:
            return await self._answer(params)
        return ElicitResult(action="accept", content=self._content)


async def token_of(daemon: RunningDaemon, agent: str) -> str:
    """Made now."""
    code = await daemon.make_approver()
    async with daemon.client() as person:
        return (await person.agent_add(agent, approver=code)).token


@asynccontextmanager
async def client(
    daemon: RunningDaemon, person: Person | None, era: Era, agent: str = "alice", token: str = ""
) -> AsyncIterator[Client]:
    """The SDK's client on `orchestrator mcp`; without a token its agent only asserts its name."""
    arguments = ["--workspace", str(daemon.workspace), "--state-dir", str(daemon.state_dir), "--agent", agent]
    env = {**daemon.env, **({"ORCHESTRATOR_TOKEN": token} if token else {})}
    server = StdioServerParameters(command=sys.executable, args=["-m", "orchestrator", "mcp", *arguments], env=env)
    async with Client(server, mode=era, elicitation_callback=person) as made:
        yield made


def said(result: CallToolResult) -> dict[str, Any]:
    block = result.content[0]
    assert isinstance(block, TextContent)
    answer: dict[str, Any] = json.loads(block.text)
    return answer
