"""`orchestrator run` with a scripted agent, as a real child process, beside a real daemon."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents import fake_agent
from tests.daemon.cli import cli, command
from tests.daemon.daemon_process import RunningDaemon
from tests.docs.terminal import Terminal


@pytest.fixture(autouse=True)
def files(daemon: RunningDaemon) -> None:
    """What the agent works on."""
    (daemon.workspace / "a.txt").write_text("one\nlast\n")
    (daemon.workspace / "b.txt").write_text("b\n")
    (daemon.workspace / ".env").write_text("KEY=1\n")


@pytest.fixture
def terminal(daemon: RunningDaemon) -> Iterator[Terminal]:
    path = f"{Path(sys.executable).parent}:{daemon.env['PATH']}"
    opened = Terminal(daemon.workspace, {**daemon.env, "PATH": path})
    yield opened
    opened.close()


def launch(script: str, *options: str, agent: str = "claude") -> tuple[str, ...]:
    """The command that runs the scripted agent."""
    line = shlex.join([sys.executable, "-S", str(Path(fake_agent.__file__)), script])
    return ("run", agent, "--command", line, "--task", "do it", *options)


def kept(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The transcript of a run."""
    return [json.loads(line) for line in Path(answer["transcript"]).read_text().splitlines()]


def said(answer: dict[str, Any]) -> str:
    """What the agent said in it."""
    return "".join(line["text"] for line in kept(answer) if line["event"] == "agent_message_chunk")


def last_task(daemon: RunningDaemon) -> Any:
    """How the last task ended."""
    _, log = command(daemon, "log", "--kind", "task_ended")
    return log["entries"][0]["event"]["outcome"]


def text(daemon: RunningDaemon, name: str) -> str:
    return (daemon.workspace / name).read_text()


# --- what works ------------------------------------------------------------------------


def test_an_agent_works_with_our_tools_under_its_task(daemon: RunningDaemon) -> None:
    code, answer = command(daemon, *launch("works"))
    assert (code, answer["stop_reason"], answer["agent"]) == (0, "end_turn", "claude")
    assert text(daemon, "a.txt") == "two\nlast\n"
    _, log = command(daemon, "log", "--task", answer["task"], "--kind", "change_applied")
    assert [(each["agent"], each["session"]) for each in log["entries"]] == [("claude", answer["session"])]
    assert last_task(daemon) == "end_turn"


def test_what_an_agent_says_moves_no_terminal(daemon: RunningDaemon) -> None:
    code, shown = cli(daemon, *launch("works"))
    assert code == 0, shown
    assert "did \\x1b]0;title\\x07do it: key" in shown
    assert "edit it\\x1b[2J" in shown
    assert "\x1b" not in shown


def test_the_transcript_covers_secrets_that_come_in_pieces(daemon: RunningDaemon) -> None:
    _, answer = command(daemon, *launch("works"))
    assert "key " in said(answer)
    assert "AKIAQ" not in Path(answer["transcript"]).read_text()
    assert Path(answer["transcript"]).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("options", "answers"),
    [
        pytest.param((), "yes yes no no no no yes no", id="what policy allows"),
        pytest.param(("--yes-to", "reads"), "yes no no no no no yes no", id="reads"),
        pytest.param(("--yes-to", "none"), "no no no no no no yes no", id="nothing"),
    ],
)
def test_permission_without_a_person(daemon: RunningDaemon, options: tuple[str, ...], answers: str) -> None:
    """Asked about: a read, an edit, a secret, a file outside, a path that climbs out, a shell, a tool of ours, an edit
    that leaves nothing, which policy takes for a deletion."""
    code, answer = command(daemon, *launch("permissions", *options))
    assert code == 0
    assert said(answer) == answers
    assert (answer["allowed"], answer["rejected"]) == (answers.count("yes"), answers.count("no"))
    whys = [line["why"] for line in kept(answer) if line["event"] == "permission"]
    assert "denies .env" in whys[2]
    assert "outside" in whys[3]
    assert "'delete-or-move' asks about a.txt" in whys[7]


