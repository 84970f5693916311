"""No answer is larger than its budget, whatever file it is about: on the socket, where no client's limit cuts it.

The whole catalogue is fed with the worst files; an operation that the table lacks fails here.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from orchestrator.api.operations import BY_NAME
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.raw_socket import Talk

MOST_BYTES = 64_000
"""Of an answer with parameters by default, notices included."""

PAGES = {
    "read_lines": 300_000,  # 200 lines of 1,000 characters
    "read_file": 100_000,
    "read_files": 200_000,
    "search_content": 150_000,  # 20 hits of five lines of 1,000 characters
    "list_files": 300_000,  # 200 entries whose paths have 500 bytes
    "find_files": 300_000,
    "journal_query": 1_200_000,
    "get_diff": 90_000,  # 20,000 tokens
    "rollback": 200_000,  # files with their diffs, and all that others did later
    "list_conflicts": 100_000,
    "changes_since": 300_000,
    "content_at": 6_000_000,  # a piece of 4 MiB, for programs
    "tree_at": 600_000,  # 1,000 files
    "journal_export": 3_000_000,  # 1,000 events
}
"""What asks for more, and for how much."""

LONG = "".join(random.Random(7).choices("abcdefgh ,;()=", k=2 * 1024 * 1024))
MANY = "".join(f"value {number} = {number * 7}\n" for number in range(40_000))
ALL_CHANGED = MANY.replace("value", "VALUE")
REGIONS = "".join(f"region {number}\nbetween\nbetween\nbetween\n" for number in range(3_000))
NAME = "n" * 240
CHANGED = LONG[:1_000_000] + "HERE" + LONG[1_000_000:]
SPLIT = "".join(f"{LONG[at : at + 4000]}\n" for at in range(0, len(LONG), 4000))


class Asking:
    """Calls one after the other, and how large their answers are."""

    def __init__(self, daemon: RunningDaemon) -> None:
        self._talks = {name: Talk(daemon, name) for name in ("alice", "bob", "")}
        self.sizes: dict[str, int] = {}
        self.names: dict[str, str] = {}

    def __call__(self, operation: str, *, by: str = "alice", **params: Any) -> dict[str, Any]:
        self._talks[by].call(operation, **params)
        answer = self._talks[by].answer()
        size = len(json.dumps(answer, ensure_ascii=False).encode())
        self.sizes[operation] = max(size, self.sizes.get(operation, 0))
        about = {name: str(value)[:60] for name, value in params.items()}
        assert size <= PAGES.get(operation, MOST_BYTES), f"{operation} {about}: {size} bytes"
        error = answer.get("error", {}).get("data", {})
        assert error.get("code") not in ("internal", "answer_too_large"), error
        result: dict[str, Any] = answer.get("result", error)
        return result

    def close(self) -> None:
        for talk in self._talks.values():
            talk.close()


@pytest.fixture
def worst(base: Path) -> Iterator[RunningDaemon]:
    folder = base / "work" / NAME
    folder.mkdir(parents=True)
    texts = {"long.txt": LONG, "split.txt": SPLIT, "many.txt": MANY, "regions.txt": REGIONS, "small.txt": "x\n"}
    for name, text in texts.items():
        (base / "work" / name).write_text(text)
    for number in range(300):
        (folder / f"{NAME}{number}").write_text("x\n")
    with running(base) as daemon:
        yield daemon


def test_no_answer_is_larger_than_its_budget(worst: RunningDaemon) -> None:
    with closing(Asking(worst)) as ask:
        feed(ask)
    assert BY_NAME.keys() - ask.sizes.keys() == {"stop"}, "these operations are not in the table"


def feed(ask: Asking) -> None:
    """Every operation, with what makes its answer long."""
    files = ("long.txt", "split.txt", "many.txt", "regions.txt")
    versions = {path: ask("file_info", path=path)["version_id"] for path in files}
    for path in files:
        ask("read_file", path=path)
        ask("read_lines", path=path)
        ask("read_file", by="bob", path=path)
    # changes of all kinds, with previews before them
    for path, text, other in (
        ("long.txt", CHANGED, LONG[:-9] + "THERE\n"),
        ("split.txt", SPLIT.replace(";", ","), SPLIT.replace(";", ".")),
        ("many.txt", ALL_CHANGED, MANY.replace("value", "other")),
        ("regions.txt", REGIONS.replace("region", "place"), REGIONS.replace("region", "area")),
    ):
        change = {"path": path, "content": text, "mode": "truncate", "base": versions[path]}
        assert ask("write_file", **change, preview=True)["status"] == "preview"
        applied = ask("write_file", **change)
        assert applied["status"] == "applied", applied
        ask("await_change", id=applied["change"], timeout_s=0)
        clash = ask("write_file", by="bob", **{**change, "content": other})
        assert clash["status"] == "conflict", clash
        ask.names[path] = clash["conflict"]
        ask("await_change", by="bob", id=clash["conflict"], timeout_s=0)
        for more in ({}, {"context_lines": 0}, {"from": "@start"}, {"max_tokens": 10_000}):
            ask("get_diff", path=path, **more)
        for operation in ("blame", "file_history", "stale_readers", "file_info", "get_overview", "related_files"):
            ask(operation, path=path)
        for operation in ("get_excerpt", "summarize_file"):
            ask(operation, path=path)
        ask("read_symbol", path=path, symbol="a" * 200)
        ask("read_enclosing", path=path, line=1)
        for mode in ("lines", "semantic", "tail", "head", "enclosing"):
            ask("read_content", path=path, mode=mode, **({} if mode in ("tail", "head") else {"pattern": "e"}))
        ask("revert", change=applied["change"], preview=True)
        ask.names["change"] = applied["change"]
    ask("get_diff", **{"from": "@start"})
    refused(ask, files)
    listed(ask, files)
    operated(ask)


def operated(ask: Asking) -> None:
    """What people ask for, of the worst names and contents, or of what is not there."""
    own = {"approver": str(ask("approver_create", by="")["approver_code"])}
    plain = "status cache_clear approvals_list agent_list grants_list policy_show policy_reload approver_open tree_at"
    checks = "journal_checkpoint journal_verify journal_rebuild workspace_check replay_check journal_export list_tags"
    for operation in f"{plain} {checks}".split():
        ask(operation, by="")
    for operation in ("approvals_show", "deny", "approve"):
        ask(operation, by="", approval="@1", **({} if operation == "approvals_show" else own))
    for operation in ("agent_add", "agent_rotate", "agent_revoke"):
        ask(operation, by="", name="carol", **own)
    for operation in ("policy_check", "policy_simulate"):
        ask(operation, by="", text='name = "x"\n' + f"# {NAME}\n" * 200)
    ask("run_command", argv=["cat", "long.txt"])
    ask("list_commands")
    for operation in ("command_output", "stop_command"):
        ask(operation, command="@1")
    native = {"client": NAME, "tool": NAME, "call": "1", "path": "long.txt"}
    ask("native_before", **native, kind="edit", changes=[{"old": "no such text", "new": "x"}])
    ask("native_after", **native, kind="edit")
    ask("open_worktree")
    ask("close_worktree", worktree="tmp0")
    edits = [{"path": "long.txt", "old": "no such text", "new": "x"}]
    ask("report_tool_call", client=NAME, tool=NAME, call="2", state="ends", edits=edits)
    ask("content_at", by="", path="many.txt", at=ask("status", by="")["head"])
    ask("grant_revoke", by="", grant="@1", **own)
    ask("policy_explain", by="", action="write", path=f"{NAME}/{NAME}1")
    ask("policy_approve", by="", digest="sha256:" + "0" * 64, **own)
    ask("journal_redact", by="", event="@1", **own)
    ask("journal_backup", by="", directory=f"/{NAME}/{NAME}")
    ask("journal_archive", by="", before="@2", **own)
    ask("journal_unarchive", by="", file=NAME, **own)
    ask("journal_collect", by="", **own)
    ask("approver_reset", by="", **own)


def refused(ask: Asking, files: tuple[str, ...]) -> None:
    """What shows lines where a change does not fit, or a text is found."""
    for search in ("e", LONG[5000:9000] + "no", LONG[:-20] + "no", "value 1", "VALUE 1"):
        for path in files:
            ask("edit_file", path=path, changes=[{"search": search, "replace": "x"}], preview=True)
    ask("edit_file", path="many.txt", changes=[{"start": 1, "end": 35_000, "expect": "x", "replace": "y"}])
    ask("edit_file", path="long.txt", changes=[{"start": 1, "end": 1, "expect": "x", "replace": "y"}])
    patch = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-{1}\n+x\n"
    for path, line in (("long.txt", LONG[:-1]), ("split.txt", LONG[:3999])):
        ask("apply_patch", patch=patch.format(path, line + "no"))
    for path in ("long.txt", "split.txt"):
        for found in ("HERE", "abc", "="):
            ask("search_content", pattern=found, path=path)
    ask("search_content", pattern="e")
    ask("read_files", paths=[*files])
    ask("directory_stats")
    ask("find_references", symbol="value")


def listed(ask: Asking, files: tuple[str, ...]) -> None:
    """What lists names, events and what waits."""
    ask("list_files", recursive=True)
    ask("find_files", glob="n*")
    ask("tag_file", path=NAME, tags=[f"{number:040}" for number in range(20)])
    for path in files:
        shown = ask("list_conflicts", conflict=ask.names[path])
        assert shown["conflicts"][0]["regions"]
    ask("list_conflicts")
    assert ask("move_file", source=NAME, destination="moved").get("code", "") != "internal"
    ask("delete_file", path="small.txt")
    ask("create_directory", path=f"made/{NAME}")
    ask("session_status")
    ask("get_briefing")
    task = ask("begin_task", title="t" * 500)["task"]
    ask("end_task", task=task, outcome="o" * 2000)
    lease = ask("reserve_paths", globs=[f"{NAME}{number}" for number in range(40)])["lease"]
    ask("reserve_paths", by="bob", globs=[f"{NAME}{number}" for number in range(40)])
    ask("release_paths", lease=lease)
    ask("changes_since", version="@0")
    ask("journal_query", limit=500)
    ask("resolve_conflict", conflict=ask.names["long.txt"], choice="current")
    for paths in ([], ["*.txt"]):
        ask("rollback", agent="alice", globs=paths, preview=True)


def test_a_rollback_lists_the_first_of_many_and_how_many_more(worst: RunningDaemon) -> None:
    """300 files whose names have 480 bytes: all of them in conflict with what bob did later, each a dependency."""
    paths = [f"{NAME}/{NAME}{number}" for number in range(300)]
    patch = "--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-{1}\n+{2}\n"
    with closing(Asking(worst)) as ask:
        ask("apply_patch", patch="".join(patch.format(path, "x", "alice") for path in paths))
        ask("read_files", by="bob", paths=paths[:20])
        done = ask("apply_patch", by="bob", patch="".join(patch.format(path, "alice", "bob") for path in paths[:290]))
        assert done["status"] == "applied", done
        for preview in (True, False):
            answer = ask("rollback", by="bob", agent="alice", preview=preview)
            for name, total in (("files", 300), ("dependencies", 290)):
                assert answer[f"more_{name}"] == total - len(answer[name]) > 0, name
            assert {item["status"] for item in answer["files"]} == {"conflict"}, "those come first"
            assert "globs" in answer["rest"] or "get_diff" in answer["rest"]


def test_an_edit_of_a_minified_file_answers_with_what_changed(base: Path) -> None:
    """Each of these answers had the whole line twice."""
    line = LONG[: 300 * 1024]
    old, middle = line[100_000:100_040], line[100_030:100_060]
    (base / "work").mkdir()
    (base / "work" / "app.min.js").write_text(line)
    with running(base) as daemon, closing(Asking(daemon)) as ask:
        base_version = ask("read_file", path="app.min.js")["version_id"]
        ask("read_file", by="bob", path="app.min.js")
        edit = {"path": "app.min.js", "changes": [{"search": old, "replace": "HERE"}], "base": base_version}
        preview = ask("edit_file", **edit, preview=True)
        applied = ask("edit_file", **edit)
        assert applied["status"] == "applied"
        other = {**edit, "changes": [{"search": middle, "replace": "THERE"}]}
        conflict = ask("edit_file", by="bob", **other)
        assert conflict["status"] == "conflict"
        shown = ask("list_conflicts", by="bob", conflict=conflict["conflict"])["conflicts"][0]
        diff = ask("get_diff", path="app.min.js")
        back = ask("revert", change=applied["change"])
        for answer in (preview, diff, back):
            assert "HERE" in answer["diff"]
            assert old in answer["diff"]
        for answer in (conflict, shown):
            assert "THERE" in answer["diff"]
        assert max(ask.sizes.values()) < 40_000
