"""Starting the daemon: once, detached, and with its own words where it won't."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.api import locations, sockets
from orchestrator.clients import running_daemon
from orchestrator.clients.running_daemon import WorkspaceDaemon
from orchestrator.core.errors import DaemonUnreachable

LISTENER = """
    import json, os, socket, sys
    options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(options["--socket"])
    listener.listen()
    with open(options["--state-dir"] + "/seen", "w") as seen:
        facts = {"env": dict(os.environ), "cwd": os.getcwd(), "leads": os.getsid(0) == os.getpid()}
        handed = options.get("--variables-fd")
        facts["variables"] = os.pread(int(handed), 1000, 0).decode() if handed else None
        facts["stdin"] = os.path.realpath("/proc/self/fd/0")
        json.dump(facts, seen)
    print("it runs", flush=True)
    os.write(int(options["--ready-fd"]), json.dumps({
        "ok": True, "pid": os.getpid(), "socket": options["--socket"],
        "workspace": options["--workspace"], "state_dir": options["--state-dir"]}).encode() + b"\\n")
    os.close(int(options["--ready-fd"]))
    while listener.accept()[0].recv(1) != b"x":
        pass
"""


def play(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Have `script` started in the daemon's place."""

    given = running_daemon.command

    def command(*arguments: Any) -> list[str]:
        options = given(*arguments)
        return [sys.executable, "-c", textwrap.dedent(script), *options[options.index("--workspace") :]]

    monkeypatch.setattr(running_daemon, "command", command)


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch, workspace: Path) -> Iterator[None]:
    play(monkeypatch, LISTENER)
    yield
    with socket.socket(socket.AF_UNIX) as poke:
        poke.connect(sockets.socket_path(locations.workspace_id(str(workspace))))
        poke.sendall(b"x")


@pytest.fixture
def many_files() -> Iterator[None]:
    """As in a program that has more files open than `select` takes."""
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]
    yield
    for fd in opened:
        os.close(fd)


@pytest.mark.usefixtures("many_files", "listener")
def test_a_program_with_many_open_files_starts_one(workspace: Path, home: Path) -> None:
    _, started = WorkspaceDaemon(str(workspace), str(home / "state")).ensure()
    assert started


@pytest.mark.usefixtures("many_files")
def test_a_program_with_many_open_files_sees_one_end() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process, running_daemon.ending(process.pid):
        assert process.stdin is not None
        process.stdin.close()


def test_of_a_process_that_is_not_known_no_end_is_seen() -> None:
    """A client in a container, whose daemon is outside, learns no number of its process."""
    with running_daemon.ending(0):
        pass


