"""The five workflows of agents, over the stdio transport, with the core tools and with those of largefile."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types import TextContent

from tests.end_to_end import workflows
from tests.end_to_end.workspace_factory import Place

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("toolset", "offered"), [("core", workflows.CORE), ("largefile", workflows.LARGEFILE)], ids=["core", "largefile"]
)
async def test_workflows_go_through_to_their_end(
    place: Place, toolset: str, offered: dict[str, workflows.Workflow]
) -> None:
    workflows.lay_out(place.workspace)
    async with place.client("alice", "--toolset", toolset) as client:

        async def call(tool: str, /, **arguments: Any) -> str:
            result = await client.call_tool(tool, arguments)
            text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
            assert not result.is_error, text
            return text

        for workflow in offered.values():
            await workflow(call, place.workspace)
