"""Starts the workspace's daemon, detached, unless one answers. Standard library only, for the stdio transport."""

# Importing pathlib would take 6 ms of the stdio transport's 45.
# ruff: noqa: PTH103, PTH123

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from orchestrator.api import locations, processes
from orchestrator.api.locations import Location
from orchestrator.clients.running_daemon import Waiting, find, readable, wait_for
from orchestrator.core.errors import DaemonUnreachable, OrchestratorError
from orchestrator.core.system_errors import state_trouble

READY_TIMEOUT_S = 60.0
"""How long a client waits that can't show how far a start is; the daemon goes on with it in any case."""

DETACHED = "--detached"
"""Last among the daemon's arguments: it forks once more, so that no client is its parent (see `__main__`)."""

POLICY_FILE = "policy.toml"  # in the state directory; as in `daemon`, which no client imports

NEVER_KEPT = ("ORCHESTRATOR_", "PYTHON", "LD_")
"""Prefixes of variables that no policy passes on: a session, an approver code, and what decides which code runs."""

KEPT = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "XDG_RUNTIME_DIR", "XDG_STATE_HOME")
"""The environment the daemon gets beside what its policy names for plugins: no more of whoever started it."""


class DaemonDied(DaemonUnreachable):
    """The daemon ended before it was ready, without a word. Another start may succeed."""


class DaemonRefused(OrchestratorError):
    """The daemon refused to start, or to authenticate the caller, and gave its reason."""

    def __init__(self, refusal: dict[str, Any]) -> None:
        details = refusal.get("details")
        super().__init__(
            str(refusal.get("message", "the daemon refused")),
            hint=str(refusal.get("hint", "")),
            details=details if isinstance(details, dict) else {},
        )
        self.code = str(refusal.get("code", "internal"))  # type: ignore[misc]  # the daemon's code, not one of ours


def accepted(line: bytes) -> dict[str, Any] | None:
    """A daemon's answer to a preamble, or when it is ready; None: the line is no such answer. Raises DaemonRefused."""
    try:
        answer = json.loads(line)
    except ValueError:
        return None
    match answer:
        case {"ok": True}:
            return dict(answer)
        case {"ok": False}:
            raise DaemonRefused(answer)
        case _:
            return None


def ensure(
    root: str,
    state_dir: str | None = None,
    *,
    options: Sequence[str] = (),
    timeout_s: float | None = READY_TIMEOUT_S,
    doing: Callable[[str], None] = lambda what: None,
) -> tuple[Location, bool]:
    """The location of the workspace's daemon, started if none answers; and whether this call started it.

    `options` are for a daemon that this call starts; one that runs already stays as it is, and one that is
    coming up, or ending, is waited for. `doing` is called now and then with what a start is at; `timeout_s` None:
    wait as long as it takes. Raises DaemonRefused with the daemon's own message, DaemonDied,
    and what `wait_for` and `locations.socket_path` raise.
    """
    found = find(root, state_dir)
    if found is not None:
        return found, False
    identity = locations.workspace_id(root)
    wanted = locations.state_directory(identity, state_dir)
    with _locked(locations.start_lock(identity)):
        waiting = Waiting(timeout_s, doing)
        while (found := wait_for(root, state_dir, waiting)) is None:
            try:
                daemon = [*command(root, wanted, locations.socket_path(identity)), *options]
                return _start(daemon, wanted, waiting), True
            except DaemonRefused as error:
                # Whoever was started before us, and was not heard of, has the state directory by now.
                if error.code != "workspace_held" or processes.holder_of(wanted) is None:
                    raise
        return found, False


def command(root: str, state_dir: str, socket: str) -> list[str]:
    """The daemon's command line. -P: a folder named `orchestrator` where it starts is not imported."""
    return [
        *(sys.executable, "-P", "-m", "orchestrator", "daemon"),
        *("--workspace", root, "--state-dir", state_dir, "--socket", socket),
    ]


