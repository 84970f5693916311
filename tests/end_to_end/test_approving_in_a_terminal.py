"""What a person does about requests at a terminal of their own."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.daemon.cli import command
from tests.daemon.daemon_process import RunningDaemon
from tests.docs.terminal import Terminal

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="setsid --ctty is of util-linux"),
]

ASKED = "(q)uit: "


@pytest.fixture
async def terminal(daemon: RunningDaemon) -> AsyncIterator[Terminal]:
    path = f"{Path(sys.executable).parent}:{daemon.env['PATH']}"
    opened = Terminal(daemon.workspace, {**daemon.env, "PATH": path}, code=await daemon.make_approver())
    yield opened
    opened.close()


async def requests(daemon: RunningDaemon, *names: str) -> list[str]:
    """Changes that wait, each of a file that policy asks about."""
    async with daemon.client("alice") as alice:
        return [(await alice.write_file(name, "all:\n", "create")).approval or "" for name in names]


async def test_the_queue_takes_one_code_and_shows_what_arrives(daemon: RunningDaemon, terminal: Terminal) -> None:
    first, second, third = await requests(daemon, "Makefile", "a/Makefile", "b/Makefile")
    arrived: list[str] = []

    def another() -> str:
        _, answer = command(daemon, "write", "c/Makefile", "Makefile", "--agent", "alice", cwd=daemon.workspace)
        arrived.append(answer["approval"])
        return ""

    lines, code = terminal.run(
        "orchestrator approvals answer",
        answers=[
            *((ASKED, "y\n"), (ASKED, "n\n"), ("Why: ", "not here\n"), (ASKED, "s\n")),
            *(("Ctrl+C ends.", another), (ASKED, "y\n"), ("Ctrl+C ends.", "\x03")),
        ],
    )
    text = "\n".join(lines)
    assert (code, text.count("Approver code: ")) == (0, 1), text
    assert f"{first} (1 path): (y)es" in text.partition("Approver code: ")[0], "asked for before it is needed"
    assert [f"{each} (1 path): (y)es" in text for each in (first, second, third, *arrived)] == [True] * 4
    assert text.count("+all:") == 4
    async with daemon.client() as person:
        states = [(await person.approvals_show(each)).state for each in (first, second, third, *arrived)]
        assert len((await person.journal_query(kind="approver_session_opened")).entries) == 1
        (denied,) = (await person.journal_query(kind="approval_denied")).entries
    assert states == ["used", "denied", "waiting", "used"]
    assert denied.event["reason"] == "not here"


async def test_ones_own_undo_is_approved_at_once(daemon: RunningDaemon, terminal: Terminal) -> None:
    async with daemon.client("alice") as alice:
        change = (await alice.write_file("a.txt", "one\n", "create")).change
    lines, code = terminal.run(f"orchestrator revert {change}")
    assert (code, (daemon.workspace / "a.txt").exists()) == (0, False), lines
    assert "deleted file mode 100644" in lines
    assert "Approver code: " in lines


async def test_a_wrong_code_leaves_ones_own_undo_waiting(daemon: RunningDaemon, terminal: Terminal) -> None:
    async with daemon.client("alice") as alice:
        change = (await alice.write_file("a.txt", "one\n", "create")).change
    async with daemon.client() as person:
        await person.approver_reset(approver=daemon.approver)
        lines, code = terminal.run(f"orchestrator revert {change}")
        assert (code, (daemon.workspace / "a.txt").exists()) == (1, True), lines
        assert (await person.status()).approvals == 1


async def test_what_waits_is_listed_without_a_question(daemon: RunningDaemon, terminal: Terminal) -> None:
    lines, code = terminal.run("orchestrator approvals")
    assert (lines, code) == (["nothing waits for an approval"], 0)
    first, second = await requests(daemon, "Makefile", "a/Makefile")
    lines, code = terminal.run("orchestrator approvals")
    assert ([line.split()[0] for line in lines[:2]], code) == ([first, second], 0)
    assert lines[2:] == ["`orchestrator approvals answer` shows each of them, and asks"]
    code, listed = command(daemon, "approvals")
    assert (code, [info["approval"] for info in listed["approvals"]]) == (0, [first, second])
    code, refused = command(daemon, "approvals", "answer")
    assert (code, refused["code"]) == (2, "usage")


async def test_who_answers_none_is_asked_for_no_code(daemon: RunningDaemon, terminal: Terminal) -> None:
    await requests(daemon, "Makefile")
    lines, code = terminal.run("orchestrator approvals answer", answers=[(ASKED, "s\n"), ("Ctrl+C ends.", "\x03")])
    assert (code, "Approver code: " in "\n".join(lines)) == (0, False), lines


async def test_several_are_answered_by_one_command(daemon: RunningDaemon) -> None:
    code = await daemon.make_approver()
    first, second, third = await requests(daemon, "Makefile", "a/Makefile", "b/Makefile")
    assert command(daemon, "approvals", "approve", approver=code)[0] == 2
    assert command(daemon, "approvals", "approve", first, "--all", approver=code)[0] == 2
    exit_code, said = command(daemon, "approvals", "approve", first, second, "--unseen", approver=code)
    assert [(one["approval"], one["answer"]["status"]) for one in said["decisions"]] == [
        (first, "applied"),
        (second, "applied"),
    ]
    assert exit_code == 0
    exit_code, said = command(daemon, "approvals", "deny", second, third, "--reason", "no", approver=code)
    assert exit_code == 1  # the worst of them
    assert said["decisions"][0]["refusal"]["code"] == "approval_closed"
    assert "is denied" in said["decisions"][1]["answer"]["message"]
    (fourth,) = await requests(daemon, "c/Makefile")
    assert command(daemon, "approvals", "deny", "--all", approver=code)[0] == 0
    assert command(daemon, "approvals", "deny", "--all", approver=code) == (0, command(daemon, "approvals")[1])
    async with daemon.client() as person:
        assert (await person.approvals_show(fourth)).state == "denied"


async def test_connecting_says_what_the_code_is_for(terminal: Terminal) -> None:
    lines, code = terminal.run("orchestrator connect opencode")
    text = "\n".join(lines)
    assert code == 0, text
    assert "The code makes the agent's own token." in text.partition("Approver code: ")[0], text
