"""Calls of the toolsets that stand in for other servers, through the stdio transport and the daemon."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import pytest
from mcp import Client
from mcp_types import CallToolResult, ImageContent, TextContent

from orchestrator.api.locations import workspace_id
from tests.end_to_end.toolsets.original_answers import lay_out
from tests.end_to_end.workspace_factory import Place

pytestmark = pytest.mark.anyio


def text(result: CallToolResult, *, error: bool = False) -> str:
    said = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
    assert bool(result.is_error) == error, said
    return said


def document(result: CallToolResult) -> dict[str, Any]:
    """What the first block says; further ones are our notes."""
    assert not result.is_error, text(result, error=True)
    assert isinstance(result.content[0], TextContent)
    said: dict[str, Any] = json.loads(result.content[0].text)
    return said


async def names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


async def test_the_editor_as_models_know_it(place: Place) -> None:
    lay_out(place.workspace)
    root = place.workspace
    app = str(root / "src/app.py")
    async with place.client("alice", "--toolset", "editor") as client:
        call = client.call_tool
        assert await names(client) == {"view", "create", "str_replace", "insert", "undo_edit"}
        seen = text(await call("view", {"path": app, "view_range": [4, 5]}))
        assert (
            seen
            == f"Here's the result of running `cat -n` on {app}:\n     4\tdef main():\n     5\t    print('hello')\n"
        )
        folder = text(await call("view", {"path": str(root)}))
        assert folder.startswith(f"Here's the files and directories up to 2 levels deep in {root}, excluding hidden")
        assert f"{root}/src/app.py\n" in folder
        assert ".hidden" not in folder
        assert f"{root}/src/lib/deep.py" not in folder

        edited = text(await call("str_replace", {"path": app, "old_str": "'hello'", "new_str": "'day'"}))
        assert edited.startswith(f"The file {app} has been edited. Here's the result of running `cat -n` on a snippet")
        assert "     5\t    print('day')\n" in edited
        inserted = text(await call("insert", {"path": app, "insert_line": 1, "insert_text": "import sys"}))
        assert "     1\timport os\n     2\timport sys\n     3\t\n" in inserted
        assert (root / "src/app.py").read_text().startswith("import os\nimport sys\n\n")
        text(await call("insert", {"path": app, "insert_line": 0, "new_str": "# first\n"}))
        assert (root / "src/app.py").read_text().startswith("# first\nimport os\n")

        undone = text(await call("undo_edit", {"path": app}))
        assert undone.startswith(f"Last edit to {app} undone successfully. Here's the result")
        text(await call("undo_edit", {"path": app}))
        text(await call("undo_edit", {"path": app}))
        assert "print('hello')" in (root / "src/app.py").read_text()
        assert text(await call("undo_edit", {"path": app}), error=True) == f"No edit history found for {app}."

        new = str(root / "src/new.py")
        assert text(await call("create", {"path": new, "file_text": "a = 1\n"})) == (
            f"File created successfully at: {new}"
        )
        text(await call("insert", {"path": new, "insert_line": 1, "insert_text": "b = 2"}))
        assert (root / "src/new.py").read_text() == "a = 1\nb = 2\n"
        text(await call("undo_edit", {"path": new}))
        text(await call("undo_edit", {"path": new}))
        assert not (root / "src/new.py").exists()


async def test_the_editor_refuses_in_the_words_models_know(place: Place) -> None:
    lay_out(place.workspace)
    root = place.workspace
    app = str(root / "src/app.py")
    async with place.client("alice", "--toolset", "editor") as client:

        async def refused(name: str, **arguments: Any) -> str:
            return text(await client.call_tool(name, arguments), error=True)

        absent = f"{root}/absent.py"
        assert await refused("view", path=absent) == (f"The path {absent} does not exist. Please provide a valid path.")
        assert "is not an absolute path, it should start with `/`" in await refused("view", path="src/app.py")
        assert "Invalid `view_range` parameter" in await refused("view", path=app, view_range=[5, 2])
        assert "view_range` parameter" in await refused("view", path=str(root), view_range=[1, 2])
        assert (await refused("create", path=app, file_text="x")).startswith(f"File already exists at: {app}.")
        said = await refused("str_replace", path=app, old_str="nowhere", new_str="x")
        assert "did not appear verbatim" in said
        said = await refused("str_replace", path=app, old_str="return", new_str="x")
        assert said.startswith("No replacement was performed. Multiple occurrences of old_str")
        assert "Invalid `insert_line` parameter" in await refused("insert", path=app, insert_line=50, insert_text="x")
        assert "only the `view` command" in await refused("str_replace", path=str(root / "src"), old_str="x")


async def test_the_editor_as_one_tool(place: Place) -> None:
    lay_out(place.workspace)
    app = str(place.workspace / "src/app.py")
    async with place.client("alice", "--toolset", "editor") as client:
        given = {"command": "str_replace", "path": app, "old_str": "return 0", "new_str": "return 5"}
        text(await client.call_tool("str_replace_based_edit_tool", given))
        text(await client.call_tool("str_replace_editor", {"command": "undo_edit", "path": app}))
    assert "return 0" in (place.workspace / "src/app.py").read_text()


async def test_structured_listings(place: Place) -> None:
    lay_out(place.workspace)
    root = place.workspace
    (root / "link").symlink_to("README.md")
    async with place.client("alice", "--toolset", "localfiles") as client:
        call = client.call_tool
        listed = json.loads(text(await call("listDirectory", {"path": str(root)})))
        assert [entry["path"] for entry in listed] == sorted(str(path) for path in root.iterdir())
        by_name = {entry["name"]: entry for entry in listed}
        assert by_name["README.md"] == {
            "@type": "FileEntry",
            "name": "README.md",
            "path": f"{root}/README.md",
            "size": (root / "README.md").stat().st_size,
            "lastModified": (root / "README.md").stat().st_mtime_ns // 1_000_000,
        }
        assert (by_name["link"]["@type"], by_name["link"]["target"]) == ("SymbolicLinkEntry", "README.md")
        assert by_name["src"]["@type"] == "DirectoryEntry"
        found = json.loads(text(await call("findFiles", {"path": str(root), "glob": "**/*.py"})))
        assert [entry["path"] for entry in found] == [f"{root}/src/app.py", f"{root}/src/lib/deep.py"]
        assert json.loads(text(await call("findFiles", {"path": f"{root}/docs", "glob": "*.py"}))) == []


async def test_safe_exploration(place: Place) -> None:
    lay_out(place.workspace)
    root = place.workspace
    async with place.client("alice", "--toolset", "filesystem-tool") as client:
        call = client.call_tool
        listed = text(await call("filesystem-list", {"path": "src", "recursive": True}))
        assert [row.rsplit("  ", 1)[1] for row in listed.splitlines()] == [
            "app.py",
            "lib/",
            "lib/data.json",
            "lib/deep.py",
        ]
        as_json = json.loads(text(await call("filesystem-list", {"path": "docs", "format": "json"})))
        sizes = {entry["name"]: entry["sizeHuman"] for entry in as_json}
        assert sizes["size.bin"] == "2.0 KB"
        assert text(await call("filesystem-read", {"path": "docs/ten.txt", "offset": 3, "lines": 2})) == (
            "line 4\nline 5\n"
        )
        read = json.loads(text(await call("filesystem-read", {"path": "docs/ten.txt", "format": "json"})))
        assert (read["lines"], read["totalLines"], read["path"]) == (10, 10, f"{root}/docs/ten.txt")
        assert text(await call("filesystem-exists", {"path": "docs"})) == "true"
        assert text(await call("filesystem-exists", {"path": "absent"})) == "false"
        info = json.loads(text(await call("filesystem-info", {"path": "docs/size.bin", "format": "json"})))
        assert (info["type"], info["size"], info["path"]) == ("file", 2000, f"{root}/docs/size.bin")
        assert info["permissions"].endswith("644")
        assert "permissions: " in text(await call("filesystem-info", {"path": "README.md"}))
        assert text(await call("filesystem-read", {"path": "../outside"}), error=True)


async def test_the_same_gate_policy_and_journal(place: Place) -> None:
    """What is denied, unknown or others' stays so, whatever the tool is called; each call is an event."""
    lay_out(place.workspace)
    root = place.workspace
    (root / ".env").write_text("TOKEN=abcdefgh\n")
    async with place.client("alice", "--toolset", "filesystem", mode="legacy") as client:
        call = client.call_tool
        assert "abcdefgh" not in text(await call("read_text_file", {"path": f"{root}/.env"}), error=True)
        assert "abcdefgh" not in text(await call("read_multiple_files", {"paths": [f"{root}/.env"]}))
        unread = {"path": f"{root}/README.md", "content": "new\n"}
        assert "read" in text(await call("write_file", unread), error=True)
        text(await call("read_text_file", {"path": f"{root}/README.md"}))
        text(await call("write_file", unread))
        assert (root / "README.md").read_text() == "new\n"
        twice = {"path": f"{root}/src/app.py", "edits": [{"oldText": "    return", "newText": "    pass"}]}
        text(await call("edit_file", twice), error=True)
        moved = {"source": f"{root}/README.md", "destination": f"{root}/LIESMICH.md"}
        waits = text(await call("move_file", moved), error=True)
        assert waits.startswith("Not done yet. ")
        assert ". It is applied as soon as a person allows it" in waits
        assert (root / "README.md").exists()
        text(await call("no_such_tool", {}), error=True)
        assert text(await call("read_text_file", {"path": f"{root}/README.md", "haed": 1}), error=True)
    place.up()
    ran = place.cli("journal", "query", "--agent", "alice", "--json")
    kinds = [entry["kind"] for entry in ran.json["entries"]]
    for kind in ("read_refused", "file_read", "change_refused", "change_applied", "approval_requested", "call_refused"):
        assert kind in kinds


