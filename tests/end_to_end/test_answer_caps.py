"""No answer of any tool is longer than its client hands on; what was left out of it does not count as seen."""

from __future__ import annotations

import re
from typing import Any

import pytest
from mcp import Client

from orchestrator.api.operations import toolset
from tests.end_to_end.answer_limits import Limit, check, opened, reported
from tests.end_to_end.workspace_factory import Place

pytestmark = pytest.mark.anyio


LIMITS = (
    Limit("somebody-else", bytes=12_000),
    Limit("codex-mcp-client", "0.169.0", bytes=12_018),
    Limit("claude-code", "2.1.316", characters=50_000),
    Limit("gemini-cli-mcp-client", "0.61.0", characters=40_000),
    Limit("opencode", "1.18.33", bytes=51_200, lines=2_000),
    Limit("somebody-else", options=("--max-answer-bytes", "6000"), bytes=6_000),
    Limit("somebody-else", options=("--structured",), bytes=12_000),
    Limit("opencode", "1.18.33", options=("--structured",), bytes=51_200, lines=2_000),
)
OF_EACH_KIND = ("somebody-else", "gemini-cli-mcp-client", "opencode")
"""Limits in bytes, in characters and in lines; those of other clients differ in size only."""

LIMITED = pytest.mark.parametrize(
    "limit",
    [
        pytest.param(
            limit,
            id=f"{limit.name} {limit.version} {limit.options}",
            marks=[] if limit.name in OF_EACH_KIND and not limit.options else [pytest.mark.soak],
        )
        for limit in LIMITS
    ],
)

BIG = "".join(f'{n}: "quoted" \\ and \u00e4\u4f60\U0001f600, line {n}\n' for n in range(1, 6_001))
SHORT_LINES = "x\n" * 6_000
TAIL = "\u0001" * 900 + "\U0001f600" * 900 + "e" * 900 + "\n"
DEEP = "".join(f"import m{n}\n" for n in range(1000)) + "".join(
    f"class C{n}:\n" + "".join(f"    def f{m}_{'n' * 100}(self): ...\n" for m in range(300)) for n in range(5)
)
WIDE = "".join(f"{n}{TAIL}" for n in range(1, 101))
LONG_NAME = "n" * 200


@pytest.fixture
def place(place: Place) -> Place:
    for name, text in (
        ("big.txt", BIG),
        ("short.txt", SHORT_LINES),
        ("wide.txt", WIDE),
        ("h.txt", "0\n"),
        ("deep.py", DEEP),
    ):
        (place.workspace / name).write_text(text)
    folder = place.workspace / LONG_NAME / LONG_NAME
    folder.mkdir(parents=True)
    for number in range(100):
        (folder / f"{number}-{LONG_NAME}").write_text(f"e{number}\n")
        (folder / f"{number}{LONG_NAME}.py").write_text("import deep\n")
    return place


async def prepared(client: Client) -> dict[str, str]:
    """A long history, a wide change, an approval, a conflict, a task and a lease; their names."""
    call = client.call_tool
    for number in range(25):
        change = {"path": "h.txt", "content": f"{number}\n", "mode": "append", "reason": "r" * 1900}
        change_id = reported(await call("write_file", change))["change"]
    wide = [
        {"start": n, "end": n, "expect": line, "replace": line[::-1]} for n, line in enumerate(WIDE.split("\n")[:50], 1)
    ]
    edited = reported(await call("edit_file", {"path": "wide.txt", "changes": wide}))
    assert edited["status"] == "applied", edited
    stale = {"path": "wide.txt", "base": edited["paths"][0]["before"], "changes": [{**wide[3], "replace": "other"}]}
    conflict = reported(await call("edit_file", stale))
    waiting = reported(await call("delete_file", {"path": LONG_NAME}))
    task = reported(await call("begin_task", {"title": "t" * 500}))
    lease = reported(await call("reserve_paths", {"globs": [f"lease/{LONG_NAME}"], "reason": "r" * 1900}))
    return {
        "change": change_id,
        "wide": edited["change"],
        "conflict": str(conflict.get("conflict")),
        "approval": waiting["approval"],
        "task": task["task"],
        "lease": lease["lease"],
    }


