"""What is closed to a command stays so while it runs: whoever replaces such a file ends the command."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import anyio
import pytest

from orchestrator.api.commands import CommandAnswer
from orchestrator.clients.python import FileAccess, Replacement
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.test_commands import POLICY, shell
from tests.daemon.test_undo import agrees

pytestmark = pytest.mark.anyio

NEW = "KEY=new\n"
EDITED = "edited:\n"
LOOP = "while :; do cat .env; echo evil >> Makefile; cat src/.env; echo round; sleep 0.01; done"


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    (base / "state").mkdir(mode=0o700)
    (base / "state/policy.toml").write_text(POLICY)
    started = RunningDaemon(base)
    (started.workspace / "a.txt").write_text("one\n")
    (started.workspace / "src").mkdir()
    (started.workspace / "src/b.txt").write_text("b\n")
    (started.workspace / ".env").write_text("KEY=old\n")
    (started.workspace / "Makefile").write_text("all:\n")
    with running(base) as daemon:
        yield daemon


class Looping:
    """A command that reads and writes what is closed to it, again and again."""

    def __init__(self, files: FileAccess, mode: Literal["in_place", "scratch"]) -> None:
        self._files, self._mode = files, mode
        self.answer: CommandAnswer | None = None

    async def run(self) -> None:
        self.answer = await self._files.run_command(["sh", "-c", LOOP], mode=self._mode, timeout_s=20)

    async def until_it_loops(self, person: FileAccess) -> None:
        while True:
            running = (await person.list_commands(running=True)).commands
            if running and "round" in (await person.command_output(running[0].command)).output:
                return


async def ended(daemon: RunningDaemon, mode: Literal["in_place", "scratch"], name: str) -> CommandAnswer:
    """The end of a command while which another program puts a new file in a place, by rename, as editors save."""
    (daemon.base / "saved").write_text(NEW)
    async with daemon.client("claude") as claude, daemon.client() as person:
        if (await person.status()).health.commands.startswith(("nothing", "landlock")):
            pytest.skip("there is nothing to mount with")
        looping = Looping(claude, mode)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(looping.run)
            await looping.until_it_loops(person)
            os.replace(daemon.base / "saved", daemon.workspace / name)
        assert looping.answer is not None
        return looping.answer


@pytest.mark.parametrize("name", [".env", "src/.env", "Makefile"])
async def test_a_file_that_is_closed_to_it_is_replaced_or_made(daemon: RunningDaemon, name: str) -> None:
    answer = await ended(daemon, "in_place", name)
    assert answer.status == "stopped"
    assert f"{name}, which is closed to it, was changed, replaced or made" in answer.warnings[-1]
    assert NEW not in answer.output
    makefile = (daemon.workspace / "Makefile").read_text()
    if "evil" in makefile:  # in the moment before its end: that is on record
        assert "Makefile" in [item.path for item in answer.changes]
    await agrees(daemon)


async def test_the_same_beside_a_copy(daemon: RunningDaemon) -> None:
    """It sees the workspace, too; and nothing comes back."""
    answer = await ended(daemon, "scratch", ".env")
    assert (answer.status, answer.changes) == ("stopped", ())
    assert ".env, which is closed to it" in answer.warnings[-1]


async def test_an_approved_edit_comes_after_its_end(daemon: RunningDaemon) -> None:
    async with daemon.client("claude") as claude, daemon.client("bob") as bob, daemon.client() as person:
        if (await person.status()).health.commands.startswith(("nothing", "landlock")):
            pytest.skip("there is nothing to mount with")
        asked = await bob.edit_file("Makefile", [Replacement(search="all:", replace="edited:")])
        assert asked.approval is not None
        await person.approvals_show(asked.approval)
        looping = Looping(claude, "in_place")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(looping.run)
            await looping.until_it_loops(person)
            await person.approve(asked.approval, approver=await daemon.make_approver())
            assert (daemon.workspace / "Makefile").read_text() == EDITED
        assert looping.answer is not None
        assert looping.answer.status == "stopped"
        assert "Makefile, which is closed to it" in looping.answer.warnings[-1]
        assert (daemon.workspace / "Makefile").read_text() == EDITED
        assert (await person.file_history("Makefile")).versions[0].agent == "bob"
        assert (await shell(claude, "true")).exit_code == 0
    await agrees(daemon)


async def test_what_is_open_to_it_may_change(daemon: RunningDaemon) -> None:
    """An edit of a file that it may write does not end it."""
    async with daemon.client("claude") as claude, daemon.client("bob") as bob, daemon.client() as person:
        answer = await claude.run_command(
            ["sh", "-c", "echo round; until grep -q ONE a.txt; do :; done; echo seen"], background=True
        )
        assert answer.command is not None
        while "round" not in (await person.command_output(answer.command)).output:
            pass
        await bob.edit_file("a.txt", [Replacement(search="one", replace="ONE")])
        while (text := await person.command_output(answer.command)).status == "running":
            pass
        assert (text.status, text.output) == ("done", "round\nseen\n")
