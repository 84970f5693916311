"""The command line against a daemon in a thread: what it sends, shows, and ends with."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from orchestrator.api import administration as a
from orchestrator.api import results as r
from orchestrator.api.conflicts import ConflictInfo, Conflicts
from orchestrator.api.framing import Refusal
from orchestrator.api.history import TreeEntry
from orchestrator.api.journal_checks import WorkspaceReport
from orchestrator.api.journal_operations import JournalPage
from orchestrator.api.policies import PolicyReport
from orchestrator.clients.cli import context, main, orchestrator
from orchestrator.clients.cli.new_folder import NewFolder
from orchestrator.core.policy.tables import Problem
from orchestrator.version import VERSION
from tests.clients.fakes import RpcDaemon

CODE = "blue-goat-17"


def change(status: Any, **more: Any) -> r.ChangeAnswer:
    return r.ChangeAnswer(status=status, success=status == "applied", message="so it is", **more)


def file_text(text: str, *, truncated: bool = False) -> r.FileText:
    end = text.count("\n")
    return r.FileText(
        path="a.py",
        version_id="@3",
        start=1,
        end=end,
        total_lines=end + 7 if truncated else end,
        text=text,
        encoding="utf-8",
        eol="lf",
        content_hash="sha256:" + "0" * 64,
        truncated=truncated,
    )


STATUS = a.StatusInfo(
    pid=4711,
    version="0.1",
    socket="/run/s.sock",
    workspace="/w",
    workspace_id="1d",
    state_dir="/state",
    head="@9",
    sessions=(
        a.SessionLine(session="s-1", agent="ev\x1bil", agent_class="cloud", asserted=True, client="x", open=True),
    ),
    approvals=2,
    conflicts=0,
    health=a.Health(
        state="ok",
        baseline="done",
        amiss=("plugin tags: failed, no installed package has it", "run `orchestrator up` in a terminal"),
    ),
    policy="default",
    approver="missing",
)
CONFLICT = ConflictInfo(
    conflict="@7",
    path="a.py",
    agent="a",
    session="s-1",
    task=None,
    since=0,
    operation="edit_file",
    reason="both changed line 3",
    base_version="@1",
    current_version="@5",
    diff="@@ -1 +1 @@\n-a\n+b\n",
)
ANSWERS: dict[str, r.Result | Refusal] = {
    "status": STATUS,
    "stop": r.Done(message="the daemon ends"),
    "read_file": file_text("\tx = 1\n\x1b[2Jy\u202e\n"),
    "edit_file": change("applied", version_id="@5", diff="@@ -1 +1 @@\n-a\n+b\n", warnings=("mind the step",)),
    "apply_patch": change("conflict", conflict="@7", shown="3\tnow\x00\n"),
    "write_file": change("waiting", approval="@6"),
    "revert": change("preview", would_be="waiting"),
    "list_conflicts": Conflicts(conflicts=(CONFLICT,), total=1),
    "resolve_conflict": change("dropped"),
    "approve": change("applied", version_id="@8"),
    "agent_add": a.AgentToken(name="bot", agent_class="review", token="secret"),
    "approver_create": a.ApproverCode(approver_code=CODE),
    "policy_check": PolicyReport(source="p.toml", ok=False, problems=(Problem(line=3, key="rules", message="what?"),)),
    "get_diff": Refusal(code="denied", message="a rule says\x07 no", hint="Ask a person."),
    "workspace_check": WorkspaceReport(ok=True, files=12, differences=()),
    "list_files": r.Listing(
        path=".",
        entries=(
            r.Entry(type="DirectoryEntry", name="src", path="src", size=0, last_modified=0),
            r.Entry(type="FileEntry", name="a", path="a", size=12345, last_modified=0),
        ),
        total=9,
        truncated=True,
        cursor="c1",
    ),
    "search_content": r.SearchResult(
        hits=(
            r.Hit(path="a", line=2, text="hit", before=("b",), after=("c",)),
            r.Hit(path="a", line=9, text="hit", before=("d",), after=("e",)),
        ),
        total=2,
        files_searched=1,
        files_left_out=3,
        truncated=False,
        partial=False,
    ),
    "file_history": r.History(
        path="a",
        versions=(
            r.FileVersion(version_id="@5", at=0, kind="external", removed=True),
            r.FileVersion(version_id="@4", at=0, kind="external", moved_from="b"),
            r.FileVersion(version_id="@3", at=0, kind="change", agent="a"),
        ),
    ),
    "journal_query": JournalPage(head="@9"),
}

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def rpc(workspace: Path) -> Iterator[RpcDaemon]:
    daemon = RpcDaemon(workspace, lambda operation, params: ANSWERS.get(operation))
    yield daemon
    daemon.close()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(context, "TERMINAL", Path("/dev/absent"))
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments), approver=os.environ.get("ORCHESTRATOR_APPROVER"))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


@pytest.mark.parametrize(
    ("arguments", "code", "operation", "params"),
    [
        (["status"], 0, "status", {}),
        (["files"], 0, "list_files", {}),
        (["files", "src", "--glob", "*.py", "-r"], 0, "list_files", {"path": "src", "globs": ["*.py"]}),
        (["open", "a.py", "--start", "3", "--at", "@2"], 0, "read_file", {"path": "a.py", "start": 3, "at": "@2"}),
        (["search", "x", "src", "-i", "-C", "2"], 0, "search_content", {"pattern": "x", "case_sensitive": False}),
        (["edit", "a", "--search", "x", "--replace", "y"], 0, "edit_file", {"path": "a"}),
        (
            ["edit", "a", "--start", "2", "--end", "3", "--expect", "x", "--replace", "y"],
            0,
            "edit_file",
            {"changes": [{"start": 2, "end": 3, "expect": "x", "replace": "y"}]},
        ),
        (
            ["edit", "a", "--symbol", "A.f", "--content", "new.txt"],
            0,
            "edit_file",
            {"changes": [{"symbol": "A.f", "content": "née\n"}]},
        ),
        (
            ["edit", "a", "--search", "x", "--replace", "y", "--exact"],
            0,
            "edit_file",
            {"changes": [{"search": "x", "replace": "y", "fuzzy": False}]},
        ),
        (["write", "a", "new.txt"], 3, "write_file", {"path": "a", "content": "née\n", "mode": "truncate"}),
        (["write", "a", "new.txt", "--mode", "append"], 3, "write_file", {"content": "née\n", "mode": "append"}),
        (
            ["lease", "reserve", "a", "b", "--mode", "shared"],
            4,
            "reserve_paths",
            {"globs": ["a", "b"], "mode": "shared"},
        ),
        (["journal", "archive", "--before", "@5"], 4, "journal_archive", {"before": "@5", "approver": CODE}),
        (["rollback", "--agent", "bot", "--glob", "*.py"], 4, "rollback", {"agent": "bot", "globs": ["*.py"]}),
        (["info", "a"], 4, "file_info", {"path": "a"}),
        (["patch", "new.txt", "--base", "@2"], 3, "apply_patch", {"patch": "née\n", "base": "@2"}),
        (["revert", "@4", "--preview"], 0, "revert", {"change": "@4", "preview": True}),
        (["diff", "a", "--from", "@1"], 1, "get_diff", {"path": "a", "from": "@1"}),
        (["log", "a"], 0, "file_history", {"path": "a"}),
        (["log", "a", "--agent", "bot"], 0, "journal_query", {"path": "a", "agent": "bot"}),
        (["log"], 0, "journal_query", {"limit": 20}),
        (["conflicts", "resolve", "@7", "--choose", "proposed"], 0, "resolve_conflict", {"choice": "proposed"}),
        (
            ["conflicts", "resolve", "@7", "--file", "new.txt", "--on", "@6"],
            0,
            "resolve_conflict",
            {"content": "née\n", "on": "@6"},
        ),
        (["conflicts", "resolve", "@7", "--accept", "@8"], 0, "resolve_conflict", {"choice": "review", "review": "@8"}),
        (["approvals", "approve", "@6"], 0, "approve", {"approval": "@6", "approver": CODE}),
        (["agent", "add", "bot", "--class", "review"], 0, "agent_add", {"name": "bot", "class": "review"}),
        (["policy", "check", "new.txt"], 1, "policy_check", {"text": "née\n", "source": "new.txt"}),
        (["journal", "compare"], 0, "workspace_check", {}),
        (["session"], 4, "session_status", {}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_is_called(
    run: Run,
    rpc: RpcDaemon,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    operation: str,
    params: dict[str, Any],
) -> None:
    monkeypatch.setenv("ORCHESTRATOR_APPROVER", CODE)
    (workspace / "new.txt").write_text("née\n")
    assert run(*arguments)[0] == code
    called, sent = rpc.calls[-1]
    assert called == operation
    assert params.items() <= sent.items()
    json_code, out, err = run("--json", *arguments)
    assert (json_code, err) == (code, "")
    assert isinstance(json.loads(out), dict)


@pytest.mark.usefixtures("rpc")
def test_json_is_the_typed_result_or_the_refusal(run: Run) -> None:
    assert json.loads(run("status", "--json")[1])["socket"] == "/run/s.sock"
    refusal = json.loads(run("diff", "a", "--json")[1])
    assert refusal["code"] == "denied"
    found = json.loads(run("conflicts", "show", "7", "--json")[1])
    assert found["conflict"] == "@7"
    assert (found["state"], found["reviewer"], found["holders"]) == ("found", None, []), "every member is there"


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        pytest.param(
            ["edit", "a", "--search", "a", "--replace", "b"],
            "applied @5: so it is\n@@ -1 +1 @@\n-a\n+b\nwarning: mind the step\n",
            id="a change",
        ),
        pytest.param(["open", "a.py"], "\tx = 1\n\\x1b[2Jy\\u202e\n", id="content keeps its tabs only"),
        pytest.param(
            ["files"],
            "src/            1970-01-01 00:00:00\n"
            "a     12.1 KiB  1970-01-01 00:00:00\n"
            "… 2 of 9; go on with --cursor c1\n",
            id="a listing",
        ),
        pytest.param(
            ["search", "hit"],
            "a-1-b\na:2:hit\na-3-c\n--\na-8-d\na:9:hit\na-10-e\n(policy left out 3 files)\n",
            id="hits",
        ),
        pytest.param(
            ["write", "a", "/dev/null"],
            "waiting @6: so it is\n  A person decides: orchestrator approvals show @6\n",
            id="what waits",
        ),
        pytest.param(
            ["patch", "/dev/null"],
            "conflict @7: so it is\n3\tnow\\x00\n  Look at it: orchestrator conflicts show @7\n",
            id="a conflict",
        ),
        pytest.param(
            ["log", "a"],
            "@5  1970-01-01 00:00:00  outside  external  (removed)\n"
            "@4  1970-01-01 00:00:00  outside  external             (moved from b)\n"
            "@3  1970-01-01 00:00:00  a        change\n",
            id="versions",
        ),
        pytest.param(
            ["policy", "check", "/dev/null"],
            "not ok\nsource:  p.toml\nproblems:\n  3  rules  what?\n",
            id="a policy",
        ),
    ],
)
@pytest.mark.usefixtures("rpc")
def test_what_people_see(run: Run, arguments: list[str], shown: str) -> None:
    assert run(*arguments)[1] == shown


@pytest.mark.usefixtures("rpc")
def test_status_makes_control_characters_visible(run: Run) -> None:
    _, out, _ = run("status")
    assert "ev\\x1bil  (asserted)" in out
    assert "approver:   missing" in out


@pytest.mark.usefixtures("rpc")
def test_refusals_go_to_stderr(run: Run) -> None:
    assert run("diff", "a") == (1, "", "denied: a rule says\\x07 no\n  Ask a person.\n")


@pytest.mark.usefixtures("workspace")
def test_no_daemon(run: Run) -> None:
    code, out, err = run("status")
    assert (code, out) == (4, "")
    assert "orchestrator up" in err
    assert json.loads(run("status", "--json")[1])["code"] == "daemon_unreachable"
    assert "orchestrator up" not in run("stop")[2]


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["open"],
        ["revert"],
        ["write", "a", "/absent"],
        ["conflicts", "resolve", "@7"],
        ["conflicts", "resolve", "@7", "--choose", "current", "--file", "x"],
        ["conflicts", "resolve", "@7", "--edit", "--on", "@6"],
        ["conflicts", "resolve", "@7", "--accept"],
        ["journal", "rebuild"],
        ["--token-file", "/absent", "status"],
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("rpc")
def test_wrong_usage(run: Run, arguments: list[str]) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "Error" in err
    code, out, err = run("--json", *arguments)
    assert (code, err) == (2, "")
    refused = json.loads(out)
    assert refused["code"] == "usage"
    assert refused["message"]


@pytest.mark.usefixtures("rpc")
def test_a_command_that_makes_no_sense_shows_how_it_is_used(run: Run) -> None:
    for words in (["edit", "a", "--replace", "x"], ["diff"], ["replay"]):
        assert run(*words)[2].startswith(f"Usage: orchestrator {words[0]} "), words


@pytest.mark.usefixtures("rpc")
def test_a_defect_of_ours_is_a_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise LookupError("oh")

    monkeypatch.setattr("orchestrator.clients.render.answers.when", broken)
    code, _, err = run("files")
    assert code == 5
    assert "LookupError: oh" in err


def test_without_a_terminal_the_approver_code_is_not_guessed(run: Run, rpc: RpcDaemon) -> None:
    code, _, err = run("approvals", "approve", "@6")
    assert code == 1
    assert "ORCHESTRATOR_APPROVER" in err
    assert rpc.calls == []


def test_an_agent_resolves_without_the_code(run: Run, rpc: RpcDaemon) -> None:
    run("--agent", "reviewer", "conflicts", "resolve", "@7", "--choose", "current")
    assert "approver" not in rpc.calls[-1][1]
    assert rpc.preambles[-1]["agent"] == "reviewer"


def test_paths_are_those_of_the_current_folder(
    run: Run, rpc: RpcDaemon, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace / "src")
    for given, sent in (("a.py", "src/a.py"), ("../b", "b"), ("/etc/passwd", "/etc/passwd"), ("../../c", "../c")):
        run("open", given)
        assert rpc.calls[-1][1]["path"] == sent
    run("files")
    assert rpc.calls[-1][1]["path"] == "src"
    monkeypatch.chdir("/")
    run("--workspace", str(workspace), "open", "a.py")
    assert rpc.calls[-1][1]["path"] == "a.py"


# --- up -----------------------------------------------------------------------------------


def test_up_json_has_the_code(run: Run, rpc: RpcDaemon, workspace: Path) -> None:
    code, out, _ = run("up", "--json")
    facts = json.loads(out)
    assert code == 0
    assert (facts["approver_code"], facts["started"], facts["workspace"]) == (CODE, False, str(workspace))
    assert facts["socket"] == rpc.path
    assert rpc.preambles[-1]["person"] is True


def test_up_shows_the_code_on_the_terminal_only(
    run: Run, rpc: RpcDaemon, home: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = home / "tty"
    terminal.touch()
    monkeypatch.setattr(context, "TERMINAL", terminal)
    code, out, _ = run("up")
    assert code == 0
    assert CODE in terminal.read_text()
    assert CODE not in out
    assert f"--workspace {workspace} connect claude\n" in out
    assert [operation for operation, _ in rpc.calls] == ["approver_create", "status"]


def test_up_makes_no_code_that_nobody_would_see(run: Run, rpc: RpcDaemon) -> None:
    code, out, _ = run("up")
    assert code == 0
    assert "run `orchestrator up` in a terminal" in out
    assert [operation for operation, _ in rpc.calls] == ["status"]


@pytest.mark.usefixtures("rpc")
def test_up_says_what_is_amiss_and_no_more_than_a_new_user_needs(run: Run) -> None:
    _, out, _ = run("up")
    first, connecting = out.split("connect an agent (with --print: show what is written):\n")
    assert [line.split(":")[0] for line in first.splitlines()] == ["daemon", "workspace", "socket", "note", "note"]
    assert "note: plugin tags: failed, no installed package has it\n" in first
    assert connecting.startswith("  Claude Code:\n")


def test_foreground_becomes_the_daemon(run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Became(Exception):
        """Stands for the exec, which does not return."""

    became: list[list[str]] = []

    def execve(path: str, command: list[str], environment: dict[str, str]) -> None:
        became.append(command)
        assert "ORCHESTRATOR_APPROVER" not in environment
        raise Became

    monkeypatch.setenv("ORCHESTRATOR_APPROVER", CODE)
    monkeypatch.setattr(os, "execve", execve)
    assert run("up", "--foreground")[0] == 5
    assert became[0][:5] == [sys.executable, "-P", "-m", "orchestrator", "daemon"]
    assert str(workspace) in became[0]


# --- where commands write -----------------------------------------------------------------


def test_nothing_is_left_of_a_file_that_finds_no_room(tmp_path: Path) -> None:
    entry = TreeEntry(path="a.txt", version_id="@3", digest="sha256:" + hashlib.sha256(b"abc").hexdigest(), mode="0640")
    root = os.open(tmp_path, os.O_RDONLY)
    folder = NewFolder(tmp_path, root)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
        try:
            with pytest.raises(OSError, match="File too large"):
                folder.write(entry, [b"abc"])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert list(tmp_path.iterdir()) == []
        assert folder.write(entry, [b"a", b"bc"]) == 3
    finally:
        os.close(root)
    assert (tmp_path / "a.txt").stat().st_mode & 0o777 == 0o640


# --- the terminal's session ---------------------------------------------------------------


def test_a_login_at_a_terminal_is_named_unless_a_session_is(
    run: Run, rpc: RpcDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "terminal_login", lambda: "boot 1 2")
    run("status")
    monkeypatch.setenv("ORCHESTRATOR_SESSION", "mine")
    run("status")
    said = [(preamble.get("login"), preamble.get("session")) for preamble in rpc.preambles]
    assert said == [("boot 1 2", None), (None, "mine")]

    rpc.refuse_session = Refusal(code="session_unknown", message="no such session")
    assert run("status")[0] == 1, "a session that was asked for is not replaced in silence"


LOGIN = "from orchestrator.clients.cli.context import terminal_login; print(terminal_login())"


def test_no_terminal_no_login() -> None:
    command = [sys.executable, "-c", LOGIN]
    assert subprocess.run(command, capture_output=True, check=True, start_new_session=True).stdout == b"None\n"


def test_a_terminal_has_one_login_until_it_ends() -> None:
    """Two programs at one pseudo terminal, then one at another."""

    def logins(count: int) -> set[str]:
        shell = "; ".join([shlex.join([sys.executable, "-c", LOGIN])] * count)
        command = [sys.executable, "-c", "import pty, sys; pty.spawn(['sh', '-c', sys.argv[1]])", shell]
        shown = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True, text=True)
        return {*shown.stdout.split()}

    first, second = logins(2), logins(1)
    assert len(first) == len(second) == 1
    assert not first & second
    assert "None" not in first | second


# --- start-up -----------------------------------------------------------------------------


@pytest.mark.usefixtures("workspace")
def test_status_imports_nothing_heavy() -> None:
    script = "import sys; from orchestrator.clients.cli import main; main(['status']); print(sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    for heavy in ("anyio", "mcp", "asyncio", "rapidfuzz", "structlog", "orchestrator.engine", "orchestrator.servers"):
        assert f"'{heavy}'" not in out


def test_help_lists_mcp_and_completion_works() -> None:
    def out(*arguments: str) -> str:
        command = [sys.executable, "-m", "orchestrator", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert out("--version") == f"orchestrator {VERSION}\n"
    assert "  mcp " in out("--help")
    assert "_ORCHESTRATOR_COMPLETE" in out("completion", "bash")


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Every command that is no group, by its whole name."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    for below in command.commands.values():
        yield from commands(below, f"{name} {below.name}")


@pytest.mark.parametrize(("name", "command"), list(commands(orchestrator, "orchestrator")))
def test_no_option_has_two_meanings(name: str, command: click.Command) -> None:
    found = command.get_params(click.Context(command))
    names = [option for parameter in found for option in (*parameter.opts, *parameter.secondary_opts)]
    assert len(names) == len(set(names)), name
