"""Who may not know of a path is not told by a count that one was changed there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.clients.python import FileAccess
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = pytest.mark.anyio

POLICY = """
name = "ours"
extends = "default"

[[rule]]
name = "commands"
agents = ["*"]
actions = ["run"]
paths = ["**"]
commands = ["make", "sh -c *"]
verdict = "allow"

[[rule]]
name = "unlisted"
agents = ["class:cloud"]
actions = ["list"]
paths = ["kept/**"]
verdict = "deny"
"""


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    (base / "state").mkdir(mode=0o700)
    (base / "state/policy.toml").write_text(POLICY)
    (RunningDaemon(base).workspace / "kept").mkdir()
    with running(base) as daemon:
        yield daemon


def write(folder: Path) -> None:
    """Two files, one of which the agent may not know of."""
    (folder / "kept").mkdir(exist_ok=True)
    for name in ("a.txt", "kept/b.txt"):
        (folder / name).write_text("new\n")


def told(answer: Any) -> tuple[list[str], int]:
    return [item.path for item in answer.changes], answer.more_changes


async def of_own_tool(daemon: RunningDaemon, own: FileAccess) -> None:
    call: dict[str, Any] = {"client": "claude", "tool": "Bash", "kind": "command", "call": "1"}
    await own.native_before(**call, command="make")
    write(daemon.workspace)
    assert told(await own.native_after(**call)) == (["a.txt"], 0)


async def of_worktree(daemon: RunningDaemon, own: FileAccess) -> None:
    tree = await own.open_worktree()
    write(Path(tree.folder))
    answer = await own.close_worktree(tree.worktree)
    assert told(answer) == (["a.txt"], 0)
    assert answer.message.startswith("1 file changed")


async def of_command(daemon: RunningDaemon, own: FileAccess) -> None:
    script = "mkdir -p kept; echo new > a.txt; echo new > kept/b.txt"
    answer = await own.run_command(["sh", "-c", script], mode="scratch")
    assert told(answer) == (["a.txt"], 0)
    assert "; 1 file changed" in answer.message
    (listed,) = (await own.list_commands()).commands
    assert listed.change_count == 1
    async with daemon.client() as person:
        (whole,) = (await person.list_commands()).commands
        assert whole.change_count == 2


@pytest.mark.parametrize("act", [of_own_tool, of_worktree, of_command])
async def test_a_count_of_changes_is_of_those_that_are_listed(daemon: RunningDaemon, act: Any) -> None:
    async with daemon.client("claude") as own:
        await act(daemon, own)
    assert (daemon.workspace / "kept/b.txt").read_text() == "new\n"
