"""An answer takes most of what its client hands on, and names the call that shows the rest."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from typing import Any

import pytest
from mcp import Client
from mcp_types import CallToolResult

from tests.end_to_end.answer_limits import Limit, check, opened, reported
from tests.end_to_end.workspace_factory import Place

pytestmark = pytest.mark.anyio

CODE = "".join(f'    name_{number} = work("{number}", [first, second])\n' for number in range(9_000))
SMALLEST = Limit("somebody-else", options=("--max-answer-bytes", "6000"), bytes=6_000)
USED = (
    Limit("somebody-else", bytes=12_000),
    Limit("codex-mcp-client", "0.169.0", bytes=12_018),
    Limit("claude-code", "2.1.316", bytes=50_000),
    Limit("gemini-cli-mcp-client", "0.61.0", bytes=40_000),
    Limit("opencode", "1.18.33", bytes=51_200),
    Limit("opencode", "1.18.33", options=("--structured",), bytes=51_200),
)


@pytest.mark.parametrize("limit", USED, ids=lambda limit: f"{limit.name} {limit.version} {limit.options}")
async def test_an_answer_takes_most_of_what_its_client_hands_on(place: Place, limit: Limit) -> None:
    (place.workspace / "code.py").write_text(CODE)
    folder = place.workspace / "many"
    folder.mkdir()
    for number in range(1_500):
        (folder / f"a_usual_name_{number}.py").touch()
    wanted: list[tuple[str, dict[str, Any]]] = [
        ("read_file", {"path": "code.py", "max_tokens": 200_000}),
        ("search_content", {"pattern": "name_", "max_results": 1_000, "context_lines": 0}),
        ("search_content", {"pattern": "0", "path": "code.py", "max_results": 1_000, "context_lines": 3}),
        ("list_files", {"path": "many", "limit": 5_000}),
    ]
    async with opened(place, "worker", limit) as client:
        for name, arguments in wanted:
            answer = await client.call_tool(name, arguments)
            text = check(answer, limit, name)
            structured = json.dumps(answer.structured_content or {}, ensure_ascii=False, separators=(",", ":"))
            used = max(len(json.dumps(text, ensure_ascii=False).encode()), len(structured.encode()))
            assert used > 0.75 * limit.bytes, f"{name} {arguments}: {used} of {limit.bytes} bytes"


async def test_a_search_that_was_shown_counts_as_seen_and_no_more(place: Place) -> None:
    """With typed content a hit costs more than in text: the page is shorter, and only its lines are seen."""
    limit = Limit("somebody-else", options=("--structured",), bytes=12_000)
    (place.workspace / "code.py").write_text(text := "e" * 60 + "\n" + CODE[:7_000].rpartition("\n")[0] + "\n")
    search = {"pattern": "e", "max_results": 1_000, "context_lines": 50}
    replace = {"path": "code.py", "content": "mine\n", "mode": "truncate"}
    seen: set[int] = set()
    async with opened(place, "worker", limit) as client:
        cursor = ""
        while len(seen) < text.count("\n"):
            assert reported(await client.call_tool("write_file", replace))["code"] == "base_required"
            answer = await client.call_tool("search_content", {**search, "cursor": cursor} if cursor else search)
            check(answer, limit, "search_content")
            page = answer.structured_content
            assert page, "nothing was shown"
            for hit in page["hits"]:
                seen |= set(
                    range(hit["line"] - len(hit.get("before", ())), hit["line"] + len(hit.get("after", ())) + 1)
                )
            cursor = page["cursor"] or ""
        assert reported(await client.call_tool("write_file", replace))["status"] == "applied"


# --- the exact next call ------------------------------------------------------------------


async def followed(client: Client, limit: Limit, name: str, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """The answers to a call and to each call that the last answer names, exactly as it is named there."""
    answers = []
    while True:
        answer: CallToolResult = await client.call_tool(name, arguments)
        check(answer, limit, name)
        answers.append(reported(answer))
        assert "cut" not in answers[-1] or answers[-1].get("next"), answers[-1]
        follow = answers[-1].get("next")
        if not follow:
            return answers
        called = ast.parse(follow, mode="eval").body
        assert isinstance(called, ast.Call)
        assert isinstance(called.func, ast.Name)
        name = called.func.id
        arguments = {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in called.keywords}
        assert len(answers) < 100, "it goes on for ever"


def parts(answers: list[dict[str, Any]], list_name: str, shown: Callable[[dict[str, Any]], Any]) -> list[Any]:
    return [shown(item) for answer in answers for item in answer.get(list_name, ())]


async def test_changes_that_did_not_fit_come_with_the_next_call(place: Place) -> None:
    patch = "".join(f"--- /dev/null\n+++ b/made/{n}-{'n' * 100}\n@@ -0,0 +1 @@\n+new {n}\n" for n in range(60))
    async with opened(place, "worker", SMALLEST) as client:
        for number in range(20):
            await client.call_tool("write_file", {"path": f"{number}.txt", "content": f"{number}\n", "mode": "create"})
        await client.call_tool("apply_patch", {"patch": patch})
        await client.call_tool("write_file", {"path": "last.txt", "content": "last\n", "mode": "create"})
        answers = await followed(client, SMALLEST, "changes_since", {"version": "@0"})
        assert len(answers) > 3
        found = parts(answers, "changes", lambda change: change["path"])
        made = sorted(f"made/{n}-{'n' * 100}" for n in range(60))
        assert found[:20] == [f"{number}.txt" for number in range(20)]
        assert sorted(found[20:-1]) == made
        assert found[-1] == "last.txt"
        some = await followed(client, SMALLEST, "changes_since", {"version": "@0", "globs": ["made/"], "limit": 7})
        assert sorted(parts(some, "changes", lambda change: change["path"])) == made
