"""Runs a command, and ends with it all that it started: `python -I -S subreaper.py PARENT VARIABLES SPARED COMMAND…`.

A program that a policy names is somebody else's: what it starts may take a session of its own, and the
daemon may be killed while it runs. So this process is between the two: it inherits every orphan below it
(a "child subreaper"), gets a signal when its parent dies, and leaves nothing running when it ends. Standard
library only, started by its path: nothing of the workspace or the environment is imported. On other
systems than Linux it can't inherit orphans; there the command's process group is all that ends.

VARIABLES is empty, or `FD,NAME,NAME…`: the command gets these variables as the file has them (`NAME=value`,
each followed by a NUL byte). So a key that a policy names for one program is in that program alone.

SPARED is empty, or a workspace: its daemon lives on when the rest ends. An agent's transport may have started it, and
others work with it.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
GRACE_S = 2.0
"""Between asking the command to end and ending it."""

NOT_STARTED = 127
LOOK_S = 0.02


AT_ONCE = signal.SIGUSR1
"""The command is to end without being asked."""

ENDING = frozenset((signal.SIGTERM, signal.SIGINT, signal.SIGHUP, AT_ONCE))
"""Somebody wants the command to end."""


def main(argv: list[str]) -> int:
    """The command's exit code; 128 and the signal's number for one that a signal ended."""
    parent, handed, spared, command = int(argv[0]), argv[1], argv[2], argv[3:]

    def start() -> int:
        environment = {**os.environb, **_variables(handed)}
        return os.posix_spawnp(
            command[0], command, environment, setsid=True, setsigmask=(), setsigdef=(*ENDING, signal.SIGCHLD)
        )

    try:
        return supervise(parent, start, spared)
    except OSError as error:
        print(f"{command[0]} can't be started: {error.strerror}", file=sys.stderr)
        return NOT_STARTED


def supervise(parent: int, start: Callable[[], int], spared: str = "") -> int:
    """Start a command, as the leader of a session of its own, and wait for its end or `parent`'s. Code as `main`'s."""
    signal.signal(signal.SIGCHLD, lambda number, frame: None)  # what is ignored may not be waited for
    signal.pthread_sigmask(signal.SIG_BLOCK, {*ENDING, signal.SIGCHLD})  # nothing interrupts the ending itself
    child = None
    try:
        _bind()
        if os.getppid() != parent:
            return NOT_STARTED  # it died before it could be watched
        child = start()
        code = _wait(child)
        if code >= 0:
            child = None
            return code
        if code == -AT_ONCE:
            child = None
        return 128 + signal.SIGTERM
    finally:
        if child is not None:
            _ask(child)
        _end_all(f"\0orchestrator\0daemon\0--workspace\0{spared}\0".encode(errors="surrogateescape") if spared else b"")


def _variables(handed: str) -> dict[bytes, bytes]:
    """Those that are named, as far as they were handed over. The file's offset is shared, so it is not moved."""
    if not handed:
        return {}
    fd, *names = handed.split(",")
    data = os.pread(int(fd), os.fstat(int(fd)).st_size, 0)
    os.close(int(fd))
    found = (item.partition(b"=") for item in data.split(b"\0"))
    return {name: value for name, _, value in found if os.fsdecode(name) in names}


def _bind() -> None:
    """Die with the parent, and inherit orphans."""
    if sys.platform != "linux":
        return
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _wait(child: int) -> int:
    """Until the command itself ends, or is to: negative, the signal. What it left behind is reaped meanwhile."""
    while (came := signal.sigwait({*ENDING, signal.SIGCHLD})) == signal.SIGCHLD:
        ended = -1
        while ended != 0:  # one signal may stand for several
            ended, status = os.waitpid(-1, os.WNOHANG)
            if ended == child:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
    return -came


def _ask(child: int) -> None:
    """SIGTERM to its group, and some time to follow it."""
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGTERM)
    until = time.monotonic() + GRACE_S
    while time.monotonic() < until:
        with suppress(ChildProcessError):
            if os.waitpid(child, os.WNOHANG)[0] == 0:
                time.sleep(LOOK_S)
                continue
        break
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


def _end_all(spared: bytes) -> None:
    """SIGKILL to every child, until there is none but the spared: the children of those come to us when they die."""
    while True:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if ended != 0:
            continue
        doomed = [pid for pid in _children() if not (spared and spared in _command_line(pid))]
        if spared and not doomed:
            return
        for pid in doomed:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(LOOK_S / 10)


def _children() -> list[int]:
    """Of this process."""
    me, found = os.getpid(), []
    with suppress(OSError), os.scandir("/proc") as entries:
        for entry in entries:
            if not entry.name.isdigit():
                continue
            with suppress(OSError), open(f"/proc/{entry.name}/stat", "rb") as file:  # noqa: PTH123
                fields = file.read().rpartition(b")")[2].split()
                if int(fields[1]) == me:
                    found.append(int(entry.name))
    return found


def _command_line(pid: int) -> bytes:
    """Each word with a NUL byte behind it; nothing of a process that has ended."""
    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
        return file.read()
    return b""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
