"""No answer of any operation shows an agent the content, or a hash, of a file that policy does not let it read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest

from orchestrator.api.operations import OPERATIONS
from orchestrator.clients.python import Replacement
from orchestrator.core.content import digest_of
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.raw_socket import Talk

pytestmark = pytest.mark.anyio

POLICY = """
name = "kept"
default = "allow"

[[rule]]
name = "the diary"
agents = ["alice"]
actions = ["read", "search"]
paths = ["kept.txt"]
verdict = "{verdict}"
reason = "a person's own"

[[rule]]
name = "removals"
agents = ["carol"]
actions = ["delete"]
paths = ["*"]
verdict = "ask"
reason = "removals are rare"
"""

PATH = "kept.txt"
OLD = "".join(f"{line} quokka\n" for line in ("dear diary", "monday", "tuesday", "wednesday", "thursday", "friday"))
EDITED = OLD.replace("monday quokka", "monday quokka again")
NOW = EDITED.replace("friday quokka", "friday quokka at last")
KEPT = ("quokka", *(digest_of(text.encode()).removeprefix("sha256:") for text in (OLD, EDITED, NOW)))
"""What no answer may hold; the calls themselves do not say the word."""
NATIVE = {"client": "claude", "tool": "Edit", "call": "toolu_1", "path": PATH}
CALL = {"client": "claude", "tool": "Edit", "call": "toolu_2"}

CALLS: dict[str, list[dict[str, Any]]] = {
    "list_files": [{}],
    "find_files": [{"glob": "*"}],
    "directory_stats": [{}, {"globs": [PATH]}],
    "file_info": [{"path": PATH}],
    "search_content": [{"pattern": "d"}, {"pattern": "d", "path": PATH}, {"pattern": "d", "globs": [PATH]}],
    "read_file": [{"path": PATH}, {"path": PATH, "at": "{first}"}, {"path": PATH, "at": "{last}"}],
    "read_lines": [{"path": PATH}, {"path": PATH, "at": "{first}"}],
    "get_overview": [{"path": PATH}, {"path": PATH, "changed_since": "{first}"}, {"path": PATH, "symbol": "dear"}],
    "read_symbol": [{"path": PATH, "symbol": "dear"}],
    "read_enclosing": [{"path": PATH, "line": 2}],
    "read_content": [{"path": PATH}, {"path": PATH, "pattern": "day", "mode": "semantic"}],
    "related_files": [{"path": PATH}],
    "read_files": [{"paths": [PATH]}, {"paths": [PATH, "a.txt"]}],
    "get_excerpt": [{"path": PATH}, {"path": PATH, "pattern": "day"}, {"path": PATH, "symbol": "dear"}],
    "summarize_file": [{"path": PATH}],
    "get_briefing": [{}],
    "find_references": [{"symbol": "day"}, {"symbol": "day", "path": PATH}, {"symbol": "monday", "by": "word"}],
    "edit_file": [
        {"path": PATH, "changes": [{"search": "monday q", "replace": "x"}]},
        {"path": PATH, "changes": [{"search": "mondey", "replace": "x", "fuzzy": True}], "preview": True},
        {"path": PATH, "changes": [{"search": "day", "replace": "x"}]},
        {"path": PATH, "changes": [{"start": 2, "end": 3, "expect": "nothing", "replace": "x"}]},
        {"path": PATH, "changes": [{"search": "monday", "replace": "x"}], "base": "{first}"},
    ],
    "apply_patch": [
        {"patch": f"--- a/{PATH}\n+++ b/{PATH}\n@@ -1,2 +1,2 @@\n dear\n-monday\n+x\n"},
        {"patch": f"--- a/{PATH}\n+++ b/{PATH}\n@@ -2 +2 @@\n-monday\n+x\n", "preview": True, "base": "{first}"},
    ],
    "write_file": [
        {"path": PATH, "content": "x\n", "mode": "create"},
        {"path": PATH, "content": "x\n", "mode": "truncate"},
        {"path": PATH, "content": "x\n", "mode": "truncate", "base": "{last}", "preview": True},
        {"path": PATH, "content": "x\n", "mode": "append", "preview": True},
    ],
    "move_file": [
        {"source": PATH, "destination": "moved.txt", "preview": True},
        {"source": "open.txt", "destination": PATH, "preview": True},
    ],
    "delete_file": [{"path": PATH, "preview": True}],
    "create_directory": [{"path": PATH}],
    "file_history": [{"path": PATH}],
    "get_diff": [
        {"path": PATH},
        {"path": PATH, "from": "{first}", "to": "{last}"},
        {"path": PATH, "from": "@0", "to": "working"},
        {"from": "@0", "to": "working"},
        {"from": "{first}", "to": "{last}"},
    ],
    "revert": [{"change": "{last}", "preview": True}],
    "await_change": [{"id": id, "timeout_s": 0} for id in ("{conflict}", "{approval}", "{last}")],
    "rollback": [{"agent": "bob", "preview": True}, {"globs": [PATH], "preview": True}],
    "blame": [{"path": PATH}, {"path": PATH, "at": "{first}"}],
    "changes_since": [{"version": "@0"}, {"version": "@0", "globs": [PATH]}],
    "tree_at": [{"contents": True}, {"contents": True, "at": "{last}"}],
    "content_at": [{"path": PATH, "at": "{first}"}, {"path": PATH, "at": "{last}"}],
    "replay_check": [{}],
    "session_status": [{}],
    "begin_task": [{"title": "looking"}],
    "end_task": [{"task": "{first}"}],
    "reserve_paths": [{"globs": [PATH], "ttl_s": 1}],
    "release_paths": [{"lease": "{first}"}],
    "stale_readers": [{"path": PATH}],
    "list_conflicts": [{}, {"conflict": "{conflict}"}],
    "resolve_conflict": [
        {"conflict": "{conflict}", "choice": "current"},
        {"conflict": "{conflict}", "choice": "content", "content": "x\n", "on": "{last}"},
    ],
    "tag_file": [{"path": PATH, "tags": ["diary"]}, {"path": PATH, "tags": ["diary"], "remove": True}],
    "native_before": [
        {**NATIVE, "kind": "read"},
        {**NATIVE, "kind": "edit", "changes": [{"old": "mondey quokka", "new": "x"}]},
        {**NATIVE, "kind": "write", "content": "x\n"},
        {**NATIVE, "kind": "patch", "patch": f"*** Update File: {PATH}\n@@\n-mondey quokka\n+x"},
    ],
    "native_after": [{**NATIVE, "kind": "read"}, {**NATIVE, "kind": "edit"}, {**NATIVE, "kind": "write"}],
    "open_worktree": [{}],
    "close_worktree": [{"worktree": "tmp0"}],
    "report_tool_call": [
        {**CALL, "state": "asks", "kind": "edit", "paths": [PATH]},
        {**CALL, "state": "ends", "edits": [{"path": PATH, "old": "x", "new": "y"}]},
    ],
    "run_command": [{"argv": ["true"]}, {"argv": ["cat", PATH], "mode": "scratch"}],
    "command_output": [{"command": "{first}"}],
    "list_commands": [{}],
    "stop_command": [{"command": "{first}"}],
    "list_tags": [{}, {"path": PATH}],
    "status": [{}],
    "cache_clear": [{}],
    "approvals_list": [{}],
    "approvals_show": [{"approval": "{approval}"}],
    "approve": [{"approval": "{approval}"}],
    "deny": [{"approval": "{approval}"}],
    "grants_list": [{}],
    "grant_revoke": [{"grant": "{approval}"}],
    "agent_add": [{"name": "eve"}],
    "agent_rotate": [{"name": "eve"}],
    "agent_revoke": [{"name": "eve"}],
    "agent_list": [{}],
    "approver_create": [{}],
    "approver_open": [{}],
    "approver_reset": [{}],
    "policy_check": [{"text": ""}],
    "policy_show": [{}],
    "policy_explain": [{"action": "read", "path": PATH}],
    "policy_simulate": [{"text": 'name = "x"\ndefault = "deny"\n'}],
    "policy_reload": [{}],
    "policy_approve": [{"digest": "sha256:" + "0" * 64}],
    "journal_query": [{}, {"path": PATH}, {"session": "{session}"}],
    "journal_export": [{}, {"path": PATH}, {"session": "{session}"}],
    "journal_redact": [{"event": "{first}"}, {"blob": "{first}", "path": PATH}],
    "journal_backup": [{"directory": "/nowhere"}],
    "journal_archive": [{"before": "{first}"}],
    "journal_unarchive": [{"file": "x"}],
    "journal_collect": [{"dry_run": True}],
    "journal_checkpoint": [{}],
    "journal_verify": [{}],
    "journal_rebuild": [{}],
    "workspace_check": [{}],
}
NEVER_CALLED = {"stop"}


def test_every_operation_is_in_the_table() -> None:
    assert {*CALLS, *NEVER_CALLED} == {operation.name for operation in OPERATIONS}


@pytest.mark.parametrize("transport", ["rpc", "mcp"])
@pytest.mark.parametrize("verdict", ["ask", "deny"])
async def test_no_answer_shows_it(base: Path, verdict: str, transport: Literal["rpc", "mcp"]) -> None:
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text(POLICY.format(verdict=verdict))
    (daemon.workspace / PATH).write_text(OLD)
    (daemon.workspace / "open.txt").write_text("for all\n")
    with running(base):
        names = await what_bob_and_carol_did(daemon)
        talk = Talk(daemon, "alice", transport)
        shown: list[tuple[str, dict[str, Any], str]] = []
        for operation, calls in CALLS.items():
            for call in calls:
                parameters = {name: named(value, names) for name, value in call.items()}
                talk.call(operation, **parameters)
                answer = json.dumps(talk.answer(), ensure_ascii=False)
                if any(text in answer for text in KEPT):
                    shown.append((operation, parameters, answer))
        talk.close()
    assert shown == []


async def what_bob_and_carol_did(daemon: RunningDaemon) -> dict[str, str]:
    """Two changes, a conflict and a request for an approval; the names that calls use for them."""
    async with daemon.client("bob") as bob, daemon.client("carol") as carol:
        read = await bob.read_file(PATH, line_numbers=False)
        assert (read.text, read.content_hash) == (OLD, digest_of(OLD.encode()))
        first = read.version_id
        await bob.edit_file(PATH, [Replacement(search="monday quokka", replace="monday quokka again")])
        last = await bob.edit_file(PATH, [Replacement(search="friday quokka", replace="friday quokka at last")])
        stale = [Replacement(search="friday quokka", replace="friday quokka, perhaps")]
        conflict = (await carol.edit_file(PATH, stale, base=first)).conflict
        approval = (await carol.delete_file(PATH)).approval
        assert last.version_id is not None
        assert conflict is not None
        assert approval is not None
        names = {"first": first, "last": last.version_id, "conflict": conflict, "approval": approval}
        return names | {"session": bob.session}


def named(value: Any, names: dict[str, str]) -> Any:
    return value.format(**names) if isinstance(value, str) and value.startswith("{") else value