@pytest.mark.skipif(sys.platform != "linux", reason="setsid --ctty is of util-linux")
def test_a_person_answers_at_the_terminal(daemon: RunningDaemon, terminal: Terminal) -> None:
    asked = "Which one (1 to 3)?"
    lines, code = terminal.run(
        "orchestrator " + shlex.join(launch("permissions", "--yes-to", "none")),
        answers=[(asked, "9\n"), (asked, "1\n"), (asked, "2\n"), (asked, "3\n"), (asked, "1\n"), *[(asked, "3\n")] * 2],
    )
    shown = "\n".join(lines)
    assert code == 0, shown
    assert "yes always no no yes no yes no" in shown


# --- approvals -------------------------------------------------------------------------


def queued(daemon: RunningDaemon) -> dict[str, Any]:
    """The only request that waits, as a person is shown it."""
    _, waiting = command(daemon, "approvals", "list")
    (one,) = waiting["approvals"]
    _, whole = command(daemon, "approvals", "show", one["approval"])
    return whole


@pytest.mark.skipif(sys.platform != "linux", reason="setsid --ctty is of util-linux")
@pytest.mark.anyio
@pytest.mark.parametrize("json", [(), ("--json",)], ids=["at a terminal", "without a screen"])
async def test_a_person_answers_elsewhere(daemon: RunningDaemon, terminal: Terminal, json: tuple[str, ...]) -> None:
    approver, requests = await daemon.make_approver(), list[dict[str, Any]]()

    def answer(word: str) -> str:
        requests.append(queued(daemon))
        ended, said = command(daemon, "approvals", word, requests[-1]["approval"], approver=approver)
        assert ended == 0, said
        return ""

    lines, code = terminal.run(
        "orchestrator " + shlex.join(launch("asks", "--yes-to", "none", *json)),
        answers=[("waits for a yes", lambda: answer("approve")), ("waits for a yes", lambda: answer("deny"))],
    )
    assert code == 0, lines
    edit, run = requests
    assert (edit["agent"], edit["paths"], edit["shown_whole"]) == ("claude", ["a.txt"], True)
    assert "-one\n+two\n" in edit["diff"]
    assert "make all" in run["reason"]
    assert text(daemon, "a.txt") == "two\nlast\n"
    if not json:
        assert {"the edit: yes", "the command: no"} <= set(lines)


@pytest.mark.skipif(sys.platform != "linux", reason="setsid --ctty is of util-linux")
@pytest.mark.anyio
async def test_what_is_answered_at_the_terminal_waits_no_more(daemon: RunningDaemon, terminal: Terminal) -> None:
    await daemon.make_approver()
    lines, code = terminal.run(
        "orchestrator " + shlex.join(launch("asks", "--yes-to", "none")),
        answers=[("Which one", "1\n"), ("Which one", "3\n")],
    )
    assert code == 0, lines
    assert {"the edit: yes", "the command: no"} <= set(lines)
    _, log = command(daemon, "log", "--kind", "approval_expired")
    assert [each["event"]["cause"] for each in log["entries"]] == ["withdrawn", "withdrawn"]


@pytest.mark.skipif(sys.platform != "linux", reason="setsid --ctty is of util-linux")
@pytest.mark.anyio
async def test_ctrl_c_takes_a_question_back(daemon: RunningDaemon, terminal: Terminal) -> None:
    await daemon.make_approver()
    lines, code = terminal.run(
        "orchestrator " + shlex.join(launch("asks", "--yes-to", "none")), answers=[("Which one", "\x03")]
    )
    assert code == 130, lines
    assert "the edit: cancelled" in lines
    _, waiting = command(daemon, "approvals", "list")
    assert waiting["approvals"] == []


# --- what an agent changes with tools of its own -----------------------------------------


def authors(daemon: RunningDaemon, path: str) -> list[str | None]:
    """Of the versions of a file, newest first; None: an external change."""
    _, history = command(daemon, "log", path)
    return [each.get("agent") for each in history["versions"]]


@pytest.fixture
def known(daemon: RunningDaemon) -> None:
    """The daemon has seen the files: an edit of one that it never saw is nobody's in particular."""
    for name in ("a.txt", "b.txt"):
        assert command(daemon, "open", name)[0] == 0


