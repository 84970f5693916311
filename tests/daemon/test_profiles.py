"""Profiles as agents of a class meet them: reads, answers, changes, calls, tools, rungs and leases."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from msgspec.structs import fields

from orchestrator.api.toolsets import DROP_IN
from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from orchestrator.servers.toolsets.drop_in import DROP_IN as ENTRIES
from tests.daemon.cli import command
from tests.daemon.daemon_process import RunningDaemon, running

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def agent(base: Path, *limits: str, more: str = "") -> AsyncIterator[tuple[RunningDaemon, FileAccess]]:
    """An agent named alice under a profile of these limits."""
    (base / "state").mkdir(mode=0o700)
    profile = "\n".join(('[[profile]]\nname = "small"\nagents = ["alice"]', *limits, more))
    (base / "state/policy.toml").write_text(f'name = "ours"\nextends = "default"\n{profile}\n')
    with running(base) as daemon:
        (daemon.workspace / "a.txt").write_text("".join(f"line {n}\n" for n in range(1, 501)))
        async with daemon.client("alice") as alice:
            yield daemon, alice


@pytest.mark.parametrize(
    ("limit", "rule", "end"),
    [("max_read_lines = 100", "max_read_lines", 100), ("max_read_bytes = 700", "max_read_bytes", 88)],
)
async def test_a_read_over_the_limit_names_the_call_that_fits(base: Path, limit: str, rule: str, end: int) -> None:
    async with agent(base, limit) as (daemon, alice):
        with pytest.raises(RemoteError) as refused:
            await alice.read_file("a.txt")
        assert (refused.value.code, refused.value.details["rule"]) == ("over_limit", f"profile.small.{rule}")
        assert f'read_file(path="a.txt", start=1, end={end})' in (refused.value.hint or "")
        part = await alice.read_file("a.txt", start=1, end=end)
        assert part.end == end
        async with daemon.client("bob") as bob:
            assert (await bob.read_file("a.txt")).end == 500


@pytest.mark.parametrize("limit", ["max_read_lines = 100", "max_read_bytes = 700"])
async def test_an_excerpt_names_calls_that_fit(base: Path, limit: str) -> None:
    async with agent(base, limit) as (_, alice):
        excerpt = await alice.get_excerpt("a.txt", max_lines=20, leave_out="middle")
        (left,) = excerpt.left_out
        assert left.next is not None
        start, end = map(int, re.findall(r"\d+", left.next))
        part = await alice.read_file("a.txt", start=start, end=end)
        assert (part.start, part.end, start) == (left.start, end, left.start)
        with pytest.raises(RemoteError):  # no more would fit
            await alice.read_file("a.txt", start=start, end=end + 1)


async def test_a_person_lifts_the_limit_of_a_read_once(base: Path) -> None:
    async with agent(base, "max_read_lines = 100", 'over_limit = "ask"') as (daemon, alice):
        with pytest.raises(RemoteError) as refused:
            await alice.read_file("a.txt")
        assert refused.value.code == "approval_required"
        asked = refused.value.details["approval"]
        async with daemon.client() as person:
            assert "500 lines are asked for" in (await person.approvals_show(asked)).rule
            code = await daemon.make_approver()
            await person.approve(asked, approver=code)
        assert (await alice.read_file("a.txt")).end == 500
        with pytest.raises(RemoteError) as fewer:
            await alice.read_file("a.txt", end=400)
        async with daemon.client() as person:
            await person.approve(fewer.value.details["approval"], unseen=True, approver=code)
        assert (await alice.read_file("a.txt", end=400)).end == 400
        with pytest.raises(RemoteError) as more:  # than what was granted last
            await alice.read_file("a.txt", end=450)
        assert "450 lines are asked for" in more.value.message
        (daemon.workspace / "a.txt").write_text("x\n" * 101)
        with pytest.raises(RemoteError):  # another version
            await alice.read_file("a.txt")


async def test_answers_are_cut_and_go_on(base: Path) -> None:
    async with agent(base, "max_answer_tokens = 1000", "max_answer_lines = 100") as (_, alice):
        first = await alice.read_file("a.txt")
        assert first.truncated
        assert first.end < 100
        assert first.next == f'read_file(path="a.txt", start={first.end + 1})'
        assert len((await alice.search_content("line", max_results=400)).hits) < 100


async def test_a_change_over_the_limit(base: Path) -> None:
    async with agent(base, "max_change_bytes = 10") as (_, alice):
        calls = (
            alice.write_file("b.txt", "x" * 11, mode="create"),
            alice.edit_file("a.txt", [Replacement(search="line 1\n", replace="ä" * 6)]),
        )
        for call in calls:
            with pytest.raises(RemoteError) as refused:
                await call
            assert (refused.value.code, refused.value.details["most"]) == ("over_limit", 10)
        assert (await alice.write_file("b.txt", "x" * 10, mode="create")).status == "applied"


async def test_calls_in_a_minute(base: Path) -> None:
    async with agent(base, "max_calls_per_minute = 2") as (daemon, alice):
        await alice.list_files()
        await alice.list_files()
        with pytest.raises(RemoteError) as refused:
            await alice.list_files()
        assert refused.value.code == "too_many_calls"
        assert 0 < refused.value.details["retry_after_s"] <= 60
        async with daemon.client("bob") as bob:
            await bob.list_files()


async def test_a_tool_that_is_switched_off(base: Path) -> None:
    async with agent(base, 'tools_off = ["write_file"]') as (_, alice):
        with pytest.raises(RemoteError) as refused:
            await alice.write_file("b.txt", "x", mode="create")
        assert refused.value.code == "tool_switched_off"


async def test_a_lower_rung_and_a_reserved_path(base: Path) -> None:
    async with agent(base, 'lowest_rung = "current"', 'on_overlap = "deny"') as (daemon, alice):
        async with daemon.client("bob") as bob:
            seen = await alice.read_file("a.txt")
            await bob.edit_file("a.txt", [Replacement(search="line 400\n", replace="LINE 400\n")])
            change = [Replacement(search="line 3\n", replace="LINE 3\n")]
            moved = await alice.edit_file("a.txt", change, base=seen.version_id, preview=True)
            assert moved.would_be == "waiting"
            await bob.reserve_paths(("a.txt",))
            with pytest.raises(RemoteError) as refused:
                await alice.edit_file("a.txt", [Replacement(search="line 5\n", replace="LINE 5\n")])
            assert refused.value.code == "path_reserved"


@pytest.mark.parametrize(
    ("preset", "status"),
    [("default", "applied"), ("strict", "applied"), ("ask_all", "waiting"), ("read_only", "denied")],
)
async def test_a_preset_holds_from_init_on(daemon: RunningDaemon, preset: str, status: str) -> None:
    assert command(daemon, "policy", "init", "--from", preset, "--state-dir", str(daemon.state_dir))[0] == 0
    assert command(daemon, "policy", "reload", approver=await daemon.make_approver())[0] == 0
    async with daemon.client("alice") as alice:
        if status == "denied":
            with pytest.raises(RemoteError) as refused:
                await alice.write_file("a.txt", "x\n", mode="create")
            assert refused.value.code == "denied"
        else:
            assert (await alice.write_file("a.txt", "x\n", mode="create")).status == status


async def test_local_models_have_limits_from_init_on(daemon: RunningDaemon) -> None:
    code = await daemon.make_approver()
    command(daemon, "policy", "init", "--from", "local_models", "--state-dir", str(daemon.state_dir))
    assert command(daemon, "policy", "reload", approver=code)[0] == 0
    async with daemon.client() as person:
        token = (await person.agent_add("llama", agent_class="local", approver=code)).token
    async with daemon.client("llama", token=token) as llama:
        with pytest.raises(RemoteError) as refused:
            await llama.apply_patch("*** Begin Patch\n*** End Patch\n")
        assert refused.value.code == "tool_switched_off"


@pytest.mark.parametrize("off", [True, False])
async def test_tools_list_leaves_out_what_is_switched_off(base: Path, off: bool) -> None:
    more = 'tools_off = ["write_file"]' if off else ""
    async with agent(base, more) as (daemon, _):
        state = ("--state-dir", str(daemon.state_dir))
        script = str(Path(sys.executable).with_name("orchestrator"))
        for name, expected in (("alice", not off), ("bob", True)):
            options = ("mcp", "--workspace", str(daemon.workspace), *state, "--agent", name)
            server = StdioServerParameters(command=script, args=list(options), env=daemon.env)
            async with Client(server) as client:
                offered = {tool.name for tool in (await client.list_tools()).tools}
            assert ("write_file" in offered) is expected
            assert "edit_file" in offered


@pytest.mark.parametrize(
    ("toolset", "off", "left_out"),
    [
        pytest.param("filesystem", "directory_tree", {"directory_tree"}, id="by its own name"),
        pytest.param("filesystem", "write_file", {"write_file"}, id="by a name that the catalogue has, too"),
        pytest.param("editor", "edit_file", {"str_replace", "insert"}, id="by the operation that it calls"),
    ],
)
async def test_a_tool_of_another_server_is_switched_off(base: Path, toolset: str, off: str, left_out: set[str]) -> None:
    async with agent(base, f'tools_off = ["{off}"]') as (daemon, _):
        script = str(Path(sys.executable).with_name("orchestrator"))
        options = ["mcp", "--workspace", str(daemon.workspace), "--state-dir", str(daemon.state_dir)]
        options += ["--agent", "alice", "--toolset", toolset]
        path = str(daemon.workspace / "a.txt")
        given = {"path": path, "content": "x", "old_str": "line 7\n", "insert_line": 1, "new_str": "x"}
        async with Client(StdioServerParameters(command=script, args=options, env=daemon.env)) as client:
            listed = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
            assert set(listed) == set(DROP_IN[toolset]) - left_out
            for name in left_out:
                known = {
                    field.encode_name
                    for tool in ENTRIES[toolset].tools
                    if tool.name == name
                    for field in fields(tool.struct)
                }
                arguments = {key: value for key, value in given.items() if key in known}
                result = await client.call_tool(name, arguments)
                assert result.is_error
                assert "switched off for alice" in str(result.content)
        assert (daemon.workspace / "a.txt").read_text().startswith("line 1\nline 2\n")
