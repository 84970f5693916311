"""The daemon that serves a workspace: found, waited for, and seen to its end. Standard library only."""

# Importing pathlib would take 6 ms of the stdio transport's 45.
# ruff: noqa: PTH111, PTH112, PTH120

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from orchestrator.api import locations, processes
from orchestrator.api.locations import Location, SocketDirectoryUnsafe
from orchestrator.core.errors import DaemonUnreachable, OperatorError, WorkspaceHeld

LISTENING_TIMEOUT_S = 10.0
"""How long a daemon that serves may be without its socket; it puts it back within two seconds."""

LOOK_S = 0.1
"""Between two looks at a daemon that somebody else started."""

ENDING_TIMEOUT_S = 30.0
"""How long a stopped daemon may take for its last calls and its journal."""


class StateDirectoryInUse(
    OperatorError, code="state_directory_in_use", hint="Leave out --state-dir, or run `orchestrator stop` first."
):
    """The running daemon keeps its state elsewhere than asked for."""


class Waiting:
    """How long to wait for a daemon (`timeout_s` None: as long as it takes), and who hears what its start is at."""

    def __init__(self, timeout_s: float | None = None, doing: Callable[[str], None] = lambda what: None) -> None:
        self._timeout_s, self._doing = timeout_s, doing
        self._since = time.monotonic()

    def left_s(self, state_dir: str, most: float) -> float:
        """How long to wait at once. Raises DaemonUnreachable when the time is over."""
        holder = processes.holder_of(state_dir)
        what = holder.doing if holder is not None else ""
        if what:
            self._doing(what)
        if self._timeout_s is None:
            return most
        left = self._since + self._timeout_s - time.monotonic()
        if left <= 0:
            raise DaemonUnreachable(
                f"the daemon was not ready after {self._timeout_s:.0f} s{f': {what}' if what else ''}",
                hint=f"It goes on starting; try again later, or see {state_dir}/daemon.log.",
            )
        return min(most, left)


def find(root: str, state_dir: str | None = None) -> Location | None:
    """The daemon that answers for a workspace: by its location file, else by its process, whatever its HOME.

    Raises StateDirectoryInUse where it keeps its state elsewhere than asked for.
    """
    found = locations.read_location(locations.workspace_id(root))
    if found is None or not locations.answers(found.socket):
        found = processes.serving(root)
        if found is None or not locations.answers(found.socket):
            return None
    if not keeps_state_in(found, state_dir):
        raise StateDirectoryInUse(f"the daemon runs with the state directory {found.state_dir}")
    return found


def keeps_state_in(known: Location, state_dir: str | None) -> bool:
    """Whether a daemon keeps its state where it is asked for; None asks for no place."""
    return state_dir is None or os.path.realpath(known.state_dir) == os.path.realpath(os.path.expanduser(state_dir))


def wait_for(root: str, state_dir: str | None = None, waiting: Waiting | None = None) -> Location | None:
    """The daemon, waited for while it starts or ends, or has lost its socket; None: none has the workspace.

    Raises as `find`, DaemonUnreachable for one that serves and does not listen, WorkspaceHeld for another user's.
    """
    waiting, since = waiting or Waiting(), time.monotonic()
    identity = locations.workspace_id(root)
    while (found := find(root, state_dir)) is None:
        serving = processes.serving(root)
        if serving is not None:
            _check_is_ours(serving)
        directory = serving.state_dir if serving is not None else locations.state_directory(identity, state_dir)
        holder = processes.holder_of(directory)
        if holder is None and serving is None:
            return None
        pid, doing = holder or (serving.pid if serving is not None else 0, "")
        known = locations.read_location(identity)
        if doing or (known is not None and known.state != "running" and known.pid == pid):
            since = time.monotonic()
        if time.monotonic() - since > LISTENING_TIMEOUT_S:
            raise DaemonUnreachable(
                f"process {pid} holds {directory} and does not listen", hint="`orchestrator stop` ends it."
            )
        time.sleep(waiting.left_s(directory, LOOK_S))
    return found


def _check_is_ours(serving: Location) -> None:
    """Raises WorkspaceHeld for a daemon whose socket lies where others could answer, as that of another user does."""
    directory = os.path.dirname(serving.socket)
    try:
        if os.path.isdir(directory):
            locations.check_socket_directory(directory)
    except SocketDirectoryUnsafe as error:
        raise WorkspaceHeld(
            f"process {serving.pid} serves {serving.workspace}, with the state directory {serving.state_dir}, and its "
            f"socket {serving.socket} can't be used from here",
            hint="Leave it running: others work with it. Try again as the user who started it, or use a workspace of "
            "your own.",
        ) from error


@contextmanager
def ending(pid: int) -> Iterator[None]:
    """Around asking a daemon to stop: returns when its process has ended; on macOS at once.

    Raises DaemonUnreachable if it lives on.
    """
    try:  # a handle, taken before the process is asked: afterwards the number may be another's
        process = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else -1
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
