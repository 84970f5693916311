"""Starting the daemon, detached, unless one answers. Standard library only: the stdio transport does this too."""

# Importing pathlib would take 6 ms of the stdio transport's 45.
# ruff: noqa: PTH103, PTH111, PTH123

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from orchestrator.api import locations, processes
from orchestrator.api.locations import Location, SocketDirectoryUnsafe
from orchestrator.core.errors import DaemonUnreachable, OperatorError, OrchestratorError, WorkspaceHeld
from orchestrator.core.system_errors import state_trouble

READY_TIMEOUT_S = 60.0
"""How long a client waits that can't show how far a start is; the daemon goes on with it in any case."""

LISTENING_TIMEOUT_S = 10.0
"""How long a daemon that serves may be without its socket; it puts it back within two seconds."""

LOOK_S = 0.1
"""Between two looks at a daemon that somebody else started."""

ENDING_TIMEOUT_S = 30.0
"""What a daemon that was told to stop gets for its last calls and its journal."""

DETACHED = "--detached"
"""Last among the daemon's arguments: it forks once more, so that no client is its parent (see `__main__`)."""

POLICY_FILE = "policy.toml"  # in the state directory; as in `daemon`, which no client imports

NEVER_KEPT = ("ORCHESTRATOR_", "PYTHON", "LD_")
"""Prefixes of variables that no policy hands on: a session, an approver code, and what decides which code runs."""

KEPT = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "XDG_RUNTIME_DIR", "XDG_STATE_HOME")
"""The environment the daemon gets beside what its policy names for plugins: no more of whoever started it."""


class StateDirectoryInUse(
    OperatorError, code="state_directory_in_use", hint="Leave out --state-dir, or run `orchestrator stop` first."
):
    """The running daemon keeps its state elsewhere than asked for."""


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
    root: str,
    state_dir: str | None = None,
    *,
    options: Sequence[str] = (),
    timeout_s: float | None = READY_TIMEOUT_S,
    doing: Callable[[str], None] = lambda what: None,
) -> tuple[Location, bool]:
    """The location of the workspace's daemon, started if none answers; and whether this call started it.

    `options` are for a daemon that this call starts; one that runs already stays as it is, and one that is
    coming up, or ending, is waited for. `doing` is told now and then what a start is at; `timeout_s` None:
    wait as long as it takes. Raises DaemonRefused with the daemon's own words, DaemonUnreachable,
    DaemonDied, StateDirectoryInUse, WorkspaceHeld, and what `locations.socket_path` raises.
    """
    identity = locations.workspace_id(root)
    wanted = locations.state_directory(identity, state_dir)
    found = _running(identity, wanted)
    if found is not None:
        return found, False
    with _locked(locations.start_lock(identity)):
        waiting = _Waiting(wanted, timeout_s, doing)
        while True:
            found = _of_another(identity, wanted, waiting)
            found = found or of_another_home(root, state_dir)
            if found is not None:
                return found, False
            _refuse_to_compete(root, wanted)
            try:
                daemon = [*command(root, wanted, locations.socket_path(identity)), *options]
                return _start(daemon, wanted, waiting), True
            except DaemonRefused as error:
                # Whoever was started before us, and was not heard of, has the state directory by now.
                if error.code != "workspace_held" or processes.holder_of(wanted) is None:
                    raise


class _Waiting:
    """For one start: until when, and who is told how far it is."""

    def __init__(self, state_dir: str, timeout_s: float | None, doing: Callable[[str], None]) -> None:
        self._state_dir, self._timeout_s, self._doing = state_dir, timeout_s, doing
        self._since = time.monotonic()

    def left_s(self, most: float) -> float:
        """How long to wait at once. Raises DaemonUnreachable when the time is over."""
        holder = processes.holder_of(self._state_dir)
        what = holder.doing if holder is not None else ""
        if what:
            self._doing(what)
        if self._timeout_s is None:
            return most
        left = self._since + self._timeout_s - time.monotonic()
        if left <= 0:
            raise DaemonUnreachable(
                f"the daemon was not ready after {self._timeout_s:.0f} s{f': {what}' if what else ''}",
                hint=f"It goes on starting; try again later, or see {self._state_dir}/daemon.log.",
            )
        return min(most, left)


def _of_another(identity: str, state_dir: str, waiting: _Waiting) -> Location | None:
    """Wait for a daemon that somebody else started; None: none holds the state directory any more.

    Raises DaemonUnreachable for one that serves and does not listen.
    """
    since = time.monotonic()
    while (found := _running(identity, state_dir)) is None:
        holder = processes.holder_of(state_dir)
        if holder is None:
            return None
        known = locations.read_location(identity)
        ending = known is not None and known.state != "running" and known.pid == holder.pid
        if holder.doing or ending:
            since = time.monotonic()
        if time.monotonic() - since > LISTENING_TIMEOUT_S:
            raise DaemonUnreachable(
                f"process {holder.pid} holds {state_dir} and does not listen", hint="`orchestrator stop` ends it."
            )
        time.sleep(waiting.left_s(LOOK_S))
    return found


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

    The daemon hands it on to the programs and never reads it, so an API key is in no daemon. It is memory alone
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
    """The variables that the operator's policy names there; what is wrong with it the daemon says."""
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


