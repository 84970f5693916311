"""The hooks of agents' clients: the real program, as a client runs it, over the real daemon."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestrator.clients.python import Replacement
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.external_changes import entries, seen
from tests.daemon.test_undo import agrees

pytestmark = pytest.mark.anyio

TEXT = "one\ntwo\nthree\nfour\nfive\nsix\n"
SESSION = "5c1e0b1e-claude"

POLICY = """
name = "ours"
extends = "default"

[[rule]]
name = "asked"
agents = ["*"]
actions = ["write"]
paths = ["asked.txt"]
verdict = "ask"

[[rule]]
name = "kept"
agents = ["*"]
actions = ["read", "search", "list", "write", "create", "delete", "move"]
paths = ["kept/**"]
verdict = "deny"

[[rule]]
name = "builds"
agents = ["*"]
actions = ["run"]
paths = ["**"]
commands = ["make **"]
verdict = "allow"

[[rule]]
name = "no deletion"
agents = ["*"]
actions = ["run"]
paths = ["**"]
commands = ["rm **"]
verdict = "deny"
"""


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    (base / "state").mkdir(mode=0o700)
    (base / "state/policy.toml").write_text(POLICY)
    work = RunningDaemon(base).workspace
    (work / "kept").mkdir()
    for name in ("a.txt", "asked.txt", "gone.txt", "kept/b.txt"):
        (work / name).write_text(TEXT)
    with running(base) as daemon:
        yield daemon


class Said:
    """What the program answered."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err
        decided = json.loads(out)["hookSpecificOutput"] if out.strip() else {}
        self.denied = code == 2 or decided.get("permissionDecision") == "deny"
        self.reason = err if code == 2 else decided.get("permissionDecisionReason", "")
        self.told = decided.get("additionalContext", "")
        assert decided.get("permissionDecision") != "allow", "it must not stand in for the person's own permission"


class Claude:
    """A client with its own tools, which runs its hooks around them."""

    def __init__(self, daemon: RunningDaemon, session: str = SESSION, agent: str = "claude") -> None:
        self._daemon, self._session, self._agent = daemon, session, agent
        self._calls = 0

    async def hook(self, payload: dict[str, Any] | bytes, *options: str) -> Said:
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        command = [sys.executable, "-I", "-S", "-c", BOOT, "hook", "claude", "--agent", self._agent, *options]
        done = await anyio.run_process(command, input=data, env=self._daemon.env, check=False)
        return Said(done.returncode, done.stdout.decode(), done.stderr.decode())

    def event(self, tool: str, takes: dict[str, Any], *, name: str = "PreToolUse", **more: Any) -> dict[str, Any]:
        return {
            "hook_event_name": name,
            "session_id": self._session,
            "cwd": str(self._daemon.workspace),
            "tool_name": tool,
            "tool_input": takes,
            "tool_use_id": f"toolu_{self._session}_{self._calls}",
            **more,
        }

    async def before(self, tool: str, *options: str, **takes: Any) -> Said:
        self._calls += 1
        return await self.hook(self.event(tool, takes), *options)

    async def after(self, tool: str, response: Any = None, *options: str, **takes: Any) -> Said:
        return await self.hook(self.event(tool, takes, name="PostToolUse", tool_response=response), *options)

    def path(self, name: str) -> Path:
        return self._daemon.workspace / name

    async def read(self, name: str) -> None:
        takes = {"file_path": str(self.path(name))}
        assert not (await self.before("Read", **takes)).denied
        lines = self.path(name).read_text().count("\n")
        file = {"content": "…", "startLine": 1, "numLines": lines, "totalLines": lines}
        assert (await self.after("Read", {"file": file}, **takes)).out == ""

    async def edit(self, name: str, old: str, new: str) -> Said:
        takes = {"file_path": str(self.path(name)), "old_string": old, "new_string": new}
        said = await self.before("Edit", **takes)
        if not said.denied:
            self.path(name).write_text(self.path(name).read_text().replace(old, new))
            assert (await self.after("Edit", {}, **takes)).code == 0
        return said


ROOT = Path(__file__).parents[2]
BOOT = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from orchestrator.__main__ import main; sys.exit(main())"


async def authors(daemon: RunningDaemon, path: str) -> list[str | None]:
    async with daemon.client() as person:
        return [row.agent for row in (await person.file_history(path)).versions]


