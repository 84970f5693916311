"""The stdio transport across the daemon's end: killed in mid-call, stopped, with several transports open."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from mcp import Client
from mcp_types import CallToolResult, TextContent

from tests.daemon.daemon_process import RunningDaemon
from tests.end_to_end.workspace_factory import Place

pytestmark = pytest.mark.anyio

TEXT = "".join(f"line {n}\n" for n in range(1, 31))
EDIT = {"path": "a.txt", "changes": [{"search": "line 7\n", "replace": "line 7\nline seven and a half\n"}]}
EDITED = TEXT.replace("line 7\n", "line 7\nline seven and a half\n")


class Doomed:
    """A daemon that kills itself at a step of its next write."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._daemon: RunningDaemon | None = None

    def start(self, at: str) -> None:
        self._daemon = RunningDaemon(self._place.base, module=("-m", "tests.crash.crashing", "--at", at))
        assert self._daemon.start()["ok"]

    def died(self) -> None:
        assert self._daemon is not None
        assert self._daemon.wait() == -9

    def close(self) -> None:
        if self._daemon is not None:
            self._daemon.kill()


@pytest.fixture
def place(place: Place) -> Place:
    (place.workspace / "a.txt").write_text(TEXT)
    return place


@pytest.fixture
def doomed(place: Place) -> Iterator[Doomed]:
    made = Doomed(place)
    yield made
    made.close()


def reported(result: CallToolResult) -> dict[str, Any]:
    block = result.content[0]
    assert isinstance(block, TextContent)
    answer: dict[str, Any] = json.loads(block.text)
    return answer


async def session_of(client: Client) -> str:
    """The session's id, once it has read something: one that did nothing is not kept for resuming."""
    assert not (await client.call_tool("read_file", {"path": "a.txt"})).is_error
    status = (await client.call_tool("session_status", {})).structured_content
    assert status
    return str(status["session"])


@pytest.mark.parametrize(
    ("at", "mode"),
    [
        pytest.param("temp_half_written", "auto", id="before anything is on disk"),
        pytest.param("swapped", "legacy", id="after the file has changed"),
        pytest.param("written", "auto", id="before the outcome is in the journal"),
    ],
)
async def test_killed_in_mid_write(place: Place, doomed: Doomed, at: str, mode: Literal["auto", "legacy"]) -> None:
    doomed.start(at)
    async with place.client("alice", mode=mode) as client:
        session = await session_of(client)
        assert reported(await client.call_tool("edit_file", EDIT))["status"] == "applied"
        doomed.died()
        assert (place.workspace / "a.txt").read_text() == EDITED
        assert await session_of(client) == session
    versions = place.cli("log", "a.txt", "--json").json["versions"]
    assert [version["operation"] for version in versions if version["kind"] != "found"] == ["edit_file"]
    assert sorted(path.name for path in place.workspace.iterdir()) == ["a.txt"]
    for check in (("journal", "verify"), ("journal", "rebuild", "--check"), ("journal", "compare")):
        assert place.cli(*check, "--json").json["ok"], check


