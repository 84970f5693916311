"""A daemon that is hard to find: its starter, its socket or its location file is gone, or it is still starting."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from orchestrator.api import locations, processes
from orchestrator.clients import connection, running_daemon
from orchestrator.clients.cli import daemon as command_line
from orchestrator.core.errors import DaemonUnreachable
from tests.daemon.cli import cli, command
from tests.daemon.daemon_process import READY_S, RunningDaemon


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(base, executed=True)
    yield daemon
    daemon.stop()
    assert processes.serving(str(daemon.workspace)) is None, "only one was started"


def started_unheard(daemon: RunningDaemon) -> None:
    """As by a starter that goes away at once."""
    read, write = os.pipe()
    os.close(read)
    where = ("--workspace", str(daemon.workspace), "--state-dir", str(daemon.state_dir), "--socket", socket_of(daemon))
    with (daemon.base / "daemon.log").open("ab") as log:
        daemon.process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator", "daemon", *where, "--ready-fd", str(write)],
            pass_fds=(write,),
            env={"PYTHONPATH": os.getcwd(), **daemon.env},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    os.close(write)
    while processes.holder_of(str(daemon.state_dir)) is None:
        assert daemon.process.poll() is None, daemon.log


def socket_of(daemon: RunningDaemon) -> str:
    """Where `up` expects it."""
    folder = daemon.runtime / "orchestrator"
    folder.mkdir(mode=0o700, exist_ok=True)
    return f"{folder}/{daemon.id}.sock"


def test_a_daemon_whose_starter_went_away_serves(daemon: RunningDaemon) -> None:
    started_unheard(daemon)
    assert daemon.process is not None
    code, reported = command(daemon, "up", "--state-dir", str(daemon.state_dir))
    assert (code, reported["pid"], reported["started"]) == (0, daemon.process.pid, False)
    assert command(daemon, "status")[0] == 0


class AtOnce(running_daemon.WorkspaceDaemon):
    """Looks for a daemon a moment before there is one, then starts one."""

    tried = False

    def find(self) -> locations.Location | None:
        return super().find() if self.tried else None

    def _wait(self) -> locations.Location | None:
        return super()._wait() if self.tried else None

    def _start(self, state_dir: str, options: Sequence[str]) -> locations.Location:
        self.tried = True
        return super()._start(state_dir, options)


def test_of_two_that_are_started_at_once_with_two_homes_one_serves(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert daemon.start()["ok"]
    assert daemon.process is not None
    other = daemon.base / "other"
    other.mkdir()
    monkeypatch.setenv("HOME", str(other))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(daemon.runtime))
    location, started = AtOnce(str(daemon.workspace)).ensure()
    assert (location.pid, started) == (daemon.process.pid, False)


def lose_the_socket(daemon: RunningDaemon) -> None:
    daemon.socket.unlink()


def lose_its_folder(daemon: RunningDaemon) -> None:
    shutil.rmtree(daemon.runtime)


def lose_the_location(daemon: RunningDaemon) -> None:
    Path(locations.location_file(daemon.id).replace(locations.home_directory(), str(daemon.home))).unlink(
        missing_ok=True
    )


def lose_both(daemon: RunningDaemon) -> None:
    lose_the_socket(daemon)
    lose_the_location(daemon)


@pytest.mark.parametrize(
    "lose",
    [
        lose_the_socket,
        lose_the_location,
        *(pytest.param(how, marks=pytest.mark.soak) for how in (lose_its_folder, lose_both)),
    ],
)
def test_what_was_lost_comes_back_and_every_command_waits_for_it(
    daemon: RunningDaemon, lose: Callable[[RunningDaemon], None]
) -> None:
    assert daemon.start()["ok"]
    assert daemon.process is not None
    for words in (("status",), ("up", "--state-dir", str(daemon.state_dir)), ("stop",)):
        lose(daemon)
        code, reported = command(daemon, *words)
        assert code == 0, (words, reported)
        assert reported.get("pid") in (daemon.process.pid, None)
    assert daemon.wait() == 0


def test_one_that_can_not_listen_is_ended_by_its_process(
    daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(daemon.home))
    assert daemon.start()["ok"]
    shutil.rmtree(daemon.runtime)
    daemon.runtime.write_text("in the way")
    found = processes.serving(str(daemon.workspace))
    assert found is not None
    assert daemon.process is not None
    assert (found.pid, found.state_dir, found.socket) == (
        daemon.process.pid,
        str(daemon.state_dir),
        str(daemon.socket),
    )
    assert "ended by a signal" in command_line._ended(found).message
    known = locations.read_location(daemon.id)
    assert known is not None
    assert known.state == "stopped", "no agent starts it again"
    assert daemon.process.wait(READY_S) == 0
    assert processes.serving(str(daemon.workspace)) is None
    assert processes.holder_of(str(daemon.state_dir)) is None


def test_one_that_hangs_is_named_with_what_ends_it(daemon: RunningDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(daemon.home))
    assert daemon.start()["ok"]
    assert daemon.process is not None
    pid = daemon.process.pid
    monkeypatch.setattr(connection, "CONNECT_TIMEOUT_S", 0.1)
    monkeypatch.setattr(running_daemon, "ENDING_TIMEOUT_S", 0.1)
    found = processes.serving(str(daemon.workspace))
    assert found is not None
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(DaemonUnreachable) as silent:
            connection.Connection(str(daemon.socket), connection.Caller())
        with pytest.raises(DaemonUnreachable) as living:
            command_line._ended(found)
    finally:
        daemon.process.send_signal(signal.SIGCONT)
    for refused in (silent.value, living.value):
        assert f"process {pid}" in refused.message
        assert f"kill -9 {pid}" in refused.hint
    assert daemon.wait() == 0


def test_stop_returns_when_the_process_has_ended(daemon: RunningDaemon) -> None:
    """Its lock is free before that."""
    assert daemon.start()["ok"]
    assert daemon.process is not None
    assert command(daemon, "stop")[0] == 0
    assert daemon.process.poll() == 0


def test_a_workspace_inside_or_around_one_of_another_home(daemon: RunningDaemon, base: Path) -> None:
    assert daemon.start()["ok"]
    inner = daemon.workspace / "inner"
    inner.mkdir()
    for workspace in (inner, base):
        other = RunningDaemon(inner, executed=True)
        other.workspace = workspace
        said = other.start()
        assert (said["ok"], said["code"]) == (False, "workspace_nested")
        assert str(daemon.workspace) in str(said["message"])
        assert str(daemon.state_dir) in str(said["hint"])
        assert other.wait() == 1
    assert daemon.stop() == 0
    assert other.start()["ok"], "with that one stopped"
    assert other.stop() == 0


PYTHON_CLIENT = """
import anyio, sys
from orchestrator.clients.python import FileAccess
async def main():
    async with FileAccess.connect(sys.argv[1]) as files:
        print((await files.read_file("seen.txt", line_numbers=False)).text, end="")