@pytest.mark.usefixtures("listener")
def test_starts_it_detached_and_clean(workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    monkeypatch.setenv("ORCHESTRATOR_APPROVER", "secret")
    location, started = WorkspaceDaemon(str(workspace), str(home / "state")).ensure()
    assert started
    assert location.workspace == str(workspace)
    assert sockets.answers(location.socket)
    seen = json.loads((home / "state" / "seen").read_text())
    assert set(seen["env"]) - {"LC_CTYPE"} <= set(running_daemon.KEPT)
    assert seen["env"]["HOME"] == str(home)
    assert (seen["cwd"], seen["leads"], seen["stdin"]) == ("/", True, "/dev/null")
    log = home / "state" / "daemon.log"
    assert log.read_text() == "it runs\n"
    assert log.stat().st_mode & 0o777 == 0o600


@pytest.mark.usefixtures("listener")
def test_hands_on_what_the_policy_names(workspace: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = home / "state"
    state.mkdir()
    (state / locations.POLICY_FILE).write_text(
        '[[reviewer]]\nenv = ["REVIEW_KEY"]\n[[reviewer]]\nenv = ["PROGRAMS", "PYTHONPATH", "UNSET"]\n'
        '[plugins]\nenv = ["CHANGE_LOG_FILE", "LD_PRELOAD", "ORCHESTRATOR_APPROVER"]\n'
    )
    handed = {"REVIEW_KEY": "k", "PROGRAMS": "p = é", "CHANGE_LOG_FILE": "f"}
    never = {"PYTHONPATH": "/x", "LD_PRELOAD": "", "ORCHESTRATOR_APPROVER": "a", "OTHER": "o"}
    for name, value in (handed | never).items():
        monkeypatch.setenv(name, value)
    WorkspaceDaemon(str(workspace), str(state)).ensure()
    reported = json.loads((state / "seen").read_text())
    own = {name: value for name, value in reported["env"].items() if name not in (*running_daemon.KEPT, "LC_CTYPE")}
    assert own == {"CHANGE_LOG_FILE": "f"}, "what is for programs is in no environment of the daemon"
    assert reported["variables"] == "REVIEW_KEY=k\0PROGRAMS=p = é\0"


@pytest.mark.usefixtures("listener")
@pytest.mark.parametrize("policy", ["= broken", "reviewer = 3\nplugins = 4\n", '[[reviewer]]\nenv = "A"\n'])
def test_a_policy_that_is_wrong_names_nothing(workspace: Path, home: Path, policy: str) -> None:
    state = home / "state"
    state.mkdir()
    (state / locations.POLICY_FILE).write_text(policy)
    WorkspaceDaemon(str(workspace), str(state)).ensure()
    assert set(json.loads((state / "seen").read_text())["env"]) - {"LC_CTYPE"} <= set(running_daemon.KEPT)


@pytest.mark.usefixtures("listener")
def test_finds_the_one_that_runs(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    location, _ = WorkspaceDaemon(str(workspace)).ensure()
    locations.write_location(location)
    play(monkeypatch, "raise SystemExit('must not be started')")
    assert WorkspaceDaemon(str(workspace)).ensure() == (location, False)
    with pytest.raises(running_daemon.StateDirectoryInUse):
        WorkspaceDaemon(str(workspace), "/elsewhere").ensure()


def test_a_dead_pid_with_a_location_is_no_daemon(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sockets.socket_path(locations.workspace_id(str(workspace)))
    locations.write_location(locations.Location(str(workspace), f"{workspace}-state", path, os.getpid(), "running"))
    play(monkeypatch, "import sys; open(sys.argv[4] + '/started', 'w').close()")
    with pytest.raises(DaemonUnreachable):
        WorkspaceDaemon(str(workspace)).ensure()
    assert Path(f"{workspace}-state/started").exists(), "the state directory that the location names is kept to"


def test_its_refusal_is_reported(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = {"ok": False, "code": "workspace_nested", "message": "/a is served", "hint": "Use that.", "details": {}}
    play(monkeypatch, f"import os, sys; os.write(int(sys.argv[-2]), {json.dumps(refusal).encode()!r} + b'\\n')")
    with pytest.raises(running_daemon.RemoteError, match="/a is served") as caught:
        WorkspaceDaemon(str(workspace)).ensure()
    assert (caught.value.code, caught.value.hint) == ("workspace_nested", "Use that.")


def test_its_death_points_to_the_log(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, "raise SystemExit('no such journal')")
    with pytest.raises(DaemonUnreachable, match="before it was ready") as caught:
        WorkspaceDaemon(str(workspace)).ensure()
    log = caught.value.hint.split()[-1].rstrip(".")
    assert Path(log).read_text() == "no such journal\n"


def test_its_silence_ends(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, "import signal; signal.alarm(10); signal.pause()")
    monkeypatch.setattr(running_daemon, "READY_TIMEOUT_S", 0.0)
    with pytest.raises(DaemonUnreachable, match="not ready after 0 s"):
        WorkspaceDaemon(str(workspace)).ensure()


@pytest.mark.usefixtures("listener")
def test_two_starters_start_one(workspace: Path) -> None:
    """The second waits at the lock until the first has told where its daemon listens."""
    with running_daemon._locked(locations.start_lock(locations.workspace_id(str(workspace)))):
        second = subprocess.Popen(
            [sys.executable, "-c", SECOND, str(workspace)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert second.stdout
        assert second.stdout.readline() == "waiting\n"
        state = locations.state_directory(locations.workspace_id(str(workspace)))
        location = WorkspaceDaemon(str(workspace))._start(state, ())
        locations.write_location(location)
    with second:
        assert second.stdout.read() == f"{location.pid} False\n"


SECOND = """
import fcntl, sys
from orchestrator.clients.running_daemon import WorkspaceDaemon
lock = fcntl.flock
def told(file, how):
    if how == fcntl.LOCK_EX:
        print("waiting", flush=True)
    lock(file, how)
fcntl.flock = told
location, started = WorkspaceDaemon(sys.argv[1]).ensure()
print(location.pid, started)
"""