def calls(names: dict[str, str]) -> list[tuple[str, dict[str, Any]]]:
    """Every tool, with what makes its answer long."""
    patch = "".join(f"--- /dev/null\n+++ b/{LONG_NAME}/{n}-{LONG_NAME}\n@@ -0,0 +1 @@\n+new {n}\n" for n in range(100))
    spread = [{"start": n, "end": n, "expect": f"{'x'}", "replace": "y" * 900} for n in range(1, 1500, 30)]
    return [
        ("list_files", {"recursive": True, "limit": 5000}),
        ("find_files", {"glob": "*", "limit": 5000}),
        ("directory_stats", {}),
        ("file_info", {"path": "big.txt"}),
        ("tag_file", {"path": "big.txt", "tags": [f"tag-{number}" for number in range(20)]}),
        ("search_content", {"pattern": "e", "max_results": 1000, "context_lines": 50}),
        ("search_content", {"pattern": "e", "path": "wide.txt", "max_results": 1000, "context_lines": 50}),
        ("search_content", {"pattern": "x", "path": "short.txt", "max_results": 1000, "context_lines": 0}),
        ("read_file", {"path": "big.txt", "max_tokens": 200_000}),
        ("read_file", {"path": "short.txt", "max_tokens": 200_000, "line_numbers": False}),
        ("read_file", {"path": "wide.txt", "max_tokens": 200_000}),
        ("read_lines", {"path": "big.txt", "end": 6_000}),
        ("get_overview", {"path": "big.txt", "max_tokens": 200_000}),
        ("get_overview", {"path": "deep.py", "max_tokens": 200_000}),
        ("get_overview", {"path": "deep.py", "max_tokens": 200_000, "symbol": "C0", "changed_since": "@start"}),
        ("read_files", {"paths": ["big.txt", "deep.py", "wide.txt", "none"], "max_tokens": 200_000}),
        ("get_excerpt", {"path": "big.txt", "max_lines": 5000, "max_tokens": 200_000, "leave_out": "middle"}),
        ("get_excerpt", {"path": "wide.txt", "max_tokens": 200_000, "line": 50}),
        ("summarize_file", {"path": "deep.py", "max_tokens": 200_000}),
        ("get_briefing", {"max_tokens": 50_000}),
        ("read_symbol", {"path": "deep.py", "max_tokens": 200_000, "symbol": "C3"}),
        ("read_symbol", {"path": "deep.py", "symbol": "C"}),
        ("read_enclosing", {"path": "wide.txt", "max_tokens": 200_000, "line": 3, "context_lines": 500}),
        ("related_files", {"path": "deep.py"}),
        ("find_references", {"symbol": "e", "max_results": 1000}),
        ("find_references", {"symbol": "line", "max_results": 1000, "by": "word"}),
        ("find_references", {"symbol": "C1", "path": "deep.py"}),
        ("edit_file", {"path": "short.txt", "changes": spread}),
        ("edit_file", {"path": "wide.txt", "changes": [{"search": WIDE[:2000], "replace": ""}]}),
        ("edit_file", {"path": "big.txt", "changes": [{"search": "and", "replace": ""}]}),
        ("edit_file", {"path": "big.txt", "changes": [{"search": "z" * 20_000, "replace": ""}]}),
        ("apply_patch", {"patch": patch}),
        ("write_file", {"path": "new.txt", "content": BIG, "mode": "create"}),
        ("write_file", {"path": "big.txt", "content": "", "mode": "truncate"}),
        ("create_directory", {"path": f"d/{LONG_NAME}/{LONG_NAME}"}),
        ("move_file", {"source": LONG_NAME, "destination": "m"}),
        ("delete_file", {"path": LONG_NAME}),
        ("file_history", {"path": "h.txt", "limit": 500}),
        ("get_diff", {"from": "@start", "max_tokens": 2_000_000}),
        ("get_diff", {"path": "wide.txt", "context_lines": 1000}),
        ("get_diff", {"path": "h.txt", "from": "@start"}),
        ("revert", {"change": names["wide"]}),
        ("rollback", {"globs": ["*"], "agent": "worker", "preview": True}),
        ("run_command", {"argv": ["cat", "big.txt"]}),
        ("command_output", {"command": "@1"}),
        ("stop_command", {"command": "@1"}),
        ("list_commands", {"limit": 200}),
        ("session_status", {}),
        ("begin_task", {"title": "u" * 500}),
        ("end_task", {"task": names["task"], "outcome": "o" * 2000}),
        ("list_conflicts", {"limit": 100, "max_tokens": 10_000_000}),
        ("resolve_conflict", {"conflict": names["conflict"], "choice": "current"}),
        ("await_change", {"id": names["approval"], "timeout_s": 0}),
        ("await_change", {"id": names["wide"], "timeout_s": 0}),
        ("approvals_list", {}),
        ("approvals_show", {"approval": names["approval"]}),
        ("approve", {"approval": names["approval"]}),
        ("deny", {"approval": names["approval"]}),
        ("journal_query", {"limit": 500}),
        ("blame", {"path": "h.txt"}),
        ("changes_since", {"version": "@0", "limit": 5000}),
        ("stale_readers", {"path": "h.txt", "limit": 500}),
        ("reserve_paths", {"globs": [f"{LONG_NAME}{n}" for n in range(100)]}),
        ("release_paths", {"lease": names["lease"]}),
        ("read_file", {"path": "p" * 4000}),
        ("no_such_tool" * 1000, {}),
    ]  # fmt: skip


