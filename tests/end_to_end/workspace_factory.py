"""A workspace and a home folder in which everything is started as users start it: through the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from mcp import Client, StdioServerParameters

from orchestrator.api.locations import workspace_id
from orchestrator.clients.running_daemon import readable

TIMEOUT_S = 60
ORCHESTRATOR = (sys.executable, "-m", "orchestrator")

CORE = (
    "list_files find_files search_content read_file edit_file apply_patch write_file move_file delete_file "
    "file_history get_diff revert await_change get_briefing session_status run_command command_output"
).split()
"""CONTRACT "Toolsets", as this version has it."""


class Ran(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Place:
    """No daemon runs here until something starts one."""

    def __init__(self, base: Path) -> None:
        self.base, self.home, self.workspace = base, base / "home", base / "work"
        for folder in (self.home, self.workspace, base / "run"):
            folder.mkdir(mode=0o700)
        self.env = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "XDG_RUNTIME_DIR": str(base / "run"),
            "LANG": "C.UTF-8",
        }
        self._pids: set[int] = set()

    def run(
        self,
        *arguments: str,
        workspace: Path | None = None,
        stdin: str | None = None,
        env: dict[str, str] | None = None,
    ) -> Ran:
        """Run the command line to its end, without a terminal."""
        done = subprocess.run(
            [*ORCHESTRATOR, *arguments],
            check=False,
            cwd=workspace or self.workspace,
            env=self.env if env is None else env,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            start_new_session=True,
            timeout=TIMEOUT_S,
        )
        self.note()
        return Ran(done.returncode, done.stdout, done.stderr)

    def cli(self, *arguments: str, approver: str = "", agent: str = "", stdin: str | None = None) -> Ran:
        """Run it on the workspace, as a person or as an agent."""
        extra = {"ORCHESTRATOR_APPROVER": approver, "ORCHESTRATOR_AGENT": agent}
        env = {**self.env, **{name: value for name, value in extra.items() if value}}
        return self.run("--workspace", str(self.workspace), *arguments, stdin=stdin, env=env)

    def up(self) -> dict[str, Any]:
        """Start the daemon, or find it; what `up --json` says."""
        ran = self.cli("up", "--json")
        assert ran.code == 0, ran
        facts: dict[str, Any] = ran.json
        return facts

    @property
    def location(self) -> dict[str, Any]:
        """What the location file says."""
        path = self.home / ".local/state/orchestrator" / f"{workspace_id(str(self.workspace))}.location"
        said: dict[str, Any] = json.loads(path.read_text())
        return said

    @property
    def pid(self) -> int:
        return int(self.location["pid"])

    def kill_daemon(self) -> int:
        """SIGKILL; returns when the process is dead. The pid that it had."""
        self.note()
        pid = self.pid
        handle = os.pidfd_open(pid)
        try:
            os.kill(pid, signal.SIGKILL)
            _dead(handle)
        finally:
            os.close(handle)
        return pid

    def transport(self, *options: str, agent: str = "") -> StdioServerParameters:
        """How an MCP client starts the stdio transport here."""
        named = ("--agent", agent) if agent else ()
        return StdioServerParameters(
            command=ORCHESTRATOR[0],
            args=[*ORCHESTRATOR[1:], "mcp", "--workspace", str(self.workspace), *named, *options],
            env={"HOME": self.env["HOME"], "XDG_RUNTIME_DIR": self.env["XDG_RUNTIME_DIR"]},
            cwd=self.base,
        )

    @asynccontextmanager
    async def client(
        self, agent: str = "", *options: str, mode: Literal["auto", "legacy"] = "auto"
    ) -> AsyncIterator[Client]:
        """The public SDK's client on the stdio transport."""
        failure: Exception | None = None
        async with Client(self.transport(*options, agent=agent), mode=mode) as client:
            try:
                yield client
            except Exception as error:  # noqa: BLE001  # raised below, where no task group wraps it
                failure = error
            self.note()
        if failure is not None:
            raise failure

    def note(self) -> None:
        """Remember the daemon that runs now, for `clear`."""
        for path in (self.home / ".local/state/orchestrator").glob("*.location"):
            with suppress(ValueError, OSError):
                self._pids.add(int(json.loads(path.read_text())["pid"]))

    def clear(self) -> None:
        """End the daemons that were started here, also one that is only coming up: a client need not wait for it."""
        self.note()
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words = (process / "cmdline").read_bytes().split(b"\0")
                if b"daemon" in words and str(self.workspace).encode() in words:
                    self._pids.add(int(process.name))
        for pid in self._pids:
            with suppress(ProcessLookupError, FileNotFoundError):
                if str(self.base).encode() not in Path(f"/proc/{pid}/cmdline").read_bytes():
                    continue
                handle = os.pidfd_open(pid)
                os.kill(pid, signal.SIGKILL)
                _dead(handle)
                os.close(handle)


def _dead(handle: int) -> None:
    assert readable(handle, TIMEOUT_S), "the process does not end"
