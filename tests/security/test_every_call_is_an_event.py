"""Every call leaves an event, whatever its outcome: the whole catalogue, each operation with each outcome it can have.

A refusal is tried of every operation, known to the table or not; an operation that the table lacks fails here.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from orchestrator.api.operations import BY_NAME
from orchestrator.journal.database_file import FILE_NAME
from tests.daemon.daemon_process import RunningDaemon, running
from tests.security.hostile_workspace import Answer, Line

POLICY = """
name = "asking"
default = "allow"

[[rule]]
name = "asked"
agents = ["alice"]
actions = ["write", "create", "delete", "move"]
paths = ["asked*"]
verdict = "ask"
reason = "a person's own"

[[rule]]
name = "runs"
agents = ["alice"]
actions = ["run"]
paths = ["**"]
commands = ["true"]
verdict = "allow"
"""

LINES = "".join(f"line {number}\n" for number in range(1, 31))
SEARCH = [{"search": "line 9\n", "replace": "line nine\n"}]
OTHER = [{"search": "line 9\n", "replace": "LINE 9\n"}]
NATIVE = {"client": "claude", "tool": "Read", "call": "toolu_1"}
PATCH = "--- a/{0}\n+++ b/{0}\n@@ -20 +20 @@\n-line 20\n+line twenty\n"


class Case(NamedTuple):
    """One call of one outcome; "{name}" stands for what an earlier answer gave."""

    operation: str
    outcome: str  # ok, preview, waiting, conflict, clash, still_waiting
    parameters: dict[str, Any] = {}  # noqa: RUF012  # never altered
    keeps: tuple[str, str] | None = None  # (member of the answer, name for it)
    person: bool = False

    def __str__(self) -> str:
        return f"{self.operation} {self.outcome}"


def person(operation: str, **parameters: Any) -> Case:
    return Case(operation, "ok", parameters, person=True)


CASES = (
    Case("list_files", "ok"),
    Case("find_files", "ok", {"glob": "*.txt"}),
    Case("directory_stats", "ok"),
    Case("file_info", "ok", {"path": "a.txt"}),
    Case("search_content", "ok", {"pattern": "line 9"}),
    Case("search_content", "ok", {"pattern": "nowhere at all"}),
    Case("read_file", "ok", {"path": "a.txt"}, ("version_id", "first")),
    Case("read_lines", "ok", {"path": "a.txt", "start": 2, "end": 3}),
    Case("get_overview", "ok", {"path": "a.txt"}),
    Case("read_files", "ok", {"paths": ["a.txt", "none.txt"]}),
    Case("get_excerpt", "ok", {"path": "a.txt", "line": 1}),
    Case("summarize_file", "ok", {"path": "a.txt"}),
    Case("get_briefing", "ok"),
    Case("read_symbol", "ok", {"path": "a.py", "symbol": "f"}),
    Case("read_enclosing", "ok", {"path": "a.txt", "line": 2}),
    Case("read_content", "ok", {"path": "a.txt", "pattern": "line 9"}),
    Case("read_content", "ok", {"path": "a.py", "line": 1, "mode": "semantic"}),
    Case("related_files", "ok", {"path": "a.py"}),
    Case("find_references", "ok", {"symbol": "f"}),
    Case("edit_file", "preview", {"path": "a.txt", "changes": SEARCH, "preview": True}),
    Case("edit_file", "ok", {"path": "a.txt", "changes": SEARCH}, ("change", "change")),
    Case("edit_file", "preview", {"path": "a.txt", "changes": OTHER, "base": "{first}", "preview": True}),
    Case("edit_file", "conflict", {"path": "a.txt", "changes": OTHER, "base": "{first}"}, ("conflict", "conflict")),
    Case("edit_file", "conflict", {"path": "a.txt", "changes": OTHER, "base": "{first}", "reason": "again"}),
    Case("edit_file", "preview", {"path": "asked.txt", "changes": SEARCH, "preview": True}),
    Case("edit_file", "waiting", {"path": "asked.txt", "changes": SEARCH, "request_id": "1"}, ("approval", "approval")),
    Case("edit_file", "waiting", {"path": "asked.txt", "changes": SEARCH, "request_id": "1"}),
    Case("apply_patch", "preview", {"patch": PATCH.format("b.txt"), "preview": True}),
    Case("apply_patch", "ok", {"patch": PATCH.format("b.txt")}),
    Case("apply_patch", "waiting", {"patch": PATCH.format("asked.txt")}, ("approval", "denied")),
    Case("write_file", "preview", {"path": "new.txt", "content": "x\n", "mode": "create", "preview": True}),
    Case("write_file", "ok", {"path": "new.txt", "content": "x\n", "mode": "create"}),
    Case("write_file", "waiting", {"path": "asked2.txt", "content": "x\n", "mode": "create"}),
    Case("move_file", "preview", {"source": "new.txt", "destination": "newer.txt", "preview": True}),
    Case("move_file", "ok", {"source": "new.txt", "destination": "newer.txt"}),
    Case("move_file", "waiting", {"source": "newer.txt", "destination": "asked3.txt"}),
    Case("delete_file", "preview", {"path": "newer.txt", "preview": True}),
    Case("delete_file", "ok", {"path": "newer.txt"}),
    Case("delete_file", "waiting", {"path": "asked.txt"}),
    Case("create_directory", "preview", {"path": "made", "preview": True}),
    Case("create_directory", "ok", {"path": "made"}),
    Case("create_directory", "waiting", {"path": "asked-made"}),
    Case("file_history", "ok", {"path": "a.txt"}),
    Case("get_diff", "ok", {"path": "a.txt"}),
    Case("get_diff", "ok", {"from": "@0"}),
    Case("get_diff", "ok", {"from": "current", "to": "current"}),
    Case("await_change", "still_waiting", {"id": "{approval}", "timeout_s": 0}),
    Case("await_change", "still_waiting", {"id": "{conflict}", "timeout_s": 0}),
    Case("await_change", "ok", {"id": "{change}", "timeout_s": 0}),
    Case("blame", "ok", {"path": "a.txt"}),
    Case("changes_since", "ok", {"version": "@0"}),
    Case("changes_since", "ok", {"version": "{change}"}),
    person("tree_at"),
    person("content_at", path="a.txt", at="{first}"),
    person("replay_check"),
    Case("session_status", "ok"),
    Case("begin_task", "ok", {"title": "looking"}, ("task", "task")),
    Case("end_task", "ok", {"task": "{task}"}),
    Case("reserve_paths", "ok", {"globs": ["a.txt"], "request_id": "r2"}, ("lease", "lease")),
    Case("reserve_paths", "ok", {"globs": ["a.txt"], "request_id": "r2"}),
    Case("reserve_paths", "clash", {"globs": ["held.txt"]}),
    Case("release_paths", "ok", {"lease": "{lease}"}),
    Case("stale_readers", "ok", {"path": "a.txt"}),
    Case("list_conflicts", "ok"),
    Case("list_conflicts", "ok", {"conflict": "{conflict}"}),
    Case("journal_query", "ok"),
    Case("journal_query", "ok", {"kind": "review_failed"}),
    person("journal_export"),
    person("journal_query", path="a.txt"),
    person("approvals_list"),
    person("grants_list"),
    Case("grant_revoke", "refused", {"grant": "@1", "approver": "{code}"}, person=True),
    person("approvals_show", approval="{approval}"),
    person("deny", approval="{denied}", approver="{code}"),
    person("approve", approval="{approval}", approver="{code}"),
    person("list_conflicts"),
    person("resolve_conflict", conflict="{conflict}", choice="current", approver="{code}"),
    Case("revert", "preview", {"change": "{change}", "preview": True}),
    Case("revert", "ok", {"change": "{change}"}),
    Case("rollback", "preview", {"agent": "alice", "globs": ["b.txt"], "preview": True}),
    Case("rollback", "ok", {"agent": "alice", "globs": ["b.txt"]}),
    Case("tag_file", "ok", {"path": "a.txt", "tags": ["reviewed"]}),
    Case("native_before", "ok", {**NATIVE, "kind": "read", "path": "b.txt"}),
    Case("native_after", "ok", {**NATIVE, "kind": "read", "path": "b.txt"}),
    Case("open_worktree", "ok"),
    Case("close_worktree", "refused", {"worktree": "tmp0", "drop": True}),
    Case("report_tool_call", "ok", {**NATIVE, "state": "asks", "kind": "edit", "paths": ["b.txt"]}),
    Case("report_tool_call", "ok", {**NATIVE, "state": "ends", "edits": [{"path": "b.txt", "old": "x", "new": "y"}]}),
    Case("run_command", "ok", {"argv": ["true"]}, ("command", "command")),
    Case("run_command", "waiting", {"argv": ["false"]}),
    Case("command_output", "ok", {"command": "{command}"}),
    Case("list_commands", "ok"),
    Case("stop_command", "ok", {"command": "{command}"}),
    person("list_tags"),
    person("status"),
    person("cache_clear"),
    person("agent_add", name="eve", approver="{code}"),
    person("agent_rotate", name="eve", approver="{code}"),
    person("agent_revoke", name="eve", approver="{code}"),
    person("agent_list"),
    person("approver_create"),
    person("approver_open", approver="{code}"),
    person("policy_check", text=POLICY),
    person("policy_check", text="nonsense ="),
    person("policy_show"),
    person("policy_simulate", text=POLICY),
    person("policy_explain", action="read", path="a.txt"),
    person("policy_reload", approver="{code}"),
    Case("policy_approve", "refused", {"digest": f"sha256:{0:064}", "approver": "{code}"}, person=True),
    person("journal_verify"),
    person("journal_rebuild"),
    person("workspace_check"),
    person("journal_backup", directory="{elsewhere}/backup"),
    person("journal_checkpoint"),
    person("journal_collect", dry_run=True, approver="{code}"),
    person("journal_collect", approver="{code}"),
    person("journal_redact", event="{task}", approver="{code}"),
    person("journal_archive", before="{first}", approver="{code}"),
    person("journal_archive", before="{first}", approver="{code}"),
    Case("journal_unarchive", "refused", {"file": "x", "approver": "{code}"}, person=True),
    person("approver_reset", approver="{code}"),
    person("stop"),
)


def test_every_operation_is_in_the_table() -> None:
    assert {case.operation for case in CASES} == BY_NAME.keys()


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    prepared = RunningDaemon(base)
    (prepared.state_dir / "policy.toml").write_text(POLICY)
    for name in ("a.txt", "b.txt", "asked.txt", "held.txt"):
        (prepared.workspace / name).write_text(LINES)
    (prepared.workspace / "a.py").write_text("import b\n\n\ndef f():\n    return 1\n")
    with running(base) as started:
        yield started


class Events:
    """The journal's rows, read beside the daemon."""

    def __init__(self, daemon: RunningDaemon) -> None:
        self._path = daemon.state_dir / FILE_NAME

    def head(self) -> int:
        return int(self._rows("SELECT max(seq) FROM events")[0][0])

    def after(self, head: int) -> list[dict[str, Any]]:
        """Every event since, with its tag, and the operation of the call that led to it."""
        found = list[dict[str, Any]]()
        for tag, agent, session, payload, details in self._rows(
            f"SELECT tag, agent, session, payload, details FROM events WHERE seq > {head} ORDER BY seq"
        ):
            event = json.loads(payload)
            called = json.loads(details)["operation"] if details else event.get("operation")
            found.append({**event, "tag": tag, "agent": agent, "session": session, "called": called})
        return found

    def of(self, operation: str, *, since: int) -> list[dict[str, Any]]:
        return [event for event in self.after(since) if event["called"] == operation]

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True)) as connection:
            return connection.execute(query).fetchall()