@LIMITED
async def test_no_answer_is_longer_than_its_client_hands_on(place: Place, limit: Limit) -> None:
    async with opened(place, "worker", limit) as client:
        wanted = calls(await prepared(client))
        assert {operation.name for operation in toolset("full")} <= {name for name, _ in wanted}
        for name, arguments in wanted:
            answer = await client.call_tool(name, arguments)
            check(answer, limit, f"{name} {str(arguments)[:200]}")


@LIMITED
async def test_what_was_left_out_is_not_seen_and_the_next_call_shows_it(place: Place, limit: Limit) -> None:
    """Following the calls that the answers name, a session has seen all of a file, and may replace it then."""
    text = BIG[: 4 * min(limit.bytes, 60_000)].rpartition("\n")[0] + "\n"
    (place.workspace / "part.txt").write_text(text)
    whole = {"path": "part.txt", "content": "mine\n", "mode": "truncate"}
    async with opened(place, "worker", limit) as client:
        more: re.Match[str] | None = None
        seen: list[str] = []
        while not seen or more:
            if more:
                refused = await client.call_tool("write_file", whole)
                assert reported(refused)["code"] == "base_required"
            start = int(more[1]) if more else 1
            answer = await client.call_tool("read_file", {"path": "part.txt", "start": start, "max_tokens": 200_000})
            block = check(answer, limit, "read_file")
            seen += re.findall(r"^ *\d+\t(.*)$", block, re.MULTILINE)
            more = re.search(r"\[more follows: read_file\(path=\"part.txt\", start=(\d+)\)\]$", block)
        assert "".join(f"{line}\n" for line in seen) == text
        assert reported(await client.call_tool("write_file", whole))["status"] == "applied"


async def test_core_answers_core_tools_only(place: Place) -> None:
    async with place.client("alice") as client:
        refused = await client.call_tool("journal_query", {})
        assert refused.is_error
        answer = reported(refused)
        assert answer["code"] == "unknown_operation"
        assert "--toolset full" in answer["hint"]
        of_no_toolset = reported(await client.call_tool("read_content", {"path": "a.py"}))
        assert of_no_toolset["hint"] == "tools/list names all of them."
