"""The command line beside a running daemon, for tests."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from tests.daemon import forked_process
from tests.daemon.daemon_process import RunningDaemon


def cli_bytes(
    daemon: RunningDaemon, *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> CompletedProcess[bytes]:
    """Run a command on the daemon's workspace, without a terminal."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return forked_process.run(
        ("orchestrator", *arguments[:end], "--workspace", str(daemon.workspace), *arguments[end:]),
        env={**daemon.env, "PYTHONPATH": os.getcwd(), **(env or {})},
        cwd=cwd or daemon.base,
        timeout=120,
    )


def cli(daemon: RunningDaemon, *arguments: str, **env: str) -> tuple[int, str]:
    """Run a command; its exit code, and all that it printed."""
    done = cli_bytes(daemon, *arguments, env=env)
    return done.returncode, (done.stdout + done.stderr).decode()


def command(
    daemon: RunningDaemon, *arguments: str, cwd: Path | None = None, approver: str = ""
) -> tuple[int, dict[str, Any]]:
    """Run a command with --json; its exit code, and what it printed."""
    env = {"ORCHESTRATOR_APPROVER": approver} if approver else {}
    end = arguments.index("--") if "--" in arguments else len(arguments)
    done = cli_bytes(daemon, *arguments[:end], "--json", *arguments[end:], cwd=cwd, env=env)
    assert done.stdout, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, answer


def adopt(daemon: RunningDaemon) -> tuple[int, dict[str, Any]]:
    """Adopt what is left of a stopped journal; with a new approver code, which needs no old one then."""
    _, made = command(daemon, "approver", "reset")
    return command(daemon, "journal", "adopt", approver=made.get("approver_code") or "")


def run(daemon: RunningDaemon, *args: str, editor: str = "", code: str = "") -> tuple[int, str]:
    """Run one of the commands about conflicts."""
    return cli(daemon, "conflicts", *args, EDITOR=editor, VISUAL=editor, ORCHESTRATOR_APPROVER=code)


def shown(daemon: RunningDaemon, number: str) -> str:
    """The version that a person looks at now, as the command line tells it."""
    ended, said = run(daemon, "show", number)
    assert ended == 0
    (version,) = re.findall(r"with --on (@[0-9]+)$", said, re.MULTILINE)
    return str(version)