def of_another_home(root: str, state_dir: str | None) -> Location | None:
    """The daemon that serves the workspace and that no location file of ours names, if its socket is its own and ours.

    Raises StateDirectoryInUse.
    """
    found = processes.serving(root)
    if found is None:
        return None
    location = Location(found.workspace, found.state_dir, found.socket, found.pid, "running")
    if state_dir is not None:
        check_state_directory(location, state_dir)
    try:
        with locations.connect(found.socket, 2.0) as connection:
            listening = processes.peer_of(connection)
    except (OSError, SocketDirectoryUnsafe):
        return None
    return location if listening == (found.pid, os.getuid()) else None


def _refuse_to_compete(root: str, state_dir: str) -> None:
    """Raises WorkspaceHeld where another daemon has the workspace, so that one of ours would end at once."""
    found = processes.serving(root)
    if found is not None and os.path.realpath(found.state_dir) != os.path.realpath(state_dir):
        raise WorkspaceHeld(
            f"process {found.pid} serves {root}, with the state directory {found.state_dir}, and its socket "
            f"{found.socket} can't be used from here",
            hint="Leave it running: others work with it. Try again as the user who started it, or use a workspace of "
            "your own.",
        )


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """One starter at a time; the others wait for it, and it waits READY_TIMEOUT_S at most."""
    import fcntl

    with open(_private_file(path, os.O_RDWR), "r+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _private_file(path: str, flags: int) -> int:
    """Open a file of ours; it and its directory are made where they are missing. Raises what `state_trouble` says."""
    try:
        os.makedirs(path.rpartition("/")[0], mode=0o700, exist_ok=True)
        return os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise state_trouble(error, path) from error


@contextmanager
def ending(pid: int) -> Iterator[None]:
    """Around telling a daemon to stop: returns when its process has ended. Raises DaemonUnreachable if it lives on."""
    with _watched(pid) as ended:
        yield
        if not ended(ENDING_TIMEOUT_S):
            raise DaemonUnreachable(
                f"process {pid} was told to stop and has not ended after {ENDING_TIMEOUT_S:g} s", hint=kill_hint(pid)
            )


@contextmanager
def _watched(pid: int) -> Iterator[Callable[[float], bool]]:
    """Answers whether a process has ended, waiting at most so many seconds.

    On Linux by a handle, taken before the process is told: afterwards the number may be another's.
    """
    import select

    if not hasattr(os, "pidfd_open"):  # macOS
        yield lambda wait_s: _gone(pid, wait_s)
        return
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        yield lambda wait_s: True
        return
    try:
        yield lambda wait_s: bool(select.select([process], [], [], wait_s)[0])
    finally:
        os.close(process)


def _gone(pid: int, wait_s: float) -> bool:
    """Whether no process has the number, looked at until it has not."""
    until = time.monotonic() + wait_s
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def kill_hint(pid: int) -> str:
    """What to do about a daemon that hangs."""
    return f"Wait, or end it with `kill -9 {pid}`: no acknowledged change is lost, the next start recovers the rest."


def _start(daemon_command: Sequence[str], state_dir: str, waiting: _Waiting) -> Location:
    import subprocess
    import threading

    log = f"{state_dir}/daemon.log"
    ready, told = os.pipe()
    variables = variables_for_programs(state_dir, os.environ)
    handed = [] if variables is None else [variables]
    try:
        with open(_private_file(log, os.O_WRONLY | os.O_APPEND), "ab") as output:
            daemon = subprocess.Popen(
                [*daemon_command, *variables_option(variables), "--ready-fd", str(told), DETACHED],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                env=environment(state_dir),
                pass_fds=(told, *handed),
                start_new_session=True,
            )
        os.close(told)
        told = -1
        threading.Thread(target=daemon.wait, name="reaper", daemon=True).start()
        line = _first_line(ready, waiting)
    finally:
        for fd in (ready, *handed, *((told,) if told >= 0 else ())):
            os.close(fd)
    return _told(line, log)


def _first_line(fd: int, waiting: _Waiting) -> bytes:
    """Up to the newline or the end of the pipe. Raises DaemonUnreachable when the time is over."""
    import select

    line = b""
    while b"\n" not in line:
        readable, _, _ = select.select([fd], [], [], waiting.left_s(1.0))
        if readable:
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