async def test_an_edit_is_its_agents_and_is_undone_like_any_other(daemon: RunningDaemon) -> None:
    claude = Claude(daemon)
    await claude.read("a.txt")
    assert not (await claude.edit("a.txt", "two", "TWO")).denied
    assert await authors(daemon, "a.txt") == ["claude", None]
    async with daemon.client("bob") as bob, daemon.client() as person, daemon.client("claude") as own:
        blamed = await bob.blame("a.txt")
        assert [(part.start, part.agent) for part in blamed.ranges] == [(1, None), (2, "claude"), (3, None)]
        (change,) = await entries(person, "external_file_changed")
        (group,) = await entries(person, "external_batch_opened")
        assert (group.agent, group.event["trigger"], group.event["tool"]) == ("claude", "hook", "claude Edit")
        assert (change.cause, change.session) == (group.seq, group.session)
        await bob.edit_file("a.txt", [Replacement(search="six", replace="six of bob")])
        assert (await own.rollback(agent="claude")).status == "applied"
        assert claude.path("a.txt").read_text() == TEXT.replace("six", "six of bob")
    await agrees(daemon)


async def test_the_watcher_may_come_first(daemon: RunningDaemon) -> None:
    claude, path = Claude(daemon), str(daemon.workspace / "a.txt")
    await claude.read("a.txt")
    takes = {"file_path": path, "old_string": "two", "new_string": "TWO"}
    assert not (await claude.before("Edit", **takes)).denied
    claude.path("a.txt").write_text(TEXT.replace("two", "TWO"))
    async with daemon.client() as person:
        await seen(person, daemon.workspace)
    await claude.after("Edit", {}, **takes)
    assert await authors(daemon, "a.txt") == ["claude", None]


async def test_another_programs_write_before_the_tool_is_not_the_agents(daemon: RunningDaemon) -> None:
    claude, path = Claude(daemon), str(daemon.workspace / "a.txt")
    await claude.read("a.txt")
    takes = {"file_path": path, "old_string": "two", "new_string": "TWO"}
    assert not (await claude.before("Edit", **takes)).denied  # its person is asked for a while
    claude.path("a.txt").write_text("somebody else's\n")
    async with daemon.client() as person:
        await seen(person, daemon.workspace)
    assert await authors(daemon, "a.txt") == ["outside", None]


async def test_a_stale_edit_is_denied_with_what_changed(daemon: RunningDaemon) -> None:
    claude = Claude(daemon)
    await claude.read("a.txt")
    async with daemon.client("bob") as bob:
        await bob.edit_file("a.txt", [Replacement(search="three", replace="drei")])
        said = await claude.edit("a.txt", "two", "TWO")
        assert said.denied
        assert "by bob" in said.reason
        assert "-three\n+drei" in said.reason
        assert "Read the file again" in said.reason
        assert claude.path("a.txt").read_text() == TEXT.replace("three", "drei")
        await claude.read("a.txt")
        assert not (await claude.edit("a.txt", "two", "TWO")).denied
        assert not (await claude.edit("a.txt", "one", "ONE")).denied  # its own edit leaves it knowing the file


async def test_who_read_a_file_is_told_of_an_edit_by_a_tool(daemon: RunningDaemon) -> None:
    async with daemon.client("bob") as bob:
        await bob.read_file("a.txt")
        claude = Claude(daemon)
        await claude.read("a.txt")
        await claude.edit("a.txt", "two", "TWO")
        await bob.list_files()
        assert [(notice.path, notice.by) for notice in bob.take_notices()] == [("a.txt", ("claude",))]


async def test_policy_leases_and_unread_files_keep_a_tool_out(daemon: RunningDaemon) -> None:
    claude, path = Claude(daemon), str(daemon.workspace / "a.txt")
    said = await claude.before("Read", file_path=str(daemon.workspace / "kept/b.txt"))
    assert (said.denied, "kept" in said.reason) == (True, True)
    said = await claude.before("Write", file_path=str(daemon.workspace / "kept/new.txt"), content="x")
    assert said.denied
    said = await claude.before("Write", file_path=path, content="x")
    assert said.denied
    assert "Read a.txt" in said.reason
    async with daemon.client("bob") as bob:
        await bob.reserve_paths(["a.txt"])
        await claude.read("a.txt")
        said = await claude.before("Edit", file_path=path, old_string="two", new_string="TWO")
        assert not said.denied  # by default others are warned of a lease, and merged with
    (daemon.state_dir / "policy.toml").write_text(POLICY + '\n[leases]\non_overlap = "deny"\n')
    async with daemon.client() as person:
        await person.policy_reload(approver=await daemon.make_approver())
    async with daemon.client("bob") as bob:
        await bob.reserve_paths(["a.txt"])
        said = await claude.before("Edit", file_path=path, old_string="two", new_string="TWO")
        assert said.denied
        assert "reserved by bob" in said.reason


