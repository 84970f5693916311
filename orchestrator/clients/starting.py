"""Starting the daemon, detached, unless one answers. Standard library only: the stdio door does this too."""

# Importing pathlib would take 6 ms of the stdio door's 45.
# ruff: noqa: PTH103, PTH111, PTH123

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from orchestrator.api import locations
from orchestrator.api.locations import Location
from orchestrator.core.errors import DaemonUnreachable, OperatorError, OrchestratorError

READY_TIMEOUT_S = 60.0
"""Opening the journal replays what its last snapshot lacks; the first answer comes after that."""

ENDING_TIMEOUT_S = 15.0
"""What a daemon that was told to stop gets for its last calls and its journal, before a new one is tried."""

DETACHED = "--detached"
"""Last among the daemon's arguments: it forks once more, so that no client is its parent (see `__main__`)."""

POLICY_FILE = "policy.toml"  # in the state directory; as in `daemon`, which no client imports

NEVER_KEPT = ("ORCHESTRATOR_", "PYTHON", "LD_")
"""Variables that begin so no policy hands on: a session, an approver code; and what decides which code runs."""

KEPT = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "XDG_RUNTIME_DIR", "XDG_STATE_HOME")
"""The environment the daemon gets beside what its policy names: no more of the agent that happened to start it."""


class StateDirectoryInUse(OperatorError):
    """The running daemon keeps its state elsewhere than asked for."""

    code = "state_directory_in_use"
    hint = "Leave out --state-dir, or run `orchestrator stop` first."


class DaemonDied(DaemonUnreachable):
    """The daemon ended before it was ready, without a word. Another start may succeed."""


class DaemonRefused(OrchestratorError):
    """The daemon said why it would not start, or not take us."""

    def __init__(self, told: dict[str, Any]) -> None:
        details = told.get("details")
        super().__init__(
            str(told.get("message", "the daemon refused")),
            hint=str(told.get("hint", "")),
            details=details if isinstance(details, dict) else {},
        )
        self.code = str(told.get("code", "internal"))  # type: ignore[misc]  # the daemon's code, not one of ours


def ensure(
    root: str, state_dir: str | None = None, *, options: Sequence[str] = (), timeout_s: float = READY_TIMEOUT_S
) -> tuple[Location, bool]:
    """The location of the workspace's daemon, started if none answers; and whether this call started it.

    `options` are for a daemon that this call starts; one that runs already stays as it is.
    Raises DaemonRefused with the daemon's own words, DaemonUnreachable, DaemonDied, StateDirectoryInUse,
    and what `locations.socket_path` raises.
    """
    identity = locations.workspace_id(root)
    wanted = locations.state_directory(identity, state_dir)
    found = _running(identity, wanted)
    if found is not None:
        return found, False
    with _locked(locations.start_lock(identity)):
        found = _running(identity, wanted)
        if found is not None:
            return found, False
        let_end(identity, wanted)
        return _start([*command(root, wanted, locations.socket_path(identity)), *options], wanted, timeout_s), True


def command(root: str, state_dir: str, socket: str) -> list[str]:
    """The daemon's command line. -P: a folder named `orchestrator` where it starts is not imported."""
    return [
        *(sys.executable, "-P", "-m", "orchestrator", "daemon"),
        *("--workspace", root, "--state-dir", state_dir, "--socket", socket),
    ]


def environment(state_dir: str) -> dict[str, str]:
    """What of our environment the daemon gets: the usual, and what the policy's reviewers and plugins are to have."""
    kept = {name: os.environ[name] for name in (*KEPT, *_named(state_dir)) if name in os.environ}
    kept.setdefault("HOME", locations.home_directory())
    return kept


def _named(state_dir: str) -> list[str]:
    """The variables that the operator's policy names; what is wrong with it the daemon says."""
    import tomllib

    try:
        with open(f"{state_dir}/{POLICY_FILE}", "rb") as file:
            policy = tomllib.load(file)
    except (OSError, ValueError):
        return []
    reviewers, plugins = policy.get("reviewer"), policy.get("plugins")
    tables = [
        table for table in (*(reviewers if isinstance(reviewers, list) else ()), plugins) if isinstance(table, dict)
    ]
    lists = [table.get("env") for table in tables]
    names = [table.get("api_key_env") for table in tables]
    names += [name for named in lists if isinstance(named, list) for name in named]
    return [name for name in names if isinstance(name, str) and not name.startswith(NEVER_KEPT)]


def check_state_directory(known: Location, wanted: str) -> None:
    """Raises StateDirectoryInUse where the daemon that answers there keeps its state elsewhere."""
    elsewhere = os.path.realpath(known.state_dir) != os.path.realpath(os.path.expanduser(wanted))
    if elsewhere and locations.answers(known.socket):
        raise StateDirectoryInUse(f"the daemon runs with the state directory {known.state_dir}")


def _running(identity: str, wanted: str) -> Location | None:
    found = locations.read_location(identity)
    if found is None or not locations.answers(found.socket):
        return None
    check_state_directory(found, wanted)
    return found


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """One starter at a time; the others wait for it, and it waits READY_TIMEOUT_S at most."""
    import fcntl

    os.makedirs(path.rpartition("/")[0], mode=0o700, exist_ok=True)
    with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def let_end(identity: str, state_dir: str) -> None:
    """Wait for a daemon that was told to stop: it closes its journal and its locks after its connections."""
    import fcntl
    import select

    known = locations.read_location(identity)
    if known is None or known.state == "running" or not hasattr(os, "pidfd_open"):
        return
    try:
        with open(f"{state_dir}/daemon.lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        try:
            process = os.pidfd_open(known.pid)
        except OSError:
            return  # it has ended since
    except OSError:
        return
    else:
        return  # nobody holds it
    try:
        select.select([process], [], [], ENDING_TIMEOUT_S)
    finally:
        os.close(process)


def _start(daemon_command: Sequence[str], state_dir: str, timeout_s: float) -> Location:
    import subprocess
    import threading

    os.makedirs(state_dir, mode=0o700, exist_ok=True)
    log = f"{state_dir}/daemon.log"
    ready, told = os.pipe()
    try:
        with open(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600), "ab") as output:
            daemon = subprocess.Popen(
                [*daemon_command, "--ready-fd", str(told), DETACHED],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                env=environment(state_dir),
                pass_fds=(told,),
                start_new_session=True,
            )
        os.close(told)
        told = -1
        threading.Thread(target=daemon.wait, name="reaper", daemon=True).start()
        line = _first_line(ready, timeout_s)
    finally:
        os.close(ready)
        if told >= 0:
            os.close(told)
    if line is None:
        raise DaemonUnreachable(f"the daemon was not ready after {timeout_s:.0f} s", hint=f"See {log}.")
    return _told(line, log)


def _first_line(fd: int, timeout_s: float) -> bytes | None:
    """Up to the newline or the end of the pipe; None when the time is over."""
    import select

    deadline = time.monotonic() + timeout_s
    line = b""
    while b"\n" not in line:
        readable, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
        if not readable:
            return None
        piece = os.read(fd, 65536)
        if not piece:
            break
        line += piece
    return line


def _told(line: bytes, log: str) -> Location:
    try:
        answer = json.loads(line)
    except ValueError:
        answer = None
    match answer:
        case {"ok": True, "pid": int(pid), "socket": str(socket), "workspace": str(root), "state_dir": str(state_dir)}:
            return Location(root, state_dir, socket, pid, "running")
        case {"ok": False}:
            raise DaemonRefused(answer)
        case _:
            raise DaemonDied("the daemon ended before it was ready", hint=f"Its last words are in {log}.")