@pytest.mark.usefixtures("known")
@pytest.mark.anyio
@pytest.mark.parametrize("script", ["edits", "creates", "dies_after_its_edit"])
async def test_an_edit_is_its_agents(daemon: RunningDaemon, script: str) -> None:
    code, answer = command(daemon, *launch(script))
    if script != "dies_after_its_edit":
        assert (code, answer["unmade"], answer["tool_calls"]) == (0, [], 1)
    path = "new.txt" if script == "creates" else "a.txt"
    assert authors(daemon, path)[0] == "claude"
    _, log = command(daemon, "log", "--agent", "claude", "--kind", "external_batch_opened")
    (group,) = log["entries"]
    assert (group["event"]["trigger"], group["event"]["tool"]) == ("acp", f"claude Edit {path}")
    assert group["client_call_id"] == "e1"
    approver = await daemon.make_approver()
    _, waits = command(daemon, "rollback", "--agent", "claude")
    code, said = command(daemon, "approvals", "approve", waits["approval"], "--unseen", approver=approver)
    assert code == 0, said
    assert not (daemon.workspace / "new.txt").exists()
    assert text(daemon, "a.txt") == "one\nlast\n"


@pytest.mark.usefixtures("known")
def test_what_it_deletes_and_moves_is_its_own(daemon: RunningDaemon) -> None:
    code, answer = command(daemon, *launch("deletes"))
    assert code == 0, answer
    for path in ("a.txt", "b.txt", "c.txt"):
        assert authors(daemon, path)[0] == "claude", path


@pytest.mark.usefixtures("known")
@pytest.mark.skipif(sys.platform != "linux", reason="setsid --ctty is of util-linux")
def test_what_a_command_changes_is_its_own_where_it_asked(daemon: RunningDaemon, terminal: Terminal) -> None:
    lines, code = terminal.run("orchestrator " + shlex.join(launch("builds")), answers=[("Which one", "1\n")])
    assert code == 0, lines
    command(daemon, "open", "b.txt")
    assert [authors(daemon, path)[0] for path in ("built.txt", "a.txt", "b.txt")] == ["claude", "claude", "outside"]


@pytest.mark.usefixtures("known")
def test_what_it_did_not_say_is_not_its_own(daemon: RunningDaemon) -> None:
    code, answer = command(daemon, *launch("lies"))
    assert (code, answer["unmade"]) == (0, ["b.txt"])
    assert text(daemon, "b.txt") == "d\n"
    command(daemon, "open", "b.txt")
    assert authors(daemon, "b.txt")[0] == "outside"


@pytest.mark.usefixtures("known")
def test_what_it_only_said_is_nobodys(daemon: RunningDaemon) -> None:
    command(daemon, *launch("claims"))
    (daemon.workspace / "a.txt").write_text("three\nlast\n")
    command(daemon, "open", "a.txt")
    assert authors(daemon, "a.txt")[0] == "outside"


def test_an_edit_that_was_not_made_is_named(daemon: RunningDaemon) -> None:
    code, answer = command(daemon, *launch("claims"))
    assert (code, answer["unmade"]) == (0, ["a.txt"])
    assert text(daemon, "a.txt") == "one\nlast\n"


@pytest.mark.skipif(sys.platform != "linux", reason="setsid --ctty is of util-linux")
@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("script", ["edits", "works"], ids=["with its own tool", "with ours"])
def test_two_agents_of_two_kinds_edit_one_file_at_once(daemon: RunningDaemon, terminal: Terminal, script: str) -> None:
    def meanwhile() -> str:
        code, answer = command(daemon, *launch(script, agent="opencode"))
        assert code == 0, answer
        (daemon.workspace / "gone").touch()
        return ""

    line = "orchestrator " + shlex.join(launch("edits_the_last_line"))
    lines, code = terminal.run(line, answers=[("ready", meanwhile)])
    assert (code, text(daemon, "a.txt")) == (0, "two\nthe last\n"), lines
    _, blame = command(daemon, "blame", "a.txt")
    assert [each["agent"] for each in blame["ranges"]] == ["opencode", "claude"]


# --- in a worktree ---------------------------------------------------------------------


