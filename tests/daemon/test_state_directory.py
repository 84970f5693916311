"""`--state-dir` beside a daemon that runs from another state directory: nothing answers for the wrong journal."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.daemon.cli import command
from tests.daemon.running import RunningDaemon


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("stop",),
        ("log",),
        ("files",),
        ("journal", "checkpoint"),
        ("journal", "export"),
        ("journal", "backup", "/nowhere/backup"),
        ("replay", "--check"),
        ("up",),
    ],
    ids=" ".join,
)
def test_a_daemon_with_another_state_directory_is_not_asked(daemon: RunningDaemon, words: tuple[str, ...]) -> None:
    other = str(daemon.base / "other")
    code, told = command(daemon, *words, "--state-dir", other)
    assert (code, told["code"]) == (1, "state_directory_in_use")
    assert str(daemon.state_dir) in told["message"]
    assert "orchestrator stop" in told["hint"]
    assert not Path(other).exists()
    assert daemon.process is not None
    assert daemon.process.poll() is None


def test_its_own_state_directory_may_be_named_by_any_way_there(daemon: RunningDaemon) -> None:
    link = daemon.base / "link"
    link.symlink_to(daemon.state_dir)
    for name in (daemon.state_dir, link, f"{daemon.base}/work/../state"):
        code, told = command(daemon, "status", "--state-dir", str(name))
        assert (code, told["workspace"]) == (0, str(daemon.workspace))


def test_verify_looks_at_the_journal_that_was_named(daemon: RunningDaemon) -> None:
    copy = daemon.base / "copy"
    assert command(daemon, "journal", "backup", str(copy))[0] == 0
    assert command(daemon, "journal", "verify", "--state-dir", str(copy))[1]["ok"] is True
    tampered = daemon.base / "tampered"
    shutil.copytree(copy, tampered)
    with closing(sqlite3.connect(tampered / "journal.db")) as journal:
        journal.execute("UPDATE events SET stream = 'elsewhere' WHERE seq = 1")
        journal.commit()
    code, told = command(daemon, "journal", "verify", "--state-dir", str(tampered))
    assert (code, told["ok"]) == (1, False)
    assert any("@1" in problem for problem in told["problems"])
    missing = daemon.base / "missing"
    code, told = command(daemon, "journal", "verify", "--state-dir", str(missing))
    assert (code, told["code"]) == (1, "journal_corrupt")
    assert str(missing) in told["message"]
    assert not missing.exists()
    assert command(daemon, "journal", "verify")[1]["ok"] is True


def test_the_stdio_door_does_not_lead_there_either(daemon: RunningDaemon) -> None:
    words = ["mcp", "--workspace", str(daemon.workspace), "--state-dir", str(daemon.base / "other")]
    ask = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator", *words],
        env=daemon.env,
        input=json.dumps(ask) + "\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert str(daemon.state_dir) in done.stderr
    assert json.loads(done.stdout)["error"]["data"]["code"] == "state_directory_in_use"