async def test_largefile_edits_and_goes_back(place: Place) -> None:
    lay_out(place.workspace)
    app = place.workspace / "src/app.py"
    whole = app.read_text()
    path = {"absolute_file_path": str(app)}
    async with place.client("alice", "--toolset", "largefile") as client:

        async def answered(name: str, **arguments: Any) -> dict[str, Any]:
            return document(await client.call_tool(name, {**path, **arguments}))

        first = await answered("edit_content", changes=[{"search": "return 0", "replace": "return 2"}], preview=False)
        assert first["backup_created"].startswith("@")
        await answered("edit_content", changes=[{"search": "return 1", "replace": "return 3"}], preview=False)
        assert "return 2" in app.read_text()
        back = await answered("revert_edit")
        assert (back["success"], app.read_text()) == (True, whole.replace("return 0", "return 2"))
        assert len(back["available_backups"]) >= 2
        again = await answered("revert_edit", backup_id=first["backup_created"])
        assert (again["reverted_to"]["id"], app.read_text()) == (first["backup_created"], whole)
        said = text(await client.call_tool("revert_edit", {**path, "backup_id": "@999999"}), error=True)
        assert "Backup @999999 not found. Available backups: @" in said

        batch = [{"search": "return 0", "replace": "return 2"}, {"search": "nowhere at all", "replace": "x"}]
        failed = await answered("edit_content", changes=batch, preview=False)
        assert (failed["success"], failed["results"][0]["index"], app.read_text()) == (False, 1, whole)
        many = [{"search": f"{n}", "replace": "x"} for n in range(51)]
        said = text(await client.call_tool("edit_content", {**path, "changes": many}), error=True)
        assert "exceeds limit of 50" in said


