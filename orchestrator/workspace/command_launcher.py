"""Starts one command, confined, below a subreaper: `python -I -S command_launcher.py PARENT STATUS_FD`.

What to start comes by standard input, marshalled: its TMPDIR, and the parameters of `_become`. STATUS_FD is closed
once the command runs; where it does not, an error number and a text go there first. Only the command is confined:
this process stays outside, so that the command can't signal or trace it, ends all that the command started, and
removes its TMPDIR. Standard library only but for two modules of ours, found by this file's own path: nothing of the
workspace or the environment is imported.
"""

# Neither pathlib nor typing: each would take as long to import as all the others.

from __future__ import annotations

import marshal
import os
import resource
import signal
import sys
from collections.abc import Mapping

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from orchestrator import subreaper  # found by the line before
from orchestrator.workspace import namespaces
from orchestrator.workspace.landlock import run_command_only

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main(parent: int, status: int) -> int:
    """The command's exit code, as the subreaper's."""
    os.set_inheritable(status, False)
    temporary, mounts, start = marshal.load(sys.stdin.buffer)
    try:
        return subreaper.supervise(parent, lambda: _started(mounts, start, status))
    finally:
        if temporary is not None:
            remove(temporary)


def _started(mounts: namespaces.Mounts | None, start: Mapping[str, Any], status: int) -> int:
    """The process of the command; or of one that has said why there is none, and ends."""
    child = os.fork()
    if child == 0:
        code = subreaper.NOT_STARTED
        try:
            os.setsid()
            if mounts is None:
                _become(**start)
            else:
                size, network = start["file_bytes"], start["landlock"][2]
                code = namespaces.run(mounts, size, network=network, status=status, become=lambda: _become(**start))
        except OSError as error:
            os.write(status, f"{error.errno} {error.strerror}".encode())
        finally:
            os._exit(code)
    os.close(status)
    return child


def _become(
    *,
    argv: list[str],
    cwd: str,
    environment: dict[str, str],
    processes: int,
    file_bytes: int,
    landlock: tuple[list[str], list[str] | None, bool] | None,
) -> None:
    """The command itself; `landlock`: what it may write, what it may read, whether it may use the network."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(cwd)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, file_bytes)
    if os.getuid() != 0:  # the kernel does not limit root
        _limit(resource.RLIMIT_NPROC, _tasks_of(os.getuid()) + processes)
    if landlock is not None:
        run_command_only(landlock[0], landlock[1], network=landlock[2])
    for number in (*subreaper.ENDING, signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores the last two
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.execve(argv[0], argv, environment)


def _limit(what: int, most: int) -> None:
    hard = resource.getrlimit(what)[1]
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(what, (most, most))


def _tasks_of(uid: int) -> int:
    """The kernel counts all of a user's, whoever started them."""
    count = 0
    with os.scandir("/proc") as entries:
        for entry in entries:
            try:
                if entry.name.isdigit() and entry.stat().st_uid == uid:
                    count += os.stat(f"{entry.path}/task").st_nlink - 2
            except OSError:
                continue  # ended since
    return count


def remove(folder: str) -> None:
    """Whatever the command left in its TMPDIR, also what it closed to itself. Its processes have ended."""
    try:
        os.rmdir(folder)
    except OSError:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
        for above, names, _ in os.walk(folder):
            for name in names:
                if not os.path.islink(f"{above}/{name}"):
                    os.chmod(f"{above}/{name}", 0o700)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
