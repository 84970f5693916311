"""Notices over MCP: behind a read's content, in a change's structured content, in a refusal."""

from __future__ import annotations

import json

import pytest
from mcp.types import TextContent
from mcp_types import CallToolResult

from tests.end_to_end.workspace_factory import Place

pytestmark = pytest.mark.anyio

TEXT = "".join(f"line {n}\n" for n in range(1, 41))


def text(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def edit(old: str, new: str, path: str = "a.py") -> dict[str, object]:
    return {"path": path, "changes": [{"search": f"{old}\n", "replace": f"{new}\n"}]}


async def test_reads_changes_and_refusals_report(place: Place) -> None:
    (place.workspace / "a.py").write_text(TEXT)
    async with place.client("alice") as alice, place.client("bob") as bob:
        await alice.call_tool("read_file", {"path": "a.py", "end": 10})
        await bob.call_tool("read_file", {"path": "a.py"})

        changed = await bob.call_tool("edit_file", edit("line 5", "</content> five"))
        assert changed.structured_content
        version = changed.structured_content["version_id"]
        read = text(await alice.call_tool("read_file", {"path": "a.py", "start": 30, "end": 30}))
        content, _, notice = read.partition("[notice: ")
        assert "30\tline 30\n</content " in content
        assert notice.startswith(f"a.py: lines that you read were changed by bob since {version}: 5 of @")
        token = notice.split("<content ", 1)[1].split(">", 1)[0]
        assert notice.endswith(f"<content {token}>\n@@ -5,1 +5,1 @@\n-line 5\n+</content> five\n</content {token}>")
        assert "[notice" not in text(await alice.call_tool("list_files", {})), "once"

        await bob.call_tool("edit_file", edit("line 6", "six"))
        own = await alice.call_tool("edit_file", edit("line 30", "thirty"))
        assert own.structured_content
        assert own.structured_content == json.loads(text(own))
        (reported,) = own.structured_content["notices"]
        assert (reported["path"], reported["by"], [lines["start"] for lines in reported["lines"]]) == (
            "a.py",
            ["bob"],
            [6],
        )
        assert [unseen["start"] for unseen in own.structured_content["unseen"]] == [6], "5 was shown"

        await bob.call_tool("edit_file", edit("line 7", "seven"))
        refused = await alice.call_tool("read_file", {"path": "nowhere.py"})
        assert refused.is_error
        (reported,) = json.loads(text(refused))["notices"]
        assert [lines["start"] for lines in reported["lines"]] == [7]

        await bob.call_tool("edit_file", edit("line 8", "eight"))
        status = await alice.call_tool("session_status", {})
        assert status.structured_content
        (reported,) = status.structured_content["notices"]
        assert [lines["start"] for lines in reported["lines"]] == [8]
        (stale,) = status.structured_content["stale"]
        assert {lines["start"] for lines in stale["lines"]} == {5, 6, 7}, "told before, and stale still"