async def test_largefile_as_its_first_versions_were_called(place: Place) -> None:
    lay_out(place.workspace)
    app = place.workspace / "src/app.py"
    path = {"absolute_file_path": str(app), "encoding": "utf-8"}
    async with place.client("alice", "--toolset", "largefile") as client:

        async def answered(name: str, **arguments: Any) -> dict[str, Any]:
            return document(await client.call_tool(name, {**path, **arguments}))

        one = {"search_text": "return 0", "replace_text": "return 2"}
        seen = await answered("edit_content", **one)
        assert (seen["success"], seen["changes_made"], seen["line_number"]) == (True, 1, 6)
        assert "return 0" in app.read_text()
        done = await answered("edit_content", **one, preview=False)
        assert (done["match_type"], done["backup_created"][0]) == ("exact", "@")
        assert "return 2" in app.read_text()
        gone = await answered("edit_content", search_text="    retrun 2", replace_text="x", fuzzy=False)
        assert (gone["success"], gone["match_type"], gone["search_attempted"]) == (False, "none", "    retrun 2")
        assert gone["similar_matches"][0]["line"] == 6
        read = await answered("read_content", target=9)
        assert (read["start_line"], read["target_type"]) == (9, "line_number")
        read = await answered("read_content", target="def other")
        assert (read["match_line"], read["target_type"]) == (9, "pattern")
        assert (await answered("get_overview"))["line_count"] == 10


