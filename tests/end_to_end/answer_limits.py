"""What each client hands on of an answer, and how a test holds an answer against it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from mcp import Client
from mcp_types import CallToolResult, Implementation, TextContent

from tests.end_to_end.workspace_factory import Place


class Limit(NamedTuple):
    """What a client hands on at most, as measured: bytes, characters and lines of all its text."""

    name: str
    version: str = "1"
    options: tuple[str, ...] = ()
    bytes: int = 1 << 40
    characters: int = 1 << 40
    lines: int = 1 << 40


@asynccontextmanager
async def opened(place: Place, agent: str, limit: Limit) -> AsyncIterator[Client]:
    """The full toolset, for a client that gives itself this name."""
    transport = place.transport("--toolset", "full", *limit.options, agent=agent)
    async with Client(transport, client_info=Implementation(name=limit.name, version=limit.version)) as client:
        yield client


def reported(result: CallToolResult) -> dict[str, Any]:
    block = result.content[0]
    assert isinstance(block, TextContent)
    answer: dict[str, Any] = json.loads(block.text)
    return answer


def check(result: CallToolResult, limit: Limit, what: str) -> str:
    """The whole text, within the limit in every way that a client may count."""
    text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
    escaped = json.dumps(text, ensure_ascii=False)
    structured = json.dumps(result.structured_content or {}, ensure_ascii=False, separators=(",", ":"))
    for form in (text, escaped, structured):
        assert len(form.encode()) <= limit.bytes, what
        assert len(form) <= limit.characters, what
        assert form.count("\n") < limit.lines, what
    if result.is_error:
        assert reported(result)["code"] != "answer_too_large", what
    return text
