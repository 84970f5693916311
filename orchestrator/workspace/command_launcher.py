"""Starts commands, each confined and below a subreaper of its own: `python -I -S command_launcher.py`.

Standard input is a socket. For each byte that comes, with two descriptors, it forks a launcher: one is the launcher's
socket, by which what to start comes, marshalled (its TMPDIR, what is mounted, and the parameters of `_become`); the
other takes the command's output. The launcher answers with REPLY once the command runs, or can't; with one byte, the
exit code, once nothing of it is left; and ends when its socket is closed. Only the command is confined: its launcher
stays outside, so that the command can't signal or trace it, ends all that the command started, and removes its TMPDIR.
Standard library only but for modules of ours, found by this file's own path: nothing of the workspace or the
environment is imported.
"""

# Neither pathlib nor typing: each would take as long to import as all the others.

from __future__ import annotations

import marshal
import os
import resource
import signal
import socket
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from orchestrator import subreaper  # found by the line before
from orchestrator.workspace import namespaces
from orchestrator.workspace.landlock import run_command_only

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

REPLY = struct.Struct("ii")
"""The launcher's process, and why the command can't be started: an error number, or 0."""


def main() -> None:
    """Until nobody can ask any more."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # what becomes of a launcher its own socket says
    requests, server = socket.socket(fileno=0), os.getpid()
    while handles := socket.recv_fds(requests, 1, 2)[1]:
        child = -1
        with suppress(OSError):  # too many processes: who asked finds the socket closed
            child = os.fork()
        if child == 0:
            try:
                _launch(server, *handles)
            finally:
                os._exit(subreaper.NOT_STARTED)
        for handle in handles:
            os.close(handle)


def _launch(server: int, control: int, output: int) -> None:
    """One command, from its start to its end."""
    os.setsid()
    os.set_inheritable(control, False)
    for handle, number in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (output, 2)):
        os.dup2(handle, number)
    os.close(output)
    with socket.socket(fileno=control) as asked:
        with asked.makefile("rb") as message:
            temporary, mounts, start = marshal.load(message)
        try:
            code = subreaper.supervise(server, lambda: _started(mounts, start, asked))
        finally:
            if temporary is not None:
                remove(temporary)
        os.closerange(1, 3)  # so that its output ends
        with suppress(ConnectionError):
            asked.send(bytes((code,)))
            asked.recv(1)


def _started(mounts: namespaces.Mounts | None, start: Mapping[str, Any], asked: socket.socket) -> int:
    """The process of the command; or of one that has said why there is none, and ends."""
    read, status = os.pipe()
    child = os.fork()
    if child == 0:
        code = subreaper.NOT_STARTED
        try:
            asked.close()
            os.setsid()
            if mounts is None:
                _become(**start)
            else:
                code = namespaces.run(
                    mounts,
                    start["file_bytes"],
                    processes=start["processes"],
                    network=start["landlock"][2],
                    status=status,
                    become=lambda: _become(**start),
                )
        except OSError as error:
            os.write(status, b"%d" % (error.errno or 0))
        finally:
            os._exit(code)
    os.close(status)
    with open(read, "rb") as file:
        why = file.read()
    asked.send(REPLY.pack(os.getpid(), int(why or 0)))
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
        if os.path.isdir(folder) and not os.path.islink(folder):
            os.chmod(folder, 0o700)
        for above, names, _ in os.walk(folder):
            for name in names:
                if not os.path.islink(f"{above}/{name}"):
                    os.chmod(f"{above}/{name}", 0o700)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
