"""The daemon that serves a workspace: found, waited for, started, and seen to its end. Standard library only."""

# Importing pathlib would take 6 ms of the stdio transport's 45.
# ruff: noqa: PTH103, PTH111, PTH112, PTH120, PTH123

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from orchestrator.api import locations, processes, sockets
from orchestrator.api.locations import Location
from orchestrator.api.sockets import SocketDirectoryUnsafe
from orchestrator.core.errors import DaemonUnreachable, OperatorError, OrchestratorError, WorkspaceHeld
from orchestrator.core.system_errors import state_trouble

LOOK_S = 0.1
"""Between two looks at a daemon that somebody else started."""

ENDING_TIMEOUT_S = 30.0
"""How long a stopped daemon may take for its last calls and its journal."""

READY_TIMEOUT_S = 60.0
"""How long a client waits for a daemon that starts, or ends; it goes on with that in any case."""

DETACHED = "--detached"
"""Last among the daemon's arguments: it forks once more, so that no client is its parent (see `__main__`)."""

NEVER_KEPT = ("ORCHESTRATOR_", "PYTHON", "LD_")
"""Prefixes of variables that no policy passes on: a session, an approver code, and what decides which code runs."""

KEPT = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL"),
    *("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"),
)
"""The environment the daemon gets beside what its policy names for plugins: no more of the starter's."""


class RemoteError(OrchestratorError):
    """A refusal, as the daemon sent it."""

    def __init__(
        self,
        code: str,
        message: str,
        hint: str = "",
        details: Mapping[str, Any] | None = None,
        shown: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint, details=details, shown=shown)
        self.code = code  # type: ignore[misc]  # the daemon's code, whatever class it has there


class DaemonDied(DaemonUnreachable):
    """The daemon ended before it was ready, without a word. Another start may succeed."""


class StateDirectoryInUse(
    OperatorError, code="state_directory_in_use", hint="Leave out --state-dir, or run `orchestrator stop` first."
):
    """The running daemon keeps its state elsewhere than asked for."""


class WorkspaceDaemon:
    """The daemon of a workspace: found, waited for, or started. `state_dir`: where it has to keep its state, if that
    matters."""

    def __init__(self, root: str, state_dir: str | None = None) -> None:
        self._root, self._given, self._identity = root, state_dir, locations.workspace_id(root)

    def find(self) -> Location | None:
        """The one that answers: by its location file, else by its process, whatever its HOME.

        Raises StateDirectoryInUse where it keeps its state elsewhere than asked for.
        """
        found = locations.read_location(self._identity)
        if found is None or not sockets.answers(found.socket):
            found = processes.serving(self._root)
            if found is None or not sockets.answers(found.socket):
                return None
        if not self.keeps_state(found):
            raise StateDirectoryInUse(f"the daemon runs with the state directory {found.state_dir}")
        return found

    def keeps_state(self, known: Location) -> bool:
        """Whether it keeps its state where it is asked for."""
        given = self._given
        return given is None or os.path.realpath(known.state_dir) == os.path.realpath(os.path.expanduser(given))

    def running(self) -> Location:
        """The one that runs, waited for while it starts or ends, or has lost its socket.

        Raises as `find`, DaemonUnreachable where there is none, or it serves and does not listen, WorkspaceHeld for
        another user's.
        """
        found = self._wait()
        if found is None:
            raise DaemonUnreachable(f"no daemon runs for {self._root}")
        return found

    def ensure(self, options: Sequence[str] = ()) -> tuple[Location, bool]:
        """The one that runs, or else is started; and whether this call started it.

        `options` are for a daemon that this call starts; one that runs already stays as it is, and one that is
        coming up, or ending, is waited for. Raises as `running`, RemoteError with the daemon's own message,
        DaemonDied, and what `sockets.socket_path` raises.
        """
        found = self.find()
        if found is not None:
            return found, False
        wanted = locations.state_directory(self._identity, self._given)
        with _locked(locations.start_lock(self._identity)):
            while (found := self._wait()) is None:
                try:
                    return self._start(wanted, options), True
                except RemoteError as error:
                    # Another was started before ours: it holds the state directory or, with another HOME, the root.
                    first = processes.holder_of(wanted) or processes.serving(self._root)
                    if error.code != "workspace_held" or first is None:
                        raise
            return found, False

    def _wait(self) -> Location | None:
        """None: none has the workspace."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while (found := self.find()) is None:
            serving = processes.serving(self._root)
            if serving is not None:
                _check_is_ours(serving)
            directory = serving.state_dir if serving else locations.state_directory(self._identity, self._given)
            pid = serving.pid if serving else processes.holder_of(directory)
            if pid is None:
                if processes.hidden(self._root):
                    raise WorkspaceHeld(
                        f"a daemon that can't be seen from here serves {self._root}: it runs in another container, or "
                        "/proc hides the processes of others",
                        hint="Run `orchestrator status` or `orchestrator stop` where it was started; it answers there.",
                    )
                return None
            if time.monotonic() > deadline:
                raise _not_ready(f"process {pid} holds {directory} and does not listen", directory)
            time.sleep(LOOK_S)
        return found

    def _start(self, state_dir: str, options: Sequence[str]) -> Location:
        import subprocess
        import threading

        log = f"{state_dir}/daemon.log"
        reading, ready_fd = os.pipe()
        variables = variables_for_programs(state_dir, os.environ)
        passed = [] if variables is None else [variables]
        try:
            with open(ready_fd, "wb"), open(_private_file(log, os.O_WRONLY | os.O_APPEND), "ab") as output:
                daemon = subprocess.Popen(
                    [*command(self._root, state_dir, options, variables), "--ready-fd", str(ready_fd), DETACHED],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    cwd="/",
                    env=environment(state_dir),
                    pass_fds=(ready_fd, *passed),
                    start_new_session=True,
                )
            threading.Thread(target=daemon.wait, name="reaper", daemon=True).start()
            line, deadline = b"", time.monotonic() + READY_TIMEOUT_S
            while b"\n" not in line:
                if not readable(reading, max(0.0, deadline - time.monotonic())):
                    raise _not_ready("the daemon is not ready", state_dir)
                piece = os.read(reading, 65536)
                if not piece:
                    break
                line += piece
        finally:
            for fd in (reading, *passed):
                os.close(fd)
        ready = accepted(line)
        if ready is None:
            raise DaemonDied("the daemon ended before it was ready", hint=f"The reason is at the end of {log}.")
        return Location(ready["workspace"], ready["state_dir"], ready["socket"], ready["pid"], "running")


def accepted(line: bytes) -> dict[str, Any] | None:
    """A daemon's answer to a preamble, or when it is ready; None: the line is no such answer. Raises RemoteError."""
    try:
        answer = json.loads(line)
    except ValueError:
        return None
    match answer:
        case {"ok": True}:
            return dict(answer)
        case {"ok": False, "code": str(code), "message": str(message)}:
            raise RemoteError(code, message, str(answer.get("hint", "")), answer.get("details"))
        case _:
            return None


