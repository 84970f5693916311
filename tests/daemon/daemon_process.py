"""A real daemon process on a folder of its own, for tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from orchestrator.api.locations import workspace_id
from orchestrator.clients.python import FileAccess
from orchestrator.clients.running_daemon import variables_for_programs
from tests.daemon.forked_process import ForkedProcess

READY_S = 60


class RunningDaemon:
    """One daemon; `home` stands for the user's home folder, so that nothing of the machine is touched.

    It is forked from a process that has imported its modules, which saves most of its start; with `executed`
    it is a new interpreter, as `up` starts it, and its command line is its own.
    """

    def __init__(
        self, base: Path, *, module: tuple[str, ...] = ("-m", "orchestrator", "daemon"), executed: bool = False
    ) -> None:
        self.base, self._module = base, module
        self._executed = executed or module[0] != "-m"
        self.workspace = base / "work"
        self.home = base / "home"
        self.state_dir = base / "state"
        self.runtime = base / "run"
        for folder in (self.workspace, self.home, self.state_dir, self.runtime):
            folder.mkdir(mode=0o700, exist_ok=True)
        self.socket = self.runtime / "s"
        self.process: subprocess.Popen[bytes] | ForkedProcess | None = None
        self.approver = ""

    @property
    def env(self) -> dict[str, str]:
        """For every process of the test: nothing of the caller's but the path."""
        return {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "XDG_RUNTIME_DIR": str(self.runtime),
            "LANG": "C.UTF-8",
        }

    @property
    def variables(self) -> dict[str, str]:
        """What whoever starts the daemon has beside that, for programs that its policy names."""
        return {}

    @property
    def id(self) -> str:
        return workspace_id(os.path.realpath(self.workspace))

    def start(self, *more: str) -> dict[str, object]:
        """Start it and wait until it says that it is ready; what it said."""
        read, write = os.pipe()
        variables = variables_for_programs(str(self.state_dir), self.variables)
        handed = [] if variables is None else [variables]
        options = (
            *("--workspace", str(self.workspace)),
            *("--state-dir", str(self.state_dir)),
            *("--socket", str(self.socket)),
            *more,
        )
        try:
            with (self.base / "daemon.log").open("ab") as log:
                self.process = (self._execute if self._executed else self._fork)(
                    options, write, variables, log.fileno()
                )
        finally:
            for fd in (write, *handed):
                os.close(fd)
        with open(read, "rb") as ready:
            line = ready.readline()
        if not line:
            self.process.wait(READY_S)
            raise AssertionError(f"the daemon ended with {self.process.returncode}:\n{self.log[-4000:]}")
        said: dict[str, object] = json.loads(line)
        return said

    def _execute(
        self, options: tuple[str, ...], ready: int, variables: int | None, log: int
    ) -> subprocess.Popen[bytes]:
        handed = () if variables is None else ("--variables-fd", str(variables))
        return subprocess.Popen(
            [sys.executable, *self._module, *options, "--ready-fd", str(ready), *handed],
            pass_fds=(ready,) if variables is None else (ready, variables),
            env={"PYTHONPATH": os.getcwd(), **self.env},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )

    def _fork(self, options: tuple[str, ...], ready: int, variables: int | None, log: int) -> ForkedProcess:
        descriptors = {"--ready-fd": ready} if variables is None else {"--ready-fd": ready, "--variables-fd": variables}
        return ForkedProcess((*self._module[1:], *options), descriptors, env=self.env, out=log, err=log)

    @property
    def log(self) -> str:
        return (self.base / "daemon.log").read_text(encoding="utf-8", errors="replace")

    def kill(self) -> None:
        """SIGKILL."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(READY_S)

    @contextmanager
    def held(self) -> Iterator[None]:
        """It does nothing meanwhile: what is sent to it is all there when it goes on, however slow the sender."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.process.pid, signal.SIGCONT)

    def wait(self) -> int:
        """Until it ends by itself; its exit code."""
        assert self.process is not None
        return self.process.wait(READY_S)

    def stop(self) -> int:
        """SIGTERM, and its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(READY_S)

    @asynccontextmanager
    async def client(
        self, agent: str | None = None, *, token: str | None = None, session: str | None = None
    ) -> AsyncIterator[FileAccess]:
        """The Python client, as an agent, or as a person without a name."""
        async with FileAccess.connect(
            str(self.workspace), agent=agent, token=token, session=session, socket=str(self.socket)
        ) as files:
            yield files

    async def make_approver(self) -> str:
        """The approver code; made at the first call."""
        if not self.approver:
            async with self.client() as person:
                self.approver = (await person.approver_create()).approver_code or ""
        return self.approver


@contextmanager
def running(base: Path, *options: str, clocked: bool = False) -> Iterator[RunningDaemon]:
    """A daemon that is started now and stopped after; its log is shown when it failed inside.

    The clock of one that is `clocked` can be put forward.
    """
    daemon = RunningDaemon(base, module=("-m", "tests.daemon.clocked", str(base))) if clocked else RunningDaemon(base)
    said = daemon.start(*options)
    assert said.get("ok") is True, said
    try:
        yield daemon
    finally:
        code = daemon.stop()
        problems = [line for line in daemon.log.splitlines() if '"level": "error"' in line or "Traceback" in line]
        assert code == 0, daemon.log[-4000:]
        assert not problems, "\n".join(problems[:5])
