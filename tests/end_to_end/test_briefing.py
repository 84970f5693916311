"""The briefing as an MCP client gets it: named in the instructions, as a tool, and as a resource."""

from __future__ import annotations

import re
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_types import TextContent, TextResourceContents

from orchestrator.api.briefing import BRIEFING_URI
from tests.end_to_end.test_mcp import ERAS, Mode
from tests.end_to_end.workspace_factory import Place

pytestmark = pytest.mark.anyio


async def read(client: Client) -> str:
    (content,) = (await client.read_resource(BRIEFING_URI)).contents
    assert isinstance(content, TextResourceContents)
    assert (content.uri, content.mime_type) == (BRIEFING_URI, "text/plain")
    return plain(content.text)


async def called(client: Client, **arguments: Any) -> str:
    (content,) = (await client.call_tool("get_briefing", arguments)).content
    assert isinstance(content, TextContent)
    return plain(content.text)


def plain(text: str) -> str:
    """Without what differs between two answers of one state: the head's number and the token of the markers."""
    return re.sub(r"(?m)( at @)\d+|(?<=content )[0-9a-f]{12}>$", r"\1", text)


@ERAS
async def test_the_resource_is_what_the_tool_answers(place: Place, mode: Mode, revision: str) -> None:
    (place.workspace / "AGENTS.md").write_text("Run make check.\n")
    async with place.client("alice", mode=mode) as client:
        assert client.protocol_version == revision
        beginning = (client.instructions or "")[:250]
        assert "get_briefing" in beginning
        assert BRIEFING_URI in beginning
        (offered,) = (await client.list_resources()).resources
        assert offered.uri == BRIEFING_URI
        await called(client)
        again = await called(client)
        assert "     1\tRun make check.\n" in again
        assert await read(client) == again
        with pytest.raises(MCPError) as refused:
            await client.read_resource("orchestrator://other")
        assert refused.value.code == -32602
        assert (await client.call_tool("session_status", {})).structured_content["recent_reads"][0][
            "path"
        ] == "AGENTS.md"


@ERAS
async def test_a_toolset_of_another_server_has_no_resource(place: Place, mode: Mode, revision: str) -> None:
    async with place.client("alice", "--toolset", "editor", mode=mode) as client:
        assert client.instructions is None
        assert client.server_capabilities.resources is None
        with pytest.raises(MCPError):
            await client.read_resource(BRIEFING_URI)


async def test_policy_switches_it_off(place: Place) -> None:
    state = place.base / "state"
    state.mkdir(mode=0o700)
    profile = '[[profile]]\nname = "small"\nagents = ["alice"]\ntools_off = ["get_briefing"]\n'
    (state / "policy.toml").write_text(f'name = "ours"\nextends = "default"\n{profile}')
    assert place.cli("up", "--state-dir", str(state)).code == 0
    async with place.client("alice") as client:
        assert (await client.list_resources()).resources == []
        with pytest.raises(MCPError) as refused:
            await client.read_resource(BRIEFING_URI)
        assert refused.value.code == -32602
