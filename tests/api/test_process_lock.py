"""The locks that keep a second daemon away."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.api.processes import LOCK_FILE, hold_root, hold_state
from orchestrator.core.errors import WorkspaceHeld


@pytest.mark.parametrize("hold", [hold_root, hold_state])
def test_held_once(hold: Callable[[str], int], tmp_path: Path) -> None:
    first = hold(str(tmp_path))
    with pytest.raises(WorkspaceHeld):
        hold(str(tmp_path))
    os.close(first)
    os.close(hold(str(tmp_path)))


def test_by_a_link_it_is_the_same_root(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "link").symlink_to("ws")
    held = hold_root(str(tmp_path / "ws"))
    with pytest.raises(WorkspaceHeld):
        hold_root(str(tmp_path / "link"))
    os.close(held)


def test_a_process_that_ends_lets_go(tmp_path: Path) -> None:
    code = "import sys; from orchestrator.api.processes import hold_root; hold_root(sys.argv[1]); print('held')"
    code += "; sys.stdout.flush(); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(WorkspaceHeld):
            hold_root(str(tmp_path))
        process.kill()
    os.close(hold_root(str(tmp_path)))


@pytest.mark.parametrize("hold", [hold_root, hold_state])
def test_a_look_at_the_lock_keeps_nobody_away(
    hold: Callable[[str], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.close(hold(str(tmp_path)))
    look = os.open(tmp_path if hold is hold_root else tmp_path / LOCK_FILE, os.O_RDONLY)
    fcntl.flock(look, fcntl.LOCK_SH)
    monkeypatch.setattr("orchestrator.api.processes.time.sleep", lambda pause_s: os.close(look))
    os.close(hold(str(tmp_path)))


def test_the_holder_is_named(tmp_path: Path) -> None:
    held = hold_state(tmp_path)
    with pytest.raises(WorkspaceHeld, match=f"process {os.getpid()}"):
        hold_state(tmp_path)
    os.close(held)
