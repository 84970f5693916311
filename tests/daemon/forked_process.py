"""A Python module run as a program, in a process forked from one that has imported the daemon's modules."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from multiprocessing import forkserver
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.daemon.preloaded"])


class Descriptor:
    """A file descriptor that is an open one of the new process as well."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __reduce__(self) -> tuple[object, ...]:
        return _received, (DupFd(self.fd),)


class ForkedProcess:
    """As `subprocess.Popen`: its `pid` and `returncode`, signals, and the wait for its end."""

    def __init__(
        self,
        command: tuple[str, ...],
        descriptors: Mapping[str, int],
        *,
        env: Mapping[str, str],
        out: int,
        err: int,
        cwd: Path = ROOT,
    ) -> None:
        """Run the module `command[0]`; each of `descriptors` follows the option that names it."""
        handed = {option: Descriptor(fd) for option, fd in descriptors.items()}
        printed = (Descriptor(out), Descriptor(err))
        with contextlib.chdir(ROOT):  # where it finds what it imports
            forkserver.ensure_running()
        self._process = FORKS.Process(target=_run, args=(command, handed, dict(env), printed, cwd))
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Until it has ended; its exit code. Raises subprocess.TimeoutExpired."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("the forked process", timeout or 0)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self._process.exitcode is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended since, and its parent knows before we do
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _received(duplicate: Any) -> Descriptor:
    return Descriptor(duplicate.detach())


def run(
    command: tuple[str, ...], *, env: Mapping[str, str], cwd: Path, timeout: float
) -> subprocess.CompletedProcess[bytes]:
    """Run the module `command[0]` to its end, with nothing on its standard input."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = ForkedProcess(command, {}, env=env, out=out.fileno(), err=err.fileno(), cwd=cwd)
        code = process.wait(timeout)
        printed = [os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0) for file in (out, err)]
    return subprocess.CompletedProcess(command, code, *printed)


def _run(
    command: tuple[str, ...],
    descriptors: Mapping[str, Descriptor],
    env: Mapping[str, str],
    printed: tuple[Descriptor, Descriptor],
    cwd: Path,
) -> None:
    for number, to in enumerate(printed, 1):
        os.dup2(to.fd, number)
        os.close(to.fd)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.path[:0] = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
    numbers = [word for option, handed in descriptors.items() for word in (option, str(handed.fd))]
    sys.argv = ["", *command[1:], *numbers]
    runpy.run_module(command[0], run_name="__main__", alter_sys=True)