def outcome_of(answer: Answer) -> str:
    if "error" in answer.reply:
        return "refused"
    status = str(answer.result.get("status", "ok"))
    return status if status in ("preview", "waiting", "conflict", "clash", "still_waiting") else "ok"


def filled(value: Any, names: dict[str, str]) -> Any:
    return value.format(**names) if isinstance(value, str) and value.startswith("{") else value


def test_every_call_of_every_outcome_is_an_event(daemon: RunningDaemon) -> None:
    events, amiss = Events(daemon), list[str]()
    with Line(daemon.socket, agent="alice") as alice, Line(daemon.socket, person=True) as someone:
        with Line(daemon.socket, agent="bob") as bob:
            bob.done("reserve_paths", globs=["held.txt"])
        code = someone.done("approver_create")["approver_code"]
        names = {"code": code, "elsewhere": str(daemon.base)}
        for case in CASES:
            head = events.head()
            parameters = {name: filled(value, names) for name, value in case.parameters.items()}
            answer = (someone if case.person else alice).call(case.operation, **parameters)
            if case.keeps is not None:
                member, name = case.keeps
                names[name] = answer.result[member]
            if outcome_of(answer) != case.outcome:
                amiss.append(f"{case}: {answer.reply}")
            elif not events.of(case.operation, since=head):
                amiss.append(f"{case}: no event, but {[event['tag'] for event in events.after(head)]}")
    assert daemon.wait() == 0
    assert not amiss, "\n".join(amiss)