anyio.run(main)
"""


def call_over_mcp(daemon: RunningDaemon, other: dict[str, str]) -> tuple[str, str]:
    """Two listings by an agent; both answers."""
    lines = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        *(
            {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "list_files", "arguments": {}}}
            for id in (1, 2)
        ),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", "mcp", "--workspace", str(daemon.workspace), "--agent", "bob"],
        env={**daemon.env, **other},
        input="".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        check=False,
        timeout=READY_S,
    )
    heard = {line["id"]: line for line in map(json.loads, done.stdout.splitlines())}
    return json.dumps(heard[1]), json.dumps(heard[2])


def test_a_client_of_another_home_uses_the_daemon_that_serves(daemon: RunningDaemon, base: Path) -> None:
    assert daemon.start()["ok"]
    (daemon.workspace / "seen.txt").write_text("x\n")
    other = {"HOME": str(base / "h2"), "XDG_RUNTIME_DIR": str(base / "r2")}
    for name in ("h2", "r2"):
        (base / name).mkdir(mode=0o700)
    assert all("seen.txt" in answer for answer in call_over_mcp(daemon, other))
    words = ("--workspace", str(daemon.workspace), "--json", "up")
    up = [sys.executable, "-m", "orchestrator", *words]
    said = json.loads(subprocess.check_output(up, env={**daemon.env, **other}, stdin=subprocess.DEVNULL))
    assert daemon.process is not None
    assert (said["pid"], said["started"]) == (daemon.process.pid, False)
    asked = [sys.executable, "-c", PYTHON_CLIENT, str(daemon.workspace)]
    assert subprocess.check_output(asked, env={**daemon.env, **other}, text=True) == "x\n"
    daemon.runtime.chmod(0o755)  # as if it were another user's
    for answer in call_over_mcp(daemon, other):
        assert "workspace_held" in answer
        assert "Leave it running" in answer
        assert "orchestrator stop" not in answer
    assert not list((base / "h2").rglob("daemon.log")), "no daemon is started in vain"
    daemon.runtime.chmod(0o700)


@pytest.mark.parametrize("word", ["up", "status", "stop", "files"])
def test_a_daemon_that_can_not_be_seen_is_named_as_one(base: Path, word: str) -> None:
    """Its lock on the root shows it, and none of its commands leads in a circle."""
    stopped = RunningDaemon(base)
    handle = os.open(stopped.workspace, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        ended, said = cli(stopped, word)
    finally:
        os.close(handle)
    assert ended == 1
    assert "workspace_held: a daemon that can't be seen from here serves" in said
    assert "where it was started" in said


def test_python_clients_that_find_no_daemon_start_one_together(base: Path) -> None:
    """The first call of each is answered by it; it is a daemon as any other, which `stop` ends."""
    daemon = RunningDaemon(base)
    (daemon.workspace / "seen.txt").write_text("x\n")
    env = {**daemon.env, "XDG_STATE_HOME": str(daemon.state_dir)}
    asked = [sys.executable, "-c", PYTHON_CLIENT, str(daemon.workspace)]
    clients = [subprocess.Popen(asked, env=env, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        assert [client.communicate(timeout=READY_S)[0] for client in clients] == ["x\n", "x\n"]
    finally:
        ended, said = cli(daemon, "stop", XDG_STATE_HOME=str(daemon.state_dir))
    assert ended == 0, said
    assert processes.serving(str(daemon.workspace)) is None
    (log,) = daemon.state_dir.rglob("daemon.log")
    assert [line["event"] for line in map(json.loads, log.read_text().splitlines())].count("stopped") == 1