def _not_ready(what: str, state_dir: str) -> DaemonUnreachable:
    return DaemonUnreachable(
        f"{what} after {READY_TIMEOUT_S:.0f} s",
        hint=f"It may still be starting: try again later, or see {state_dir}/daemon.log. `orchestrator stop` ends it.",
    )


def _check_is_ours(serving: Location) -> None:
    """Raises WorkspaceHeld for a daemon whose socket lies where others could answer, as that of another user does."""
    directory = os.path.dirname(serving.socket)
    try:
        if os.path.isdir(directory):
            sockets.check_socket_directory(directory)
    except SocketDirectoryUnsafe as error:
        raise WorkspaceHeld(
            f"process {serving.pid} serves {serving.workspace}, with the state directory {serving.state_dir}, and its "
            f"socket {serving.socket} can't be used from here",
            hint="Leave it running: others work with it. Try again as the user who started it, or use a workspace of "
            "your own.",
        ) from error


@contextmanager
def ending(pid: int) -> Iterator[None]:
    """Around asking a daemon to stop: returns when its process has ended; where `pid` is 0, not known, at once.

    Raises DaemonUnreachable if it lives on.
    """
    try:  # a handle, taken before the process is asked: afterwards the number may be another's
        process = os.pidfd_open(pid) if pid and hasattr(os, "pidfd_open") else -1
    except ProcessLookupError:
        process = -1
    try:
        yield
        if process >= 0 and not readable(process, ENDING_TIMEOUT_S):
            raise DaemonUnreachable(
                f"process {pid} was asked to stop and has not ended after {ENDING_TIMEOUT_S:g} s", hint=kill_hint(pid)
            )
    finally:
        if process >= 0:
            os.close(process)


def readable(fd: int, timeout_s: float) -> bool:
    """Whether there is something to read, or a process that a handle is of has ended, within the time."""
    import selectors

    with selectors.DefaultSelector() as selector:  # unlike select(), it takes any number of open files
        selector.register(fd, selectors.EVENT_READ)
        return bool(selector.select(timeout_s))


def kill_hint(pid: int) -> str:
    """What to do about a daemon that hangs."""
    return f"Wait, or end it with `kill -9 {pid}`: no acknowledged change is lost, the next start recovers the rest."


def command(root: str, state_dir: str, options: Sequence[str] = (), variables: int | None = None) -> list[str]:
    """The daemon's command line, with the descriptor of `variables_for_programs`.

    -P: a folder named `orchestrator` where it starts is not imported.
    """
    socket = sockets.socket_path(locations.workspace_id(root))
    return [
        *(sys.executable, "-P", "-m", "orchestrator", "daemon"),
        *("--workspace", root, "--state-dir", state_dir, "--socket", socket),
        *options,
        *(() if variables is None else ("--variables-fd", str(variables))),
    ]


def environment(state_dir: str) -> dict[str, str]:
    """What of our environment the daemon gets: the usual, and what the policy's plugins are to have."""
    kept = {name: os.environ[name] for name in (*KEPT, *_named(state_dir, "plugins")) if name in os.environ}
    kept.setdefault("HOME", locations.home_directory())
    return kept


def variables_for_programs(state_dir: str, environment: Mapping[str, str]) -> int | None:
    """An inheritable descriptor with the variables that the policy names for its programs; None where there are none.

    The daemon passes it on to the programs and never reads it, so an API key is in no daemon. It is memory alone
    where the system has such files, else a file without a name.
    """
    wanted = dict.fromkeys((*_named(state_dir, "reviewer"), *_named(state_dir, "semantic")))
    names = [name for name in wanted if name in environment]
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


def _named(state_dir: str, table: str) -> list[str]:
    """The variables that the operator's policy files name there; the daemon reports what is wrong with them."""
    import tomllib

    names: list[object] = []
    for _, path in locations.policy_files(state_dir):
        try:
            with open(path, "rb") as file:
                found = tomllib.load(file).get(table)
        except (OSError, ValueError):
            continue
        tables = [item for item in (found if isinstance(found, list) else [found]) if isinstance(item, dict)]
        lists = [named for item in tables for named in (item.get("env"), [item.get("api_key_env")])]
        names += [name for named in lists if isinstance(named, list) for name in named]
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