def test_every_refusal_is_an_event(daemon: RunningDaemon) -> None:
    events = Events(daemon)
    with Line(daemon.socket, agent="alice") as alice:
        for operation in BY_NAME:
            for parameters in ({"no_such_parameter": 1}, {}):
                head = events.head()
                if parameters or BY_NAME[operation].operator_only:
                    assert outcome_of(alice.call(operation, **parameters)) == "refused"
                    (refusal,) = events.after(head)
                    assert (refusal["tag"].endswith("_refused"), refusal["called"]) == (True, operation)


def test_lines_that_an_answer_shows_are_in_the_read_set(daemon: RunningDaemon) -> None:
    """Of a preview, a conflict of somebody else, and a change that waits."""
    events = Events(daemon)
    with Line(daemon.socket, agent="alice") as alice, Line(daemon.socket, agent="bob") as bob:
        first = bob.done("read_file", path="b.txt")["version_id"]
        current = bob.done("edit_file", path="b.txt", changes=SEARCH)["version_id"]
        conflict = bob.done("edit_file", path="b.txt", changes=OTHER, base=first)["conflict"]
        head = events.head()

        preview = alice.done("edit_file", path="a.txt", changes=SEARCH, preview=True)
        (shown,) = events.after(head)
        assert "line 12" in preview["diff"]
        assert (shown["tag"], shown["agent"], shown["status"]) == ("answer_shown", "alice", "preview")
        (seen,) = shown["seen"]
        assert (seen["path"], seen["ranges"], seen["total_lines"]) == ("a.txt", [[6, 12]], 30)

        assert alice.done("list_conflicts")["conflicts"][0]["current"] is not None
        by_path = {(seen["path"], seen["version"]): seen["ranges"] for seen in events.after(head)[-1]["seen"]}
        assert by_path == {("b.txt", int(first[1:])): [[1, 30]], ("b.txt", int(current[1:])): [[1, 30]]}
        assert int(conflict[1:]) in events.after(head)[-1]["ids"]

        alice.done("edit_file", path="asked.txt", changes=SEARCH)
        assert [event["tag"] for event in events.after(head)[-2:]] == ["approval_requested", "answer_shown"]

        reads = alice.done("session_status")["recent_reads"]
        assert [(read["path"], read["lines"]) for read in reads] == [
            ("asked.txt", "6-12"),
            ("b.txt", "1-30"),
            ("a.txt", "6-12"),
        ]


