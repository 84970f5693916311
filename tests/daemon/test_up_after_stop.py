"""`stop` and at once `up`: the daemon that is told to stop still holds its locks for a moment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_up_waits_for_the_daemon_that_is_ending(base: Path) -> None:
    for name in ("home", "run", "work"):
        (base / name).mkdir(mode=0o700)
    env = {"HOME": str(base / "home"), "XDG_RUNTIME_DIR": str(base / "run"), "PATH": os.environ["PATH"]}

    def orchestrator(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "orchestrator", "--workspace", str(base / "work"), *words]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=100, check=False)

    try:
        for _ in range(3):
            up = orchestrator("up")
            assert up.returncode == 0, up.stderr
            assert "started, pid" in up.stdout
            stop = orchestrator("stop")
            assert stop.returncode == 0, stop.stderr
    finally:
        orchestrator("stop")
