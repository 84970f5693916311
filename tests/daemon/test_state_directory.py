"""`--state-dir` beside a daemon that runs from another state directory: nothing answers for the wrong journal."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.daemon.cli import command
from tests.daemon.daemon_process import RunningDaemon


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
    code, reported = command(daemon, *words, "--state-dir", other)
    assert (code, reported["code"]) == (1, "state_directory_in_use")
    assert str(daemon.state_dir) in reported["message"]
    assert "orchestrator stop" in reported["hint"]
    assert not Path(other).exists()
    assert daemon.process is not None
    assert daemon.process.poll() is None


def test_its_own_state_directory_may_be_named_by_any_way_there(daemon: RunningDaemon) -> None:
    link = daemon.base / "link"
    link.symlink_to(daemon.state_dir)
    for name in (daemon.state_dir, link, f"{daemon.base}/work/../state"):
        code, reported = command(daemon, "status", "--state-dir", str(name))
        assert (code, reported["workspace"]) == (0, str(daemon.workspace))


def test_verify_looks_at_the_journal_that_was_named(daemon: RunningDaemon) -> None:
    copy = daemon.base / "copy"
    assert command(daemon, "journal", "backup", str(copy))[0] == 0
    assert command(daemon, "journal", "verify", "--state-dir", str(copy))[1]["ok"] is True
    tampered = daemon.base / "tampered"
    shutil.copytree(copy, tampered)
    with closing(sqlite3.connect(tampered / "journal.db")) as journal:
        journal.execute("UPDATE events SET stream = 'elsewhere' WHERE seq = 1")
        journal.commit()
    code, reported = command(daemon, "journal", "verify", "--state-dir", str(tampered))
    assert (code, reported.get("ok", False)) == (1, False)
    assert any("@1" in problem for problem in reported["problems"])
    missing = daemon.base / "missing"
    code, reported = command(daemon, "journal", "verify", "--state-dir", str(missing))
    assert (code, reported["code"]) == (1, "journal_corrupt")
    assert str(missing) in reported["message"]
    assert not missing.exists()
    assert command(daemon, "journal", "verify")[1]["ok"] is True


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """For root too, whom no mode keeps from writing."""
    if os.getuid():
        folder.chmod(0o500)
        try:
            yield
        finally:
            folder.chmod(0o700)
        return
    for words in (["--bind", folder, folder], ["-o", "remount,ro,bind", folder]):
        done = subprocess.run(["mount", *map(str, words)], check=False, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def asked_by_an_agent(daemon: RunningDaemon) -> str:
    """What `orchestrator mcp` answers an agent that calls, and tells the person."""
    asks = (
        {"method": "initialize", "params": {"protocolVersion": "2025-11-25"}},
        {"method": "tools/call", "params": LIST},
    )
    words = ["-m", "orchestrator", "mcp", "--workspace", str(daemon.workspace)]
    done = subprocess.run(
        [sys.executable, *words],
        env=daemon.env,
        input="".join(json.dumps({"jsonrpc": "2.0", "id": id, **ask}) + "\n" for id, ask in enumerate(asks)),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stdout + done.stderr


LIST = {"name": "list_files", "arguments": {}}


@pytest.mark.parametrize("what", ["the state directory", "the state root", "a file in its place"])
def test_a_start_says_which_directory_takes_no_writes(base: Path, what: str) -> None:
    daemon = RunningDaemon(base)
    root = daemon.home / ".local/state/orchestrator"
    if what == "a file in its place":
        root.parent.mkdir(parents=True)
        root.write_text("in the way")
        assert_unusable(daemon, root, "up")
        return
    assert command(daemon, "up")[0] == 0
    assert command(daemon, "stop")[0] == 0
    closed = root / daemon.id if what == "the state directory" else root
    with read_only(closed):
        assert_unusable(daemon, closed, "up")
        assert_unusable(daemon, closed, "journal", "adopt")
        said = asked_by_an_agent(daemon)
        assert "state_directory_unusable" in said
        assert "orchestrator up" not in said, "that would lead back here"
    assert command(daemon, "up")[0] == 0
    assert command(daemon, "stop")[0] == 0


def assert_unusable(daemon: RunningDaemon, where: Path, *words: str) -> None:
    code, reported = command(daemon, *words)
    assert (code, reported["code"]) == (1, "state_directory_unusable"), reported
    assert str(where) in reported["message"]
    assert "writable" in reported["hint"]


def test_the_stdio_transport_does_not_lead_there_either(daemon: RunningDaemon) -> None:
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
