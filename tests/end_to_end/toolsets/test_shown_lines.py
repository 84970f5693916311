"""Only the lines that a tool's own answer shows count as seen, whatever it read to make that answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import CallToolResult, TextContent

from tests.end_to_end.workspace_factory import Place

pytestmark = pytest.mark.anyio

SHORT, LONG = "short needle", f"long needle {'x' * 800}"


@pytest.fixture
def log(place: Place) -> Path:
    path = place.workspace / "app.log"
    path.write_text("".join(f"line {n:02}\n" for n in range(1, 61)))
    (place.workspace / "needles.txt").write_text(f"{SHORT}\nnothing\n{LONG}\n")
    return path


def seen(place: Place) -> dict[str, list[Any]]:
    """Path to what of it counts as seen by now: ranges of lines, or that a line was cut."""
    place.up()
    found: dict[str, list[Any]] = {}
    for entry in place.cli("journal", "query", "--agent", "alice", "--json", "--limit", "200").json["entries"]:
        noted = entry["event"].get("seen", [])
        for lines in noted if isinstance(noted, list) else [noted]:
            found.setdefault(lines["path"], []).append("cut" if lines.get("cut") else lines["ranges"])
    return found


def refused(result: CallToolResult) -> str:
    assert result.is_error, result
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def said(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, result
    block = result.content[0]
    assert isinstance(block, TextContent)
    answer: dict[str, Any] = json.loads(block.text)
    return answer


async def test_the_lines_around_a_line_and_no_others(place: Place, log: Path) -> None:
    async with place.client("alice", "--toolset", "largefile") as client:
        call = {"absolute_file_path": str(log), "line": 30, "context_lines": 4}
        shown = said(await client.call_tool("read_enclosing", call))
        assert (shown["start_line"], shown["end_line"]) == (28, 31)
    assert seen(place) == {"app.log": [[[28, 31]]]}


async def test_what_a_read_looked_for_is_not_what_it_showed(place: Place, log: Path) -> None:
    async with place.client("alice", "--toolset", "largefile") as client:
        call = {"absolute_file_path": str(log), "pattern": "line 40", "limit": 3}
        shown = said(await client.call_tool("read_content", call))
        assert (shown["start_line"], shown["end_line"], shown["match_line"]) == (35, 37, 40)
    assert seen(place) == {"app.log": [[[35, 37]]]}


@pytest.mark.parametrize(("needle", "counts"), [(SHORT, [[1, 1]]), (LONG[:12], "cut")])
async def test_a_match_that_is_cut(place: Place, log: Path, needle: str, counts: Any) -> None:
    async with place.client("alice", "--toolset", "largefile") as client:
        for tool, where in (("search_content", log.with_name("needles.txt")), ("search_directory", log.parent)):
            of = "absolute_file_path" if tool == "search_content" else "absolute_dir_path"
            said(await client.call_tool(tool, {of: str(where), "pattern": needle, "context_lines": 0, "fuzzy": False}))
    assert seen(place)["needles.txt"] == [counts, counts]


async def test_matches_for_which_the_answer_has_no_room(place: Place, log: Path) -> None:
    async with place.client("alice", "--toolset", "largefile", "--max-answer-bytes", "4000") as client:
        call = {"absolute_file_path": str(log), "pattern": "line", "context_lines": 0, "max_results": 60}
        result = await client.call_tool("search_content", {**call, "fuzzy": False})
        assert 0 < len(said(result)["results"]) < said(result)["total_matches"] == 60
        note = result.content[1]
        assert isinstance(note, TextContent)
        assert note.text.startswith("[cut: ")
    assert seen(place) == {"app.log": ["cut"]}


async def test_an_answer_that_is_too_large_showed_nothing(place: Place, log: Path) -> None:
    async with place.client("alice", "--toolset", "filesystem", "--max-answer-bytes", "4000") as client:
        absent = f"{log.parent}/{'/'.join(['a' * 200] * 9)}"  # it stands in the answer twice
        text = refused(await client.call_tool("read_multiple_files", {"paths": [str(log), absent]}))
        assert "4000" in text
    assert seen(place) == {}


async def test_an_undo_that_shows_no_line(place: Place, log: Path) -> None:
    path = {"absolute_file_path": str(log)}
    async with place.client("alice", "--toolset", "largefile") as client:
        change = [{"search": "line 30", "replace": "thirty"}]
        said(await client.call_tool("edit_content", {**path, "changes": change, "preview": False}))
        before = seen(place)
        assert before == {"app.log": [[[27, 33]]]}
        said(await client.call_tool("revert_edit", path))
    assert seen(place) == before


async def test_a_line_read_to_insert_beside_it(place: Place, log: Path) -> None:
    async with place.client("alice", "--toolset", "editor") as client:
        call = {"path": str(log), "insert_line": 3, "insert_text": "new"}
        assert not (await client.call_tool("insert", call)).is_error
    assert seen(place) == {"app.log": [[[1, 8]]]}


async def test_others_changes_are_told_behind_the_answer(place: Place, log: Path) -> None:
    """Of what was read again in the same answer nothing is told."""
    needles = log.with_name("needles.txt")
    async with place.client("alice", "--toolset", "filesystem") as alice:
        await _read(alice, log)
        await _read(alice, needles)
        async with place.client("bob", "--toolset", "editor") as bob:
            for path, old in ((log, "line 07"), (needles, "nothing")):
                call = {"path": str(path), "old_str": old, "new_str": "bob's"}
                assert not (await bob.call_tool("str_replace", call)).is_error
        text = await _read(alice, log)
        assert "bob's" in text
        assert "needles.txt" in text
        assert text.count("app.log") == 0
        assert "needles.txt" not in await _read(alice, log)


async def _read(client: Client, path: Path) -> str:
    result = await client.call_tool("read_text_file", {"path": str(path)})
    assert not result.is_error
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def test_a_change_that_was_made_by_an_earlier_call(place: Place, log: Path) -> None:
    """Sent again it is answered with its diff, which the tool does not show."""
    path = {"absolute_file_path": str(log)}
    async with place.client("alice", "--toolset", "largefile") as client:
        change = [{"search": "line 30", "replace": "thirty"}]
        made = said(await client.call_tool("edit_content", {**path, "changes": change, "preview": False}))
        before = seen(place)
        revert = {**path, "backup_id": made["backup_created"], "request_id": "back"}
        for _ in range(2):
            said(await client.call_tool("revert_edit", revert))
    assert seen(place) == before


async def test_an_answer_of_a_core_tool_that_is_too_large_showed_nothing(place: Place) -> None:
    """The path stands in the answer, and leaves no room for the lines."""
    name = "/".join(["a" * 200] * 18)
    (place.workspace / name).mkdir(parents=True)
    (place.workspace / name / "b").write_text("one\ntwo\n")
    async with place.client("alice", "--max-answer-bytes", "4000") as client:
        result = await client.call_tool("read_file", {"path": f"{name}/b"})
        assert "answer_too_large" in refused(result)
    assert seen(place) == {}