@pytest.mark.usefixtures("known")
def test_a_worktree_comes_back_as_one_change(daemon: RunningDaemon) -> None:
    code, answer = command(daemon, *launch("isolated", "--worktree"))
    assert code == 0, answer
    permitted, has_our_tools, has_secrets, folder = said(answer).split()
    assert (permitted, has_our_tools, has_secrets) == ("yes", "False", "False")
    assert Path(folder) != daemon.workspace
    assert not Path(folder).exists()
    assert (text(daemon, "a.txt"), text(daemon, "deep/new.txt")) == ("two\nlast\n", "new\n")
    back = answer["brought_back"]
    assert [each["path"] for each in back["changes"]] == ["a.txt", "deep/new.txt"]
    _, log = command(daemon, "log", "--task", answer["task"], "--kind", "change_applied")
    assert [each["agent"] for each in log["entries"]] == ["claude"]


@pytest.mark.usefixtures("known")
def test_what_policy_asks_about_waits_when_it_comes_back(daemon: RunningDaemon) -> None:
    code, answer = command(daemon, *launch("isolated_and_protected", "--worktree"))
    assert code == 0, answer
    assert not (daemon.workspace / "Makefile").exists()
    waiting = queued(daemon)
    assert (waiting["agent"], waiting["paths"]) == ("claude", ["Makefile"])
    assert waiting["approval"] in answer["brought_back"]["message"]


def test_a_worktree_outlives_its_agent_and_the_daemon(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.txt").write_text("one\n2\n3\n4\nlast\n")
    command(daemon, "open", "a.txt")
    code, shown = cli(daemon, *launch("isolated_and_dies", "--worktree"))
    assert code == 1, shown
    assert text(daemon, "a.txt") == "one\n2\n3\n4\nlast\n"
    (name,) = re.findall(r"worktree close (\w+)", shown)
    daemon.kill()
    daemon.start()
    (daemon.workspace / "a.txt").write_text("one\n2\n3\n4\nthe last\n")  # somebody else goes on meanwhile
    code, back = command(daemon, "worktree", "close", name)
    assert (code, back.get("warnings")) == (0, []), back
    assert text(daemon, "a.txt") == "two\n2\n3\n4\nthe last\n"
    assert authors(daemon, "a.txt")[0] == "claude"
    assert command(daemon, "worktree", "close", name)[1]["code"] == "version_unknown"


# --- files that an agent delegates -----------------------------------------------------


def test_delegated_files_go_through_the_daemon(daemon: RunningDaemon) -> None:
    code, answer = command(daemon, *launch("delegates", agent="gemini"))
    assert code == 0
    part, absent, write, new, told, codes = json.loads(said(answer))
    assert (part, absent, write, new) == ("last\n", "", None, None)
    assert (told, codes) == (["denied", "base_required"], [-32602, -32602])
    assert [text(daemon, name) for name in ("a.txt", "b.txt", "new.txt")] == ["two\nlast\n", "b\n", "new\n"]
    _, log = command(daemon, "log", "--task", answer["task"], "--kind", "change_applied")
    assert sorted(path["path"] for each in log["entries"] for path in each["paths"]) == ["a.txt", "new.txt"]


def test_files_are_not_offered_to_an_agent_that_writes_the_disk_itself(daemon: RunningDaemon) -> None:
    _, answer = command(daemon, *launch("delegates", agent="opencode"))
    assert said(answer) == "read -32601\n"


@pytest.mark.skipif(sys.platform != "linux", reason="setsid --ctty is of util-linux")
@pytest.mark.anyio
async def test_a_delegated_write_waits_for_a_person(daemon: RunningDaemon, terminal: Terminal) -> None:
    approver = await daemon.make_approver()

    def approve() -> str:
        _, waiting = command(daemon, "approvals", "list")
        (number,) = [each["approval"] for each in waiting["approvals"]]
        ended, answer = command(daemon, "approvals", "approve", number, "--unseen", approver=approver)
        assert ended == 0, answer
        return ""

    line = "orchestrator " + shlex.join(launch("waits", agent="gemini"))
    lines, code = terminal.run(line, answers=[("waits for a yes", approve)])
    assert (code, text(daemon, "Makefile")) == (0, "all:\n"), lines
    assert "None" in lines


# --- agents that fail ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "options", "error", "words"),
    [
        pytest.param("dies", (), "agent_ended", "exit code 7", id="dies in mid-call"),
        pytest.param("garbage", (), "agent_invalid", "no messages", id="speaks something else"),
        pytest.param("long_line", (), "agent_flooding", "a line of more than", id="50 MB in a line"),
        pytest.param("spends", ("--max-calls", "2"), "agent_over_budget", "more than 2 tool calls", id="calls"),
        pytest.param("spends", ("--max-tokens", "4999"), "agent_over_budget", "used 5000 tokens", id="tokens"),
        pytest.param("silent", ("--timeout", "2"), "agent_timeout", "after 2 s", id="never ends"),
        pytest.param("mute", ("--timeout", "2"), "agent_timeout", "not ready", id="never answers"),
        pytest.param("newer", (), "agent_invalid", "ACP 2", id="another version"),
        pytest.param("login", (), "agent_needs_login", "browser", id="wants a login"),
    ],
)
def test_an_agent_that_fails(
    daemon: RunningDaemon, script: str, options: tuple[str, ...], error: str, words: str
) -> None:
    code, answer = command(daemon, *launch(script, *options))
    assert (code, answer["code"]) == (1, error)
    assert words in answer["message"]
    assert last_task(daemon) == error
    if script == "dies":
        assert "out of \\x1b[31mmemory" in answer["message"]
    if script == "silent":
        assert not Path(f"/proc/{text(daemon, 'child.pid')}").exists()


