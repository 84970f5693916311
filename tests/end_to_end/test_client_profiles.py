"""What a client is known for, by its name: escapes that it decodes, and what of an answer its model reads."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client
from mcp_types import CallToolResult, Implementation, TextContent

from tests.end_to_end.workspace_factory import Place

pytestmark = pytest.mark.anyio

LINE = r'greeting = "caf\u00e9 \u2713"  # é'
CHANGE = {"search": 'greeting = "café ✓"', "replace": 'greeting = "thé ✓"'}
"""As Claude Code 2.1.330 sends what its model quotes of LINE."""


@asynccontextmanager
async def named(place: Place, name: str, *options: str) -> AsyncIterator[Client]:
    transport = place.transport(*options, agent="alice")
    async with Client(transport, client_info=Implementation(name=name, version="1")) as client:
        yield client


@pytest.fixture
def file(place: Place) -> Path:
    file = place.workspace / "a.py"
    file.write_text(f"{LINE}\nx = 1\n")
    return file


def texts(result: CallToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, TextContent)]


async def test_a_quote_that_claude_decoded_is_found_as_the_file_spells_it(place: Place, file: Path) -> None:
    async with named(place, "claude-code") as client:
        await client.call_tool("read_file", {"path": "a.py"})
        edited = await client.call_tool("edit_file", {"path": "a.py", "changes": [CHANGE]})
    answer = json.loads(texts(edited)[0])
    assert answer["status"] == "applied"
    assert "decodes \\uXXXX escapes" in answer["warnings"][0]
    assert file.read_text() == r'greeting = "th\u00e9 \u2713"  # é' + "\nx = 1\n"


async def test_its_patches_too(place: Place, file: Path) -> None:
    patch = '--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n greeting = "café ✓"  # é\n-x = 1\n+x = "✓"\n'
    file.write_text(LINE.replace("  # é", "") + "\nx = 1\n")
    async with named(place, "claude-code") as client:
        await client.call_tool("read_file", {"path": "a.py"})
        edited = await client.call_tool("apply_patch", {"patch": patch.replace("  # é", "")})
    answer = json.loads(texts(edited)[0])
    assert (answer["status"], "decodes" in answer["warnings"][0]) == ("applied", True), answer
    assert file.read_text() == r'greeting = "caf\u00e9 \u2713"' + "\n" + r'x = "\u2713"' + "\n"


async def test_the_same_from_any_other_client_is_refused(place: Place, file: Path) -> None:
    async with named(place, "somebody-else") as client:
        await client.call_tool("read_file", {"path": "a.py"})
        refused = await client.call_tool("edit_file", {"path": "a.py", "changes": [CHANGE]})
    assert json.loads(texts(refused)[0])["code"] == "search_not_found"
    assert file.read_text() == f"{LINE}\nx = 1\n"


async def test_a_tool_that_stands_in_for_another_finds_it_too(place: Place, file: Path) -> None:
    async with named(place, "claude-code", "--toolset", "editor") as client:
        path = {"path": str(file)}
        await client.call_tool("view", path)
        sent = {**path, "old_str": CHANGE["search"], "new_str": CHANGE["replace"]}
        done = await client.call_tool("str_replace", sent)
    assert not done.is_error, texts(done)
    assert "decodes \\uXXXX escapes" in "\n".join(texts(done))
    assert file.read_text() == r'greeting = "th\u00e9 \u2713"  # é' + "\nx = 1\n"


async def test_a_whole_file_where_claude_is_told_that_the_tool_answers_at_length(place: Place) -> None:
    """With the core tools its answers stay below what it hands on of any tool."""
    (place.workspace / "big.txt").write_text("a line of the file\n" * 8_000)
    path = str(place.workspace / "big.txt")
    async with named(place, "claude-code", "--toolset", "filesystem") as client:
        told = {tool.name: tool.meta for tool in (await client.list_tools()).tools}
        whole = await client.call_tool("read_text_file", {"path": path})
    assert told["read_text_file"] == {"anthropic/maxResultSizeChars": 500_000}
    assert told["write_file"] is None
    assert texts(whole)[0].count("a line of the file\n") == 8_000
    async with named(place, "claude-code") as client:
        part = await client.call_tool("read_file", {"path": "big.txt", "max_tokens": 200_000})
    assert len(texts(part)[0]) < 50_000


@pytest.mark.parametrize(
    ("name", "options", "structured"),
    [
        pytest.param("claude-code", (), False, id="its model reads structured content alone"),
        pytest.param("claude-code", ("--structured",), True, id="but it was asked for"),
        pytest.param("opencode", (), True, id="its model reads the text"),
    ],
)
async def test_a_model_reads_the_lines_that_a_conflict_shows(
    place: Place, file: Path, name: str, options: tuple[str, ...], structured: bool
) -> None:
    async with named(place, name, *options) as client:
        await client.call_tool("read_file", {"path": "a.py"})
        file.write_text(f"{LINE}\nx = 2\n")
        changes = [{"search": "x = 1", "replace": "x = 3"}]
        conflict = await client.call_tool("edit_file", {"path": "a.py", "changes": changes})
    said, shown = texts(conflict)
    assert json.loads(said)["status"] == "conflict"
    assert "x = 2" in shown
    assert (conflict.structured_content is not None) == structured
