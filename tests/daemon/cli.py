"""The command line beside a running daemon, for tests."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

from tests.daemon.daemon_process import RunningDaemon


def command(daemon: RunningDaemon, *arguments: str, approver: str = "") -> tuple[int, dict[str, Any]]:
    """Run a command with --json; its exit code, and what it printed."""
    env = {**daemon.env, "ORCHESTRATOR_APPROVER": approver} if approver else daemon.env
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", *arguments, "--workspace", str(daemon.workspace), "--json"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
    assert done.stdout, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return done.returncode, answer


def run(daemon: RunningDaemon, *args: str, editor: str = "", code: str = "") -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", "conflicts", *args, "--workspace", str(daemon.workspace)],
        env={
            **daemon.env,
            "PYTHONPATH": os.getcwd(),
            "EDITOR": editor,
            "VISUAL": editor,
            "ORCHESTRATOR_APPROVER": code,
        },
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
    return done.returncode, done.stdout + done.stderr


def shown(daemon: RunningDaemon, number: str) -> str:
    """The version that a person looks at now, as the command line tells it."""
    ended, said = run(daemon, "show", number)
    assert ended == 0
    (version,) = re.findall(r"with --on (@[0-9]+)$", said, re.MULTILINE)
    return str(version)
