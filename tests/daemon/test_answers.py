"""Answers as they go out: nothing in them that says nothing, and what a model reads of a change is short."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.api.operation import SHORT_BYTES
from orchestrator.core.text.answer_space import estimate_tokens
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.raw_socket import Talk
from tests.docs.mcp_stdio import Transport

TEXT = "".join(f"line {n}\n" for n in range(1, 41))
FILES = 300

RECORDED = {"arguments", "details"}
"""What a call was given, and what a refusal said: as it is in the journal."""


def sayless(value: Any, at: str = "") -> list[str]:
    """Where a document holds null, false or something empty as a member."""
    found = []
    if isinstance(value, dict):
        for name, member in value.items():
            if name == "exists":
                continue  # of an absent file it is all that there is to say
            if member is None or member is False or member in ("", [], {}):
                found.append(f"{at}.{name}")
            elif name not in RECORDED:
                found += sayless(member, f"{at}.{name}")
    elif isinstance(value, list):
        found = [where for n, item in enumerate(value) for where in sayless(item, f"{at}[{n}]")]
    return found


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("list_files", {"recursive": True}),
    ("find_files", {"glob": "*.txt"}),
    ("file_info", {"path": "a.txt"}),
    ("file_info", {"path": "none.txt"}),
    ("search_content", {"pattern": "line 7"}),
    ("search_content", {"pattern": "nowhere"}),
    ("read_file", {"path": "a.txt"}),
    ("read_file", {"path": "empty.txt"}),
    ("read_lines", {"path": "a.txt", "end": 3}),
    ("edit_file", {"path": "a.txt", "changes": [{"search": "line 7\n", "replace": "seven\n"}], "preview": True}),
    ("edit_file", {"path": "a.txt", "changes": [{"search": "line 7\n", "replace": "seven\n"}]}),
    ("edit_file", {"path": "a.txt", "changes": [{"search": "no such", "replace": "x"}]}),
    ("write_file", {"path": "n.txt", "content": "", "mode": "create"}),
    ("create_directory", {"path": "d"}),
    ("move_file", {"source": "n.txt", "destination": "m.txt"}),
    ("delete_file", {"path": "m.txt"}),
    ("directory_stats", {}),
    ("get_briefing", {}),
    ("file_history", {"path": "a.txt"}),
    ("file_history", {"path": "m.txt"}),
    ("get_diff", {"path": "a.txt"}),
    ("get_diff", {"path": "a.txt", "from": "current"}),
    ("get_diff", {}),
    ("rollback", {"globs": ["a.txt"], "agent": "alice", "preview": True}),
    ("session_status", {}),
    ("begin_task", {"title": "sweep"}),
    ("list_conflicts", {}),
    ("journal_query", {}),
    ("blame", {"path": "a.txt"}),
    ("changes_since", {"version": "@start"}),
    ("reserve_paths", {"globs": ["src"]}),
    ("stale_readers", {"path": "a.txt"}),
    ("edit_fil", {}),
    ("edit_file", {"pth": "a.txt"}),
]


@pytest.mark.parametrize("transport", ["rpc", "mcp"])
def test_no_member_says_nothing(daemon: RunningDaemon, transport: Any) -> None:
    (daemon.workspace / "a.txt").write_text(TEXT)
    (daemon.workspace / "empty.txt").write_text("")
    talk = Talk(daemon, "alice", transport)
    for name, params in CALLS:
        talk.call(name, **params)
        reported = talk.answer()
        if transport == "rpc":
            said = reported["result"] if "result" in reported else reported["error"]["data"]
        else:
            text = reported["result"]["content"][0]["text"]
            said = reported["result"].get("structuredContent") or (json.loads(text) if text.startswith("{") else {})
        assert sayless(said) == [], name
    talk.socket.close()


def answered(transport: Transport, name: str, **params: Any) -> dict[str, Any]:
    """The answer to a call that is applied or shown, as a client hands it to its model."""
    answer = transport.call(name, params)
    assert not answer.is_error, answer.texts
    reported: dict[str, Any] = json.loads(answer.texts[0])
    assert answer.structured == reported
    assert len(answer.texts) == 1
    assert len(answer.texts[0].encode()) <= SHORT_BYTES
    return reported


def test_a_clean_change_is_answered_in_a_hundred_tokens(daemon: RunningDaemon) -> None:
    """Of what was sent nothing comes back but how many lines it added and removed, and the new version."""
    (daemon.workspace / "src" / "service").mkdir(parents=True)
    (daemon.workspace / "src" / "service" / "accounts.py").write_text(TEXT)
    path = "src/service/accounts.py"
    patch = f"--- a/{path}\n+++ b/{path}\n@@ -19,3 +19,3 @@\n line 19\n-line 20\n+twenty\n line 21\n"
    with Transport(daemon, "alice") as transport:
        for name, params, added, removed in (
            ("edit_file", {"changes": [{"search": "line 7\nline 8\n", "replace": "seven\neight\nnine\n"}]}, 3, 2),
            ("apply_patch", {"patch": patch}, 1, 1),
            ("write_file", {"content": "last\n", "mode": "append"}, 1, 0),
            ("write_file", {"content": TEXT, "mode": "truncate"}, 3, 5),
        ):
            transport.call("read_file", {"path": path})
            reported = answered(transport, name, **({} if name == "apply_patch" else {"path": path}), **params)
            assert (reported["status"], reported["success"], reported["rung"]) == ("applied", True, "current"), reported
            assert reported["version_id"].startswith("@")
            assert "diff" not in reported
            assert estimate_tokens(json.dumps(reported, separators=(",", ":"))) <= 100, reported
            assert (reported.get("added", 0), reported.get("removed", 0)) == (added, removed), name


def test_a_change_that_came_out_otherwise_shows_the_difference(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.txt").write_text(TEXT)
    with Transport(daemon, "alice") as alice, Transport(daemon, "bob") as bob:
        alice.call("read_file", {"path": "a.txt"})
        bob.call("read_file", {"path": "a.txt"})
        bob.call("edit_file", {"path": "a.txt", "changes": [{"search": "line 2\n", "replace": "two\nand more\n"}]})
        answer = alice.call("edit_file", {"path": "a.txt", "changes": [{"search": "line 30\n", "replace": "thirty\n"}]})
        reported = json.loads(answer.texts[0])
        assert reported["rung"] == "shifted"
        assert "-line 30\n+thirty\n" in reported["diff"]
        undone = answered(alice, "revert", change=reported["change"])
        assert "-thirty\n+line 30\n" in undone["diff"]


def test_many_files_are_answered_in_few_bytes(daemon: RunningDaemon) -> None:
    """Previews, status and a file's history name how to see the rest, and not each of the files."""
    names = [f"many/file{number:03}.txt" for number in range(FILES)]
    patch = "".join(f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+{name}\n" for name in names)
    folder = daemon.workspace / "many"
    with Transport(daemon, "alice") as transport:
        assert answered(transport, "apply_patch", patch=patch)["cut"]["paths"].endswith(f" of {FILES}")
        assert answered(transport, "delete_file", path="many", preview=True)["cut"]
        preview = answered(transport, "rollback", agent="alice", preview=True)
        assert preview["cut"]
        assert "globs" in preview["next"]
        gone = answered(transport, "rollback", agent="alice")
        assert (gone["status"], folder.exists()) == ("applied", False)
        assert answered(transport, "revert", change=gone["change"])["status"] == "applied"
        assert len(list(folder.iterdir())) == FILES
        status = answered(transport, "session_status")
        assert "uncommitted_changes" in str(status["cut"])
        assert status["next"] == "journal_query(), of the full toolset"  # this connection has the core set alone
