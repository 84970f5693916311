"""`up`, `stop` and `--foreground` as people and supervisors use them, and workspaces that are taken."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.end_to_end.workspace_factory import ORCHESTRATOR, TIMEOUT_S, Place


def test_up_twice(place: Place) -> None:
    first, second = place.up(), place.up()
    assert (first["started"], second["started"]) == (True, False)
    assert first["approver_code"]
    assert second["approver_code"] is None
    for key in ("workspace", "workspace_id", "socket", "state_dir", "pid", "connect"):
        assert first[key] == second[key], key
    assert Path(first["state_dir"]).stat().st_mode & 0o777 == 0o700
    assert Path(first["socket"]).stat().st_mode & 0o777 == 0o600
    status = place.cli("status", "--json").json
    assert set(status) >= {"pid", "socket", "workspace", "head", "sessions", "approvals", "conflicts", "health"}
    assert status["head"].startswith("@")


def test_without_a_terminal_the_code_is_shown_in_json_only(place: Place) -> None:
    ran = place.cli("up")
    assert ran.code == 0
    assert "no approver code yet" in ran.out
    assert place.cli("status", "--json").json["approver"] == "missing"
    assert place.up()["approver_code"]
    assert place.cli("status", "--json").json["approver"] == "set"
    assert place.up()["approver_code"] is None


def test_foreground_ends_with_sigterm(place: Place) -> None:
    log = place.base / "foreground.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*ORCHESTRATOR, "--workspace", str(place.workspace), "up", "--foreground"],
            env=place.env,
            cwd=place.workspace,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        deadline = time.monotonic() + TIMEOUT_S
        while (ran := place.cli("status", "--json")).code == 4:  # not reachable yet
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline
        assert ran.json["pid"] == process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 0
    finally:
        process.kill()
        process.wait()
    assert place.cli("status").code == 4
    assert not Path(place.location["socket"]).exists()


def refused_by_mcp(place: Place, workspace: Path, env: dict[str, str]) -> dict[str, Any]:
    """What an MCP client is told where no daemon can be had: it has its tools, and each call is refused."""
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "printf", "version": "1"}}
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "list_files"}},
    ]
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    ran = place.run("mcp", "--workspace", str(workspace), workspace=workspace, stdin=lines, env=env)
    assert ran.code == 1
    first, second, third = map(json.loads, ran.out.splitlines())
    assert "result" in first
    assert second["result"]["tools"]
    assert third["result"]["isError"]
    reported: dict[str, Any] = json.loads(third["result"]["content"][0]["text"])
    assert reported["message"] in ran.err
    return reported


def test_a_workspace_inside_or_around_a_running_one(place: Place) -> None:
    inner, around = place.workspace / "inner", place.base
    inner.mkdir()
    place.up()
    for other, where in ((inner, f"around {inner}"), (around, f"inside {around}")):
        ran = place.run("--workspace", str(other), "up", "--json", env=place.env)
        assert ran.code == 1
        assert ran.json["code"] == "workspace_nested"
        assert ran.json["message"].endswith(f" serves {place.workspace}, which is {where}")
        assert refused_by_mcp(place, other, place.env)["code"] == "workspace_nested"
    assert place.cli("stop").code == 0
    assert place.run("--workspace", str(inner), "up", "--json", env=place.env).code == 0


def test_a_workspace_that_another_home_serves(place: Place) -> None:
    """Another HOME hides the location file; the daemon is found by its process, and no second one is started."""
    serving = place.up()
    elsewhere = place.base / "other"
    (elsewhere / "run").mkdir(parents=True, mode=0o700)
    env = {**place.env, "HOME": str(elsewhere), "XDG_RUNTIME_DIR": str(elsewhere / "run")}
    ran = place.run("--workspace", str(place.workspace), "up", "--json", env=env)
    assert ran.code == 0
    assert (ran.json["started"], ran.json["pid"]) == (False, serving["pid"])
    assert place.cli("status").code == 0