async def test_what_policy_asks_about_is_put_to_a_person_and_made_by_the_daemon(daemon: RunningDaemon) -> None:
    claude = Claude(daemon)
    await claude.read("asked.txt")
    said = await claude.edit("asked.txt", "two", "TWO")
    assert said.denied
    assert "Approval pending as @" in said.reason
    number = said.reason.split("Approval pending as ")[1].split(".")[0]
    code = await daemon.make_approver()
    async with daemon.client() as person:
        await person.approvals_show(number)
        await person.approve(number, approver=code)
    assert claude.path("asked.txt").read_text() == TEXT.replace("two", "TWO")
    assert (await authors(daemon, "asked.txt"))[0] == "claude"


async def test_what_a_shell_command_changed_is_its_agents(daemon: RunningDaemon) -> None:
    claude = Claude(daemon)
    assert not (await claude.before("Bash", command="make")).denied
    claude.path("a.txt").write_text(TEXT + "seven\n")
    async with daemon.client() as person:
        await seen(person, daemon.workspace)  # the watcher takes a part of it in while the command runs
    claude.path("made").mkdir()
    claude.path("made/new.txt").write_text("new\n")
    claude.path("gone.txt").unlink()
    await claude.after("Bash", {"stdout": ""}, command="make")
    for name in ("a.txt", "made/new.txt", "gone.txt"):
        assert (await authors(daemon, name))[0] == "claude", name
    async with daemon.client() as person, daemon.client("claude") as own:
        (opened,) = [e for e in await entries(person, "external_batch_opened") if e.event.get("tool")]
        answer = await own.revert(opened.seq)
        assert answer.status == "applied", answer
    assert claude.path("a.txt").read_text() == TEXT
    assert claude.path("gone.txt").read_text() == TEXT
    assert not claude.path("made/new.txt").exists()
    claude.path("a.txt").write_text("a person's\n")
    async with daemon.client() as person:
        await seen(person, daemon.workspace)
    assert (await authors(daemon, "a.txt"))[0] == "outside"


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"rubbish", id="no JSON"),
        pytest.param(b'{"hook_event_name": "PreToolUse", "tool_name": "Edit\xff"}', id="no UTF-8"),
        pytest.param(b"[" * 100_000, id="endless nesting"),
        pytest.param(b'{"hook_event_name": "Stop"}', id="another event"),
        pytest.param(b'{"hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_input": {}}', id="no path"),
        pytest.param(b'{"hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_input": 3}', id="no object"),
    ],
)
async def test_what_it_cant_read_it_denies(daemon: RunningDaemon, payload: bytes) -> None:
    assert (await Claude(daemon).hook(payload)).denied


async def test_odd_orders_and_odd_places(daemon: RunningDaemon) -> None:
    claude, path = Claude(daemon), str(daemon.workspace / "a.txt")
    assert (await claude.before("WebFetch", url="http://x")).out == ""
    outside = daemon.base / "outside.txt"
    outside.write_text(TEXT)
    assert (await claude.before("Write", file_path=str(outside), content="x")).out == ""
    (daemon.workspace / "link").symlink_to(daemon.base)
    assert (await claude.before("Write", file_path=str(daemon.workspace / "link/outside.txt"), content="x")).denied
    (daemon.base / "other").symlink_to(daemon.workspace)
    assert (await claude.before("Read", file_path=str(daemon.base / "other/kept/b.txt"))).denied
    takes = {"file_path": path, "old_string": "two", "new_string": "TWO"}
    claude.path("a.txt").write_text(TEXT.replace("two", "TWO"))
    assert (await claude.after("Edit", {}, **takes)).code == 0  # without a word before it
    assert (await claude.after("Edit", {}, **takes)).code == 0  # and again
    assert len(await authors(daemon, "a.txt")) == 2
    huge = await claude.before("Write", file_path=str(daemon.workspace / "huge.txt"), content="x" * (20 << 20))
    assert huge.denied


async def test_without_a_daemon_the_installed_rule_holds(daemon: RunningDaemon) -> None:
    claude, path = Claude(daemon), str(daemon.workspace / "a.txt")
    daemon.stop()
    said = await claude.before("Read", file_path=path)
    assert said.denied
    assert "orchestrator up" in said.reason
    assert (await claude.before("Read", "--without-daemon", "allow", file_path=path)).out == ""
    assert (await claude.before("Read", "--without-daemon", "perhaps", file_path=path)).denied


async def test_a_daemon_that_hangs_is_not_waited_for(daemon: RunningDaemon) -> None:
    with daemon.held():
        said = await Claude(daemon).before("Read", file_path=str(daemon.workspace / "a.txt"))
    assert said.denied
    assert "in time" in said.reason