async def test_two_transports_after_one_crash(place: Place, doomed: Doomed) -> None:
    doomed.start("swapped")
    async with place.client("alice") as alice, place.client("bob", mode="legacy") as bob:
        sessions = [await session_of(client) for client in (alice, bob)]
        answers: list[dict[str, Any]] = []

        async def edit() -> None:
            answers.append(reported(await alice.call_tool("edit_file", EDIT)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(edit)
            listed = await bob.call_tool("list_files", {})
            assert not listed.is_error
        doomed.died()
        assert answers[0]["status"] == "applied"
        assert [await session_of(client) for client in (alice, bob)] == sessions
        status = place.cli("status", "--json").json
        assert {line["session"] for line in status["sessions"]} >= set(sessions)
        assert status["pid"] == place.pid


async def test_a_call_that_waits_goes_on_waiting_at_the_next_daemon(place: Place) -> None:
    place.up()
    async with place.client("alice") as client:
        waiting = await client.call_tool("write_file", {"path": "Makefile", "content": "all:\n", "mode": "create"})
        approval = reported(waiting)["approval"]
        answers: list[dict[str, Any]] = []

        async def wait() -> None:
            answers.append(reported(await client.call_tool("await_change", {"id": approval, "timeout_s": 2})))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await session_of(client)  # answered after the daemon has read the line before
            place.kill_daemon()
        assert answers[0]["status"] == "still_waiting"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_stop_then_up_with_a_transport_open(place: Place, mode: Literal["auto", "legacy"]) -> None:
    first = place.up()
    async with place.client("alice", mode=mode) as client:
        session = await session_of(client)
        assert place.cli("stop").code == 0
        assert place.cli("status").code == 4
        refused = await client.call_tool("read_file", {"path": "a.txt"})
        assert reported(refused)["code"] == "daemon_stopped"
        second = place.up()
        assert second["started"]
        assert second["pid"] != first["pid"]
        assert second["approver_code"] is None
        assert await session_of(client) == session
        assert place.pid == second["pid"]


async def test_the_transport_starts_a_daemon_that_was_killed_while_nothing_was_open(place: Place) -> None:
    async with place.client("alice") as client:
        session = await session_of(client)
        killed = place.kill_daemon()
        assert await session_of(client) == session
        assert place.pid != killed


async def test_a_daemon_that_a_signal_ended_is_started_again(place: Place) -> None:
    """Who ends processes is no person who says that there shall be no daemon."""
    async with place.client("alice") as client:
        session = await session_of(client)
        ended = place.pid
        os.kill(ended, signal.SIGTERM)
        assert await session_of(client) == session
        assert place.pid != ended


async def test_the_daemon_is_no_descendant_of_who_starts_it(place: Place) -> None:
    """An agent that ends all its descendants when it exits must not end the daemon of the others."""
    async with place.client("alice") as client:
        await session_of(client)
        assert os.getpid() not in ancestors(place.pid)
        assert os.getsid(place.pid) != place.pid, "it could take a terminal"


def ancestors(pid: int) -> list[int]:
    """Up to the first process."""
    found = []
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        found.append(pid)
    return found


def initialize(revision: str = "2025-11-25") -> list[dict[str, Any]]:
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "printf", "version": "1"}}
    return [
        {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]


def tool_call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def piped(place: Place, *messages: dict[str, Any], env: dict[str, str] | None = None) -> dict[Any, dict[str, Any]]:
    """What `printf … | orchestrator mcp` answers, by id."""
    lines = "".join(json.dumps(message) + "\n" for message in messages)
    ran = place.run("mcp", "--workspace", str(place.workspace), "--agent", "alice", stdin=lines, env=env)
    assert ran.code == 0, ran
    answers = [json.loads(line) for line in ran.out.splitlines()]
    return {answer["id"]: answer for answer in answers}


def test_what_is_piped_in_is_answered_to_the_last_line(place: Place) -> None:
    calls = [tool_call(n, "read_file", path="a.txt") for n in range(40)]
    writes = [tool_call(40 + n, "write_file", path=f"{n}.txt", content="x\n", mode="create") for n in range(10)]
    answers = piped(place, *initialize(), *calls, *writes)
    assert set(answers) == {"hello", *range(50)}
    assert all("result" in answer and not answer["result"].get("isError") for answer in answers.values())
    assert all((place.workspace / f"{n}.txt").exists() for n in range(10))


def test_piped_in_without_a_handshake(place: Place) -> None:
    """The 2026 era: each request says for itself which revision it speaks."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    calls = [tool_call(n, "read_file", path="a.txt") for n in range(20)]
    for call in calls:
        call["params"]["_meta"] = meta
    answers = piped(place, *calls)
    assert set(answers) == set(range(20))
    assert all(answer["result"]["resultType"] == "complete" for answer in answers.values())


def test_a_call_that_waits_at_the_end_of_input_is_answered(place: Place) -> None:
    request = tool_call(1, "write_file", path="Makefile", content="all:\n", mode="create")
    approval = json.loads(piped(place, *initialize(), request)[1]["result"]["content"][0]["text"])["approval"]
    answers = piped(place, *initialize(), tool_call(2, "await_change", id=approval, timeout_s=0.3))
    assert answers[2]["result"]["structuredContent"]["status"] == "still_waiting"


def test_with_only_home_in_the_environment(place: Place) -> None:
    env = {"HOME": str(place.home)}
    try:
        answers = piped(place, *initialize(), tool_call(1, "list_files"), env=env)
        assert not answers[1]["result"]["isError"]
        assert place.location["socket"].startswith(f"/tmp/orchestrator-{os.getuid()}/")
        found = place.cli("status", "--json")
        assert found.json["pid"] == place.pid
    finally:
        stopped = place.run("--workspace", str(place.workspace), "stop", env=env)
    assert stopped.code == 0
    assert not os.path.exists(place.location["socket"])


def test_a_transport_that_is_killed_in_mid_call_is_no_trouble(place: Place) -> None:
    request = tool_call(1, "write_file", path="Makefile", content="all:\n", mode="create")
    approval = json.loads(piped(place, *initialize(), request)[1]["result"]["content"][0]["text"])["approval"]
    transport = place.transport(agent="alice")
    process = subprocess.Popen(
        [transport.command, *transport.args],
        env=transport.env,
        cwd=place.base,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin
    assert process.stdout
    with process:
        calls = (tool_call(1, "await_change", id=approval, timeout_s=50), tool_call(2, "list_files"))
        process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in (*initialize(), *calls)))
        process.stdin.flush()
        assert [json.loads(process.stdout.readline())["id"] for _ in range(2)] == ["hello", 2]
        process.kill()
    assert place.cli("stop").code == 0  # though a call was open
    log = (Path(place.location["state_dir"]) / "daemon.log").read_text()
    assert '"level": "error"' not in log, log
    assert "Traceback" not in log, log