async def test_largefile_honours_its_environment(place: Place) -> None:
    lay_out(place.workspace)
    server = place.transport("--toolset", "largefile", agent="alice")
    given = {
        "LARGEFILE_MAX_DIR_ENTRIES": "1",
        "LARGEFILE_TRUNCATE_LENGTH": "4",
        "LARGEFILE_IGNORED_DIR_PATTERNS": "docs",
    }
    server.env = {**(server.env or {}), **given}
    async with Client(server) as client:
        listed = json.loads(text(await client.call_tool("list_directory", {"absolute_dir_path": str(place.workspace)})))
        assert [entry["name"] for entry in listed["entries"]] == ["src"]
        assert listed["truncated"]
        found = await client.call_tool("search_directory", {"absolute_dir_path": "~", "pattern": "x"})
        assert found.is_error
        call = {"absolute_file_path": str(place.workspace / "README.md"), "pattern": "words", "fuzzy": False}
        (match,) = json.loads(text(await client.call_tool("search_content", call)))["results"]
        assert (match["match"], match["truncated"]) == ("Some...", True)
        place.note()


async def test_a_log_is_analysed(place: Place) -> None:
    """Tail it, find its errors, read around one: never the whole of it."""
    rows = [f"{n:06} {'ERROR lost' if n % 5000 == 0 else 'INFO kept'} packet {n}\n" for n in range(1, 20_001)]
    log = place.workspace / "app.log"
    log.write_text("".join(rows))
    path = {"absolute_file_path": str(log)}
    async with place.client("alice", "--toolset", "largefile") as client:

        async def answered(name: str, **arguments: Any) -> dict[str, Any]:
            return document(await client.call_tool(name, {**path, **arguments}))

        tail = await answered("read_content", mode="tail", limit=1000)
        assert (tail["start_line"], tail["end_line"], tail["total_lines"]) == (19_001, 20_000, 20_000)
        assert tail["content"] == "".join(rows[-1000:])
        found = await answered("search_content", pattern="error", fuzzy=False, context_lines=0)
        assert [hit["line_number"] for hit in found["results"]] == [5000, 10_000, 15_000, 20_000]
        assert (await answered("search_content", pattern="ERROR", fuzzy=False, count_only=True))["count"] == 4
        around = await answered("read_content", offset=4998, limit=5)
        assert around["content"] == "".join(rows[4997:5002])


async def test_a_file_that_is_read_by_pieces(place: Place) -> None:
    """No outline and no diff of it: the lines around a line, and what is known."""
    state = place.home / ".local/state/orchestrator" / workspace_id(str(place.workspace))
    state.mkdir(mode=0o700, parents=True)
    (state / "policy.toml").write_text('name = "ours"\nextends = "default"\n[limits]\nin_memory_bytes = 262144\n')
    log = place.workspace / "app.log"
    log.write_text("".join(f"{n:06} packet {n}\n" for n in range(1, 20_001)))
    path = {"absolute_file_path": str(log)}
    async with place.client("alice", "--toolset", "largefile") as client:

        async def answered(name: str, **arguments: Any) -> dict[str, Any]:
            return document(await client.call_tool(name, {**path, **arguments}))

        known = await answered("get_overview")
        assert (known["line_count"], known["file_size"], known["outline"]) == (20_000, log.stat().st_size, [])
        whole = await answered("read_content", mode="semantic", pattern="packet 9000")
        assert "009000 packet 9000\n" in whole["content"]
        assert "the lines around" in whole["warnings"][0]
        around = await answered("read_enclosing", line=9000, context_lines=3)
        assert (around["start_line"], around["end_line"], around["mode"]) == (8999, 9001, "context_window")
        change = [{"search": "009000 packet", "replace": "009000 parcel"}]
        assert (await answered("edit_content", changes=change))["preview"] == "The diff is not shown."
        assert "parcel" not in log.read_text()
        assert (await answered("edit_content", changes=change, preview=False))["success"]
        assert "009000 parcel 9000\n" in log.read_text()