def test_an_agent_that_is_not_installed(daemon: RunningDaemon) -> None:
    code, answer = command(daemon, "run", "codex", "--task", "x", "--command", "no-such-program-here")
    assert (code, answer["code"]) == (1, "agent_not_installed")
    assert last_task(daemon) == "agent_not_installed"


@pytest.mark.skipif(sys.platform != "linux", reason="setsid --ctty is of util-linux")
@pytest.mark.parametrize("script", ["cancels", "silent"])
def test_ctrl_c_ends_the_turn_and_the_agent(daemon: RunningDaemon, terminal: Terminal, script: str) -> None:
    lines, code = terminal.run(
        "orchestrator " + shlex.join(launch(script)), answers=[("waiting", "\x03"), ("ends", "")]
    )
    assert code == 130, lines
    assert last_task(daemon) == "cancelled"
    if script == "silent":
        assert not Path(f"/proc/{text(daemon, 'child.pid')}").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="setsid --ctty is of util-linux")
def test_the_daemon_is_killed_meanwhile(daemon: RunningDaemon, terminal: Terminal) -> None:
    def kill() -> str:
        daemon.kill()
        (daemon.workspace / "gone").touch()
        return ""

    line = "orchestrator " + shlex.join(launch("orphaned", "--yes-to", "reads", agent="gemini"))
    lines, code = terminal.run(line, answers=[("ready", kill), ("Which one", "3\n")])
    daemon.start()
    shown = "\n".join(lines)
    assert code == 0, shown
    assert "noTrue" in shown
    assert "could not be ended" in shown


@pytest.mark.skipif(sys.platform != "linux", reason="setsid --ctty is of util-linux")
def test_the_daemon_is_restarted_meanwhile(daemon: RunningDaemon, terminal: Terminal) -> None:
    def restart() -> str:
        daemon.kill()
        daemon.start()
        (daemon.workspace / "gone").touch()
        return ""

    line = "orchestrator " + shlex.join(launch("orphaned", agent="gemini"))
    lines, code = terminal.run(line, answers=[("ready", restart)])
    shown = "\n".join(lines)
    assert code == 0, shown
    assert "yesFalse" in shown
    assert last_task(daemon) == "end_turn"


@pytest.mark.skipif(sys.platform != "linux", reason="setsid --ctty is of util-linux")
@pytest.mark.anyio
async def test_a_request_outlives_the_daemon(daemon: RunningDaemon, terminal: Terminal) -> None:
    approver = await daemon.make_approver()

    def restart() -> str:
        daemon.kill()
        daemon.start()
        ended, said = command(daemon, "approvals", "approve", queued(daemon)["approval"], approver=approver)
        assert ended == 0, said
        return ""

    lines, code = terminal.run(
        "orchestrator " + shlex.join(launch("asks", "--yes-to", "none")),
        answers=[("waits for a yes", restart), ("Shell asks for", "3\n")],
    )
    assert code == 0, lines
    assert "  $ make all" in lines
    assert {"the edit: yes", "the command: no"} <= set(lines)


