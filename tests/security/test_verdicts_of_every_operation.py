"""What each operation answers under each verdict on listing, and on reading: it shows, asks, leaves out or refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest

from orchestrator.api.operations import OPERATIONS
from orchestrator.clients.python import Replacement
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.raw_socket import Talk

pytestmark = pytest.mark.anyio

POLICY = """
name = "vault"
default = "allow"

[journal]
shows = "everybody"

[[rule]]
name = "the vault"
agents = ["alice", "judge"]
actions = [{actions}]
paths = ["vault"]
verdict = "{verdict}"
reason = "a person's own"

[[rule]]
name = "removals"
agents = ["carol"]
actions = ["delete"]
paths = ["*"]
verdict = "ask"

[[rule]]
name = "copies"
agents = ["alice"]
actions = ["run"]
paths = ["**"]
commands = ["cp **"]
verdict = "allow"

[[rule]]
name = "judges"
agents = ["judge"]
actions = ["approve"]
paths = ["*"]
verdict = "allow"
"""

PATH = "vault/plan.txt"
TEXT = "".join(f"{line} quokka\n" for line in ("# dear diary", "monday", "tuesday", "wednesday", "thursday", "friday"))
SECRETS = {"list": "plan.txt", "read": "quokka"}

Answers = Literal["shows", "asks", "leaves out", "refuses", "is silent"]
"""Where policy does not allow it. `refuses`: without a way to ask; `is silent`: it tells nothing, allowed or not."""


class Row(NamedTuple):
    """One call, and what becomes of it where listing and where reading is not allowed."""

    operation: str
    parameters: dict[str, Any]
    listing: Answers
    reading: Answers
    caller: str = "alice"


ONE = {"path": PATH}
NATIVE = {"client": "claude", "tool": "Read", "kind": "read", "call": "toolu_1"}
CALL = {"client": "claude", "tool": "Edit", "state": "ends", "call": "toolu_2"}
EDIT = {"changes": [{"search": "monday quokka again", "replace": "monday"}], "preview": True}
WRITE = {"content": "x\n", "mode": "truncate", "base": "{last}", "preview": True}
PATCH = f"--- a/{PATH}\n+++ b/{PATH}\n@@ -3,1 +3,1 @@\n-tuesday quokka\n+tuesday\n"

TABLE = [
    Row("list_files", {}, "is silent", "is silent"),
    Row("list_files", {"recursive": True}, "leaves out", "is silent"),
    Row("list_files", {"path": "vault"}, "asks", "is silent"),
    Row("find_files", {"glob": "*.txt"}, "leaves out", "is silent"),
    Row("directory_stats", {}, "leaves out", "is silent"),
    Row("directory_stats", {"path": "vault"}, "asks", "is silent"),
    Row("file_info", ONE, "asks", "is silent"),
    Row("tag_file", {**ONE, "tags": ["reviewed"]}, "asks", "is silent"),
    Row("search_content", {"pattern": "day"}, "leaves out", "leaves out"),
    Row("search_content", {"pattern": "day", "path": "vault"}, "asks", "leaves out"),
    Row("search_content", {"pattern": "day", **ONE}, "shows", "asks"),
    Row("read_file", ONE, "shows", "asks"),
    Row("read_file", {**ONE, "at": "{first}"}, "shows", "asks"),
    Row("read_lines", ONE, "shows", "asks"),
    Row("get_overview", ONE, "shows", "asks"),
    Row("get_overview", {**ONE, "changed_since": "{first}"}, "shows", "asks"),
    Row("read_symbol", {**ONE, "symbol": "dear diary quokka"}, "shows", "asks"),
    Row("read_enclosing", {**ONE, "line": 2}, "shows", "asks"),
    Row("read_content", {**ONE, "mode": "tail"}, "shows", "asks"),
    Row("read_content", {**ONE, "pattern": "day"}, "shows", "asks"),
    Row("related_files", ONE, "shows", "asks"),
    Row("read_files", {"paths": [PATH]}, "shows", "leaves out"),
    Row("get_excerpt", ONE, "shows", "asks"),
    Row("summarize_file", ONE, "shows", "asks"),
    Row("get_briefing", {}, "is silent", "is silent"),
    Row("find_references", {"symbol": "monday"}, "leaves out", "leaves out"),
    Row("find_references", {**ONE, "symbol": "dear diary quokka"}, "shows", "asks"),
    Row("edit_file", {**ONE, **EDIT}, "shows", "asks"),
    Row("apply_patch", {"patch": PATCH, "preview": True}, "shows", "asks"),
    Row("write_file", {**ONE, **WRITE}, "shows", "leaves out"),
    Row("move_file", {"source": PATH, "destination": "a.txt", "preview": True}, "shows", "is silent"),
    Row("move_file", {"source": "vault", "destination": "safe", "preview": True}, "refuses", "is silent"),
    Row("delete_file", {**ONE, "preview": True}, "shows", "leaves out"),
    Row("delete_file", {"path": "vault", "preview": True}, "refuses", "leaves out"),
    Row("create_directory", {"path": "new", "preview": True}, "is silent", "is silent"),
    Row("file_history", ONE, "asks", "is silent"),
    Row("get_diff", {**ONE, "from": "{first}"}, "shows", "asks"),
    Row("get_diff", {**ONE, "from": "{first}", "to": "{last}"}, "shows", "asks"),
    Row("get_diff", {"from": "{first}"}, "leaves out", "leaves out"),
    Row("revert", {"change": "{last}", "preview": True}, "refuses", "leaves out"),
    Row("rollback", {"agent": "bob", "preview": True}, "refuses", "leaves out"),
    Row("blame", ONE, "shows", "asks"),
    Row("blame", {**ONE, "at": "{first}"}, "shows", "asks"),
    Row("changes_since", {"version": "@1"}, "leaves out", "is silent"),
    Row("session_status", {}, "is silent", "is silent"),
    Row("await_change", {"id": "{conflict}", "timeout_s": 0}, "refuses", "is silent"),
    Row("await_change", {"id": "{approval}", "timeout_s": 0}, "refuses", "is silent"),
    Row("await_change", {"id": "{last}", "timeout_s": 0}, "refuses", "is silent"),
    Row("list_conflicts", {}, "leaves out", "leaves out"),
    Row("reserve_paths", {"globs": ["vault/*"]}, "leaves out", "is silent"),
    Row("stale_readers", ONE, "asks", "asks"),
    Row("journal_query", {"kind": "change_applied"}, "leaves out", "is silent"),
    Row("native_before", {**ONE, **NATIVE}, "shows", "asks"),
    Row("native_after", {**ONE, **NATIVE}, "shows", "asks"),
    Row("open_worktree", {}, "is silent", "is silent"),
    Row("report_tool_call", {**CALL, "edits": [{**ONE, "old": "a", "new": "b"}]}, "is silent", "is silent"),
    Row("run_command", {"argv": ["cp", "open.txt", "vault/another plan.txt"]}, "leaves out", "is silent"),
    Row("approvals_list", {}, "leaves out", "is silent", "judge"),
    Row("approvals_show", {"approval": "{approval}"}, "refuses", "refuses", "judge"),
]

NAMES_NO_PATH = {
    *("begin_task", "end_task", "release_paths", "resolve_conflict"),
    *("command_output", "list_commands", "stop_command", "close_worktree"),
    *("approve", "deny"),
}
"""They tell nothing of a path that the caller did not name; the last two ask as `approvals_show` does."""


def test_every_operation_for_agents_is_in_the_table() -> None:
    known = {row.operation for row in TABLE} | NAMES_NO_PATH
    assert known == {operation.name for operation in OPERATIONS if not operation.operator_only or operation.reviewers}


@pytest.mark.parametrize("verdict", ["allow", "ask", "deny"])
@pytest.mark.parametrize("about", ["list", "read"])
async def test_it_answers_by_the_verdict(
    base: Path, about: Literal["list", "read"], verdict: Literal["allow", "ask", "deny"]
) -> None:
    daemon = RunningDaemon(base)
    actions = '"list"' if about == "list" else '"read", "search"'
    (daemon.state_dir / "policy.toml").write_text(POLICY.format(actions=actions, verdict=verdict))
    (daemon.workspace / "vault").mkdir()
    (daemon.workspace / PATH).write_text(TEXT)
    (daemon.workspace / "open.txt").write_text("a day for all\n")
    with running(base):
        names, token = await what_others_did(daemon), await judge(daemon)
        wrong: list[tuple[str, dict[str, Any], str]] = []
        for row in TABLE:
            talk = Talk(daemon, row.caller, token=token if row.caller == "judge" else None)
            parameters = {name: named(value, names) for name, value in row.parameters.items()}
            talk.call(row.operation, **parameters)
            answer = talk.answer()
            talk.close()
            expected = row.listing if about == "list" else row.reading
            if not as_expected(answer, expected, verdict, SECRETS[about]):
                wrong.append((row.operation, parameters, json.dumps(answer)[:600]))
    assert wrong == [], "\n".join(map(str, wrong))


def as_expected(answer: dict[str, Any], expected: Answers, verdict: str, secret: str) -> bool:
    text, failed = json.dumps(answer), answer.get("error", {}).get("data", {})
    if expected == "is silent":
        return "error" not in answer and (secret not in text or secret == "plan.txt")
    if verdict == "allow" or expected == "shows":
        return "error" not in answer and (secret in text or expected in ("asks", "shows"))
    if expected == "leaves out":
        return "error" not in answer and secret not in text
    if verdict == "deny" or expected == "refuses":
        return failed.get("code") == "denied" and (secret not in text or expected == "asks")
    told = failed.get("details", {}) if failed else answer["result"]
    waits = failed.get("code") == "approval_required" or told.get("status") == "waiting"
    return waits and told["approval"].startswith("@") and "quokka" not in text


async def judge(daemon: RunningDaemon) -> str:
    """A reviewer's token."""
    async with daemon.client() as person:
        return (await person.agent_add("judge", "review", approver=await daemon.make_approver())).token


async def what_others_did(daemon: RunningDaemon) -> dict[str, str]:
    """Two changes, a conflict, a request for an approval and a lease; the names that calls use for them."""
    async with daemon.client("bob") as bob, daemon.client("carol") as carol:
        first = (await bob.read_file(PATH)).version_id
        await bob.edit_file(PATH, [Replacement(search="monday quokka", replace="monday quokka again")])
        last = await bob.edit_file(PATH, [Replacement(search="friday quokka", replace="friday quokka at last")])
        stale = [Replacement(search="friday quokka", replace="friday quokka, perhaps")]
        conflict = (await carol.edit_file(PATH, stale, base=first)).conflict
        approval = (await carol.delete_file(PATH)).approval
        await carol.reserve_paths([PATH])
        assert last.version_id is not None
        assert conflict is not None
        assert approval is not None
        return {"first": first, "last": last.version_id, "conflict": conflict, "approval": approval}


def named(value: Any, names: dict[str, str]) -> Any:
    return value.format(**names) if isinstance(value, str) and value.startswith("{") else value