def environment(state_dir: str) -> dict[str, str]:
    """What of our environment the daemon gets: the usual, and what the policy's plugins are to have."""
    kept = {name: os.environ[name] for name in (*KEPT, *_named(state_dir, "plugins")) if name in os.environ}
    kept.setdefault("HOME", locations.home_directory())
    return kept


def variables_for_programs(state_dir: str, environment: Mapping[str, str]) -> int | None:
    """An inheritable descriptor with the variables that the policy names for reviewers; None where there are none.

    The daemon passes it on to the programs and never reads it, so an API key is in no daemon. It is memory alone
    where the system has such files, else a file without a name.
    """
    names = [name for name in _named(state_dir, "reviewer") if name in environment]
    if not names:
        return None
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("variables")
    else:  # macOS
        import tempfile

        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    with open(fd, "wb", closefd=False) as file:
        file.writelines(os.fsencode(f"{name}={environment[name]}\0") for name in names)
    os.set_inheritable(fd, True)
    return fd


def variables_option(variables: int | None) -> list[str]:
    """What to add to the daemon's command line for it."""
    return [] if variables is None else ["--variables-fd", str(variables)]


def _named(state_dir: str, table: Literal["reviewer", "plugins"]) -> list[str]:
    """The variables that the operator's policy names there; the daemon reports what is wrong with it."""
    import tomllib

    try:
        with open(f"{state_dir}/{POLICY_FILE}", "rb") as file:
            policy = tomllib.load(file)
    except (OSError, ValueError):
        return []
    found = policy.get(table)
    lists = [item.get("env") for item in (found if isinstance(found, list) else [found]) if isinstance(item, dict)]
    names = [name for named in lists if isinstance(named, list) for name in named]
    return [name for name in names if isinstance(name, str) and not name.startswith(NEVER_KEPT)]


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """One starter at a time; the others wait for it, and it waits READY_TIMEOUT_S at most."""
    import fcntl

    with open(_private_file(path, os.O_RDWR), "r+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _private_file(path: str, flags: int) -> int:
    """Open a file of ours; it and its directory are made where they are missing. Raises as `state_trouble`."""
    try:
        os.makedirs(path.rpartition("/")[0], mode=0o700, exist_ok=True)
        return os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise state_trouble(error, path) from error


def _start(daemon_command: Sequence[str], state_dir: str, waiting: Waiting) -> Location:
    import subprocess
    import threading

    log = f"{state_dir}/daemon.log"
    reading, ready_fd = os.pipe()
    variables = variables_for_programs(state_dir, os.environ)
    passed = [] if variables is None else [variables]
    try:
        with open(ready_fd, "wb"), open(_private_file(log, os.O_WRONLY | os.O_APPEND), "ab") as output:
            daemon = subprocess.Popen(
                [*daemon_command, *variables_option(variables), "--ready-fd", str(ready_fd), DETACHED],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                env=environment(state_dir),
                pass_fds=(ready_fd, *passed),
                start_new_session=True,
            )
        threading.Thread(target=daemon.wait, name="reaper", daemon=True).start()
        line = _first_line(reading, state_dir, waiting)
    finally:
        for fd in (reading, *passed):
            os.close(fd)
    ready = accepted(line)
    if ready is None:
        raise DaemonDied("the daemon ended before it was ready", hint=f"The reason is at the end of {log}.")
    return Location(ready["workspace"], ready["state_dir"], ready["socket"], ready["pid"], "running")


def _first_line(fd: int, state_dir: str, waiting: Waiting) -> bytes:
    """Up to the newline or the end of the pipe. Raises DaemonUnreachable when the time is over."""
    line = b""
    while b"\n" not in line:
        if readable(fd, waiting.left_s(state_dir, 1.0)):
            piece = os.read(fd, 65536)
            if not piece:
                break
            line += piece
    return line