@pytest.mark.usefixtures("known")
@pytest.mark.skipif(sys.platform != "linux", reason="setsid --ctty is of util-linux")
@pytest.mark.anyio
async def test_an_edit_that_outlives_the_daemon_is_its_agents(daemon: RunningDaemon, terminal: Terminal) -> None:
    """The new daemon is told of it when a person has said yes."""
    approver = await daemon.make_approver()

    def restart() -> str:
        daemon.kill()
        daemon.start()
        ended, said = command(daemon, "approvals", "approve", queued(daemon)["approval"], approver=approver)
        assert ended == 0, said
        return ""

    line = "orchestrator " + shlex.join(launch("announces_and_asks", "--yes-to", "none"))
    lines, code = terminal.run(line, answers=[("waits for a yes", restart)])
    assert code == 0, lines
    assert text(daemon, "a.txt") == "two\nlast\n"
    command(daemon, "open", "a.txt")
    assert authors(daemon, "a.txt")[0] == "claude"


@pytest.mark.skipif(sys.platform != "linux", reason="setsid --ctty is of util-linux")
def test_a_daemon_that_the_agents_transport_started_outlives_the_run(daemon: RunningDaemon, terminal: Terminal) -> None:
    def kill() -> str:
        daemon.kill()
        (daemon.workspace / "gone").touch()
        return ""

    lines, code = terminal.run("orchestrator " + shlex.join(launch("goes_on")), answers=[("ready", kill)])
    try:
        assert code == 0, lines
        assert last_task(daemon) == "end_turn"
        assert text(daemon, "a.txt") == "two\nlast\n"
    finally:
        cli(daemon, "stop")
        daemon.start()


@pytest.mark.skipif(sys.platform != "linux", reason="setsid --ctty is of util-linux")
def test_a_person_is_not_asked_without_an_answer_to_choose(daemon: RunningDaemon, terminal: Terminal) -> None:
    lines, code = terminal.run("orchestrator " + shlex.join(launch("nothing_to_choose")))
    assert (code, "cancelled" in lines) == (0, True), lines
    assert not any("Which one" in line for line in lines)


def test_an_agent_goes_on_with_its_conversation(daemon: RunningDaemon) -> None:
    code, first = command(daemon, *launch("permissions"))
    assert (code, first["conversation"]) == (0, fake_agent.SESSION)
    code, answer = command(daemon, *launch("works", "--resume", first["conversation"]))
    assert (code, answer["stop_reason"], answer["conversation"]) == (0, "end_turn", fake_agent.SESSION)
    assert text(daemon, "a.txt") == "two\nlast\n"
    assert "said before" not in said(answer)


@pytest.mark.parametrize(
    ("script", "conversation", "refusal"),
    [
        pytest.param("forgets", fake_agent.SESSION, "Claude Code does not offer", id="not offered"),
        pytest.param("works", "sess-2", "Internal error: no such", id="not known"),
    ],
)
def test_a_conversation_that_cannot_go_on(daemon: RunningDaemon, script: str, conversation: str, refusal: str) -> None:
    code, answer = command(daemon, *launch(script, "--resume", conversation))
    assert code == 1
    assert refusal in answer["message"]


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("run", "claude", "--task", "x", "--resume", "1", "--worktree"), id="resume in a worktree"),
        pytest.param(("run", "nobody", "--task", "x"), id="agent"),
        pytest.param(("run", "claude"), id="no task"),
        pytest.param(("run", "claude", "--task", " "), id="empty task"),
        pytest.param(("run", "claude", "--task", "x", "--command", "'"), id="quotes"),
    ],
)
def test_usage(daemon: RunningDaemon, arguments: tuple[str, ...]) -> None:
    assert command(daemon, *arguments)[0] == 2


def test_the_agent_gets_none_of_our_variables(daemon: RunningDaemon) -> None:
    show = "import os, sys; print(sorted(n for n in os.environ if n.startswith('ORCH')), file=sys.stderr)"
    line = shlex.join([sys.executable, "-c", show])
    code, shown = cli(
        daemon, "run", "claude", "--task", "x", "--command", line, ORCHESTRATOR_APPROVER="code", ORCHESTRATOR_X="1"
    )
    assert code == 1
    assert "Its last words: []" in shown
