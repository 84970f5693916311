"""Bytes that are no text, at the transports where people and programs can hand them in."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from orchestrator.clients.python import RemoteError
from tests.daemon.cli import command
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("words", "code"),
    [
        pytest.param(["open", b"b\xfead.txt"], "invalid_parameter", id="a path"),
        pytest.param(["blame", b"\xff"], "invalid_parameter", id="nothing else"),
        pytest.param(["rollback", "--glob", b"\xff"], "invalid_parameter", id="a glob"),
        pytest.param(["search", b"\xff"], "invalid_parameter", id="a pattern"),
        pytest.param(["open", "a.txt", "--agent", b"\xff"], "invalid_frame", id="a name"),
    ],
)
def test_on_the_command_line(daemon: RunningDaemon, words: list[str | bytes], code: str) -> None:
    at = ["--workspace", str(daemon.workspace)]
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", *words, *at, "--json"],
        env=daemon.env,
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
    reported = json.loads(done.stdout)
    assert (done.returncode, reported["code"]) == (1, code), (reported, done.stderr)


async def test_in_the_python_client(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as files:
        with pytest.raises(RemoteError) as met:
            await files.read_file("b\udcffad.txt")
        assert met.value.code == "invalid_parameter"
        with pytest.raises(RemoteError) as met:
            await files.list_files(".", globs=["\udcff"])
        assert met.value.code == "invalid_parameter"


def test_through_mcp_the_error_comes_under_the_calls_id(daemon: RunningDaemon) -> None:
    """A client that sends them as JSON escapes would wait for its id for ever."""

    def called(id: object, method: str, **params: object) -> dict[str, object]:
        return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}

    me = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    lines = [
        called(1, "initialize", **me),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        called(2, "tools/call", name="read_file", arguments={"path": "nu\udcff"}),
        called("three", "tools/call", name="search_content", arguments={"pattern": "\ud800"}),
        called("fo\udcffur", "tools/call", name="read_file", arguments={"path": "nu\udcff"}),
        called(5, "tools/\udcff"),
        called(6, "tools/call", name="list_files", arguments={}),
        called(7.5, "tools/call", name="list_files", arguments={}),
        called(None, "tools/call", name="list_files", arguments={}),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", "mcp", "--workspace", str(daemon.workspace), "--agent", "alice"],
        env=daemon.env,
        input=b"".join(json.dumps(line).encode() + b"\n" for line in lines),
        capture_output=True,
        check=False,
        timeout=60,
    )
    replies = {reply["id"]: reply for reply in map(json.loads, done.stdout.splitlines())}
    assert set(replies) == {1, 2, "three", "fo\udcffur", 5, 6, 7.5, None}, done.stderr
    for id in (2, "three", "fo\udcffur", 5):
        assert replies[id]["error"]["code"] == -32600
        assert "UTF-8" in replies[id]["error"]["message"]
    assert {replies[id]["error"]["code"] for id in (7.5, None)} == {-32600}, "each has a reply"
    assert not replies[6]["result"].get("isError")
    _, noted = command(daemon, "journal", "query", "--agent", "alice", "--outcome", "refused")
    assert [entry["event"]["code"] for entry in noted["entries"]] == ["invalid_frame"] * 6