def test_polling_leaves_one_event_for_each_thing_that_it_shows(daemon: RunningDaemon) -> None:
    events = Events(daemon)
    with Line(daemon.socket, agent="alice") as alice:
        waits = alice.done("edit_file", path="asked.txt", changes=SEARCH)["approval"]
        head = events.head()
        for _ in range(3):
            alice.done("await_change", id=waits, timeout_s=0)
            for operation in ("approvals_list", "agent_list"):
                with Line(daemon.socket, person=True) as person:
                    person.done(operation)
        answers = [event["called"] for event in events.after(head) if event["tag"] == "answer_shown"]
        assert not [event for event in events.after(head) if event["tag"].startswith("session_")]
        assert sorted(answers) == ["agent_list", "approvals_list", "await_change"]
        head = events.head()
        alice.done("delete_file", path="asked.txt")
        with Line(daemon.socket, person=True) as person:
            assert person.done("approvals_list")["total"] == 2
        assert [event["called"] for event in events.after(head) if event["called"]][-1] == "approvals_list"


LOOKS: tuple[tuple[str, dict[str, str]], ...] = (
    ("journal_query", {}),
    ("file_history", {"path": "a.txt"}),
    ("blame", {"path": "a.txt"}),
    ("list_files", {}),
    ("find_files", {"glob": "*.txt"}),
    ("file_info", {"path": "a.txt"}),
    ("changes_since", {"version": "@0"}),
    ("stale_readers", {"path": "a.txt"}),
    ("list_conflicts", {}),
    ("subscribe", {}),
)


def test_a_persons_look_opens_no_session_and_lines_do(daemon: RunningDaemon) -> None:
    events = Events(daemon)
    with Line(daemon.socket, agent="alice") as alice:
        alice.done("edit_file", path="a.txt", changes=SEARCH)
        head = events.head()
        for operation, parameters in LOOKS:
            with Line(daemon.socket, person=True) as person:
                person.done(operation, **parameters)
        found = [
            event for event in events.after(head) if event["tag"] != "files_found"
        ]  # the scan's, in the background
        assert not [event for event in found if event["tag"].startswith("session_")]
        assert len(found) == len(LOOKS)
        with Line(daemon.socket, person=True) as person:
            person.done("read_file", path="a.txt")
            person.done("file_info", path="a.txt")
            tags = [event["tag"] for event in events.after(head + len(found))]
            assert tags == ["session_opened", "file_read", "metadata_read"]


def test_a_diff_of_the_tree_is_one_event(daemon: RunningDaemon) -> None:
    events = Events(daemon)
    with Line(daemon.socket, agent="alice") as alice:
        for number in range(8):
            alice.done("write_file", path=f"n{number}.txt", content="x\n", mode="create")
        head = events.head()
        assert len(alice.done("get_diff", from_="@0")["files"]) == 13
        (shown,) = events.after(head)
        assert (shown["tag"], len(shown["seen"])) == ("diff_shown", 13)