async def test_an_image_is_shown(place: Place) -> None:
    lay_out(place.workspace)
    data = b"\x89PNG\r\n\x1a\n" + bytes(50)
    (place.workspace / "dot.png").write_bytes(data)
    async with place.client("alice", "--toolset", "filesystem") as client:
        result = await client.call_tool("read_media_file", {"path": str(place.workspace / "dot.png")})
        (block,) = result.content
        assert isinstance(block, ImageContent)
        assert (b64decode(block.data), block.mime_type, result.is_error) == (data, "image/png", False)
        text(await client.call_tool("read_media_file", {"path": str(place.workspace / "README.md")}), error=True)


async def test_a_search_with_typos_for_what_is_everywhere_says_what_to_send(place: Place) -> None:
    log = place.workspace / "app.log"
    log.write_text("abcd zzz\n" * 60_000 + "abcdefghijkl\n")
    async with place.client("alice", "--toolset", "largefile") as client:
        call = {"absolute_file_path": str(log), "pattern": "abcdefghijkl"}
        result = await client.call_tool("search_content", call)
        assert any("fuzzy=false" in block.text for block in result.content if isinstance(block, TextContent))
        assert document(await client.call_tool("search_content", {**call, "fuzzy": False}))["total_matches"] == 1


SMALL = """
name = "ours"
extends = "default"

[[profile]]
name = "small"
agents = ["alice"]
over_limit = "summary"
max_read_lines = 100
"""

WHOLE = [
    pytest.param("filesystem", "read_text_file", "path", id="filesystem"),
    pytest.param("editor", "view", "path", id="editor"),
    pytest.param("filesystem-tool", "filesystem-read", "path", id="filesystem-tool"),
]


@pytest.mark.parametrize(("toolset", "tool", "name"), WHOLE)
async def test_a_large_file_is_summarized_as_the_profile_says(place: Place, toolset: str, tool: str, name: str) -> None:
    """No person is asked, and what it says to send can be sent: no tool of the catalogue is named."""
    state = place.home / ".local/state/orchestrator" / workspace_id(str(place.workspace))
    state.mkdir(mode=0o700, parents=True)
    (state / "policy.toml").write_text(SMALL)
    body = "".join(f"    def m{n}(self):\n        return {n}\n" for n in range(200))
    (place.workspace / "shop.py").write_text(f"class Shop:\n{body}")
    async with place.client("alice", "--toolset", toolset) as client:
        said = text(await client.call_tool(tool, {name: str(place.workspace / "shop.py")}))
    assert "class Shop" in said
    assert "alice may read 100 at once: this is a summary. Read a part." in said
    for other in ("read_file(", "search_content", "get_overview", "lines 0-0"):
        assert other not in said
    assert "m199" not in said
    assert "no approval" in place.cli("approvals").out or "nothing waits" in place.cli("approvals").out


async def test_a_refusal_names_what_its_reader_can_call(place: Place) -> None:
    """Not `expected_count` of an editor's client, nor `list_files` of one of the filesystem server's."""
    file = place.workspace / "a.txt"
    file.write_text("x\nx\n")
    async with place.client("alice", "--toolset", "editor") as client:
        await client.call_tool("view", {"path": str(file)})
        twice = {"path": str(file), "old_str": "x", "new_str": "y"}
        said = text(await client.call_tool("str_replace", twice), error=True)
    async with place.client("alice") as client:  # the core tools
        unknown = json.loads(text(await client.call_tool("command_output", {"command": "@1"}), error=True))
    assert (unknown["code"], unknown.get("hint")) == ("version_unknown", None), "list_commands is of the full toolset"
    assert "Multiple occurrences" in said
    assert "Add a neighbouring line to it." in said
    assert "expected_count" not in said
