"""From the start of a process to its answer to tools/list, as an agent meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from orchestrator.api.toolsets import TOOLSETS
from tests.benchmarks.measuring import Row, Samples, Target, Work, in_turns, plain
from tests.benchmarks.setting import Rows, Setting

HANDSHAKE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "0"},
}


async def rows(setting: Setting) -> Rows:
    """Ours with the daemon running, a bare server, and the peers."""
    bare: tuple[str, ...] = (sys.executable, "-I", str(Path(__file__).with_name("bare.py")))
    env = setting.daemon.env
    peers = {"bare stdlib server": bare}
    for peer in (setting.largefile, setting.filesystem):
        if peer.command:
            peers[peer.name] = peer.command
    contenders = {"ours": plain(lambda: listed_tools(setting.transport("starter"), env))}
    contenders |= {name: plain(lambda command=command: listed_tools(command)) for name, command in peers.items()}  # type: ignore[misc]
    taken = await in_turns(contenders, setting.times(15))
    target = Target(at_most_ms=80.0)
    listed = [
        Row(
            work="stdio transport: start to tools/list",
            ours=taken["ours"],
            peer=name,
            theirs=taken[name],
            target=target,
        )
        for name in peers
    ]
    for peer in (setting.largefile, setting.filesystem):
        if peer.trouble:
            none = Samples([], peer.trouble)
            row = Row(work="stdio transport: start to tools/list", ours=taken["ours"], peer=peer.name, theirs=none)
            listed.append(row)
    return [*listed, *await _of_toolsets(setting), await _of_hook(setting)]


async def _of_hook(setting: Setting) -> Row:
    """The whole process that an agent's client waits for before each of its own calls."""
    root = setting.daemon.workspace
    event = {
        "hook_event_name": "PreToolUse",
        "session_id": "benchmark",
        "cwd": str(root),
        "tool_name": "Read",
        "tool_input": {"file_path": str(root / "orchestrator-hook-check")},
        "tool_use_id": "toolu_1",
    }
    script = str(Path(sys.executable).with_name("orchestrator"))
    work = plain(lambda: _ran((script, "hook", "claude"), json.dumps(event).encode(), setting.daemon.env))
    bare = plain(lambda: _ran((sys.executable, "-I", "-S", "-c", "pass"), b"", setting.daemon.env))
    taken = await in_turns({"hook": work, "bare": bare}, setting.times(40))
    return Row(
        work="hook: a client's own read, before it",
        ours=taken["hook"],
        peer="bare interpreter",
        theirs=taken["bare"],
        target=Target(at_most_ms=60.0),
    )


def _ran(command: tuple[str, ...], data: bytes, env: Mapping[str, str]) -> None:
    ran = subprocess.run(command, input=data, capture_output=True, env=env, check=True)
    assert ran.stdout == b"", ran.stdout


async def _of_toolsets(setting: Setting) -> Rows:
    def listing(toolset: str) -> Work:
        return plain(lambda: listed_tools((*setting.transport("starter"), "--toolset", toolset), setting.daemon.env))

    taken = await in_turns({name: listing(name) for name in TOOLSETS}, setting.times(10))
    work, target = "stdio transport, --toolset", Target(at_most_ms=80.0)
    return [Row(work=f"{work} {name}: start to tools/list", ours=its, target=target) for name, its in taken.items()]


def listed_tools(command: tuple[str, ...], env: Mapping[str, str] | None = None) -> None:
    """Start, shake hands, ask for the tools, and go once they are here."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env
    ) as process:
        try:
            _ask(process, 1, "initialize", HANDSHAKE)
            _say(process, {"jsonrpc": "2.0", "method": "notifications/initialized"})
            assert "tools" in _ask(process, 2, "tools/list", {})
        finally:
            process.kill()


def _ask(process: subprocess.Popen[bytes], id: int, method: str, params: Mapping[str, object]) -> dict[str, object]:
    _say(process, {"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    assert process.stdout is not None
    for line in process.stdout:
        reply = json.loads(line)
        if reply.get("id") == id:
            result: dict[str, object] = reply["result"]
            return result
    raise AssertionError(f"{process.args!r} ended before it answered {method}")


def _say(process: subprocess.Popen[bytes], message: Mapping[str, object]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()
