"""`journal restore`: only a journal's own parts, and only this workspace's, come into the state directory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.daemon.cli import adopt, command
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    started = RunningDaemon(base / "one")
    assert started.start()["ok"]
    yield started
    started.stop()


@pytest.fixture
def base(base: Path) -> Path:
    (base / "one").mkdir()
    (base / "two").mkdir()
    return base


def backed_up(daemon: RunningDaemon) -> Path:
    """A backup, and the daemon stopped."""
    target = daemon.base / "backup"
    code, answer = command(daemon, "journal", "backup", str(target))
    assert code == 0, answer
    assert daemon.stop() == 0
    return target


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "daemon.lock"}


@pytest.mark.parametrize(
    "name",
    [
        *("policy.toml", "journal.key", "before-20260101-000000/journal.db"),
        *("blobs/x", "blobs/incoming/1", "blobs/ab/" + "c" * 62, "archive/x"),
    ],
)
async def test_what_is_no_part_of_a_journal_is_not_restored(daemon: RunningDaemon, name: str) -> None:
    """A policy or a key that came with a doctored backup would take the place of the operator's own."""
    (daemon.state_dir / "policy.toml").write_bytes(b"# the operator's own\n")
    backup = backed_up(daemon)
    (backup / name).parent.mkdir(parents=True, exist_ok=True)
    (backup / name).write_bytes(b"# another's\n")
    code, answer = command(daemon, "journal", "restore", str(backup))
    assert code == 0, answer
    assert b"# another's\n" not in contents(daemon.state_dir).values()
    assert (daemon.state_dir / "policy.toml").read_bytes() == b"# the operator's own\n"


@pytest.mark.parametrize("name", ["../policy.toml", "policy.toml", "../../elsewhere"])
async def test_a_segment_that_lies_elsewhere_is_not_restored(daemon: RunningDaemon, name: str) -> None:
    backup = backed_up(daemon)
    with closing(sqlite3.connect(backup / "journal.db")) as database:
        values = (1, 1, b"", b"", name, "sha256:" + "0" * 64, 1)
        database.execute("INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        database.commit()
    (backup / "policy.toml").write_bytes(b"# another's\n")
    before = contents(daemon.state_dir)
    code, answer = command(daemon, "journal", "restore", str(backup))
    assert (code, answer["code"]) == (1, "backup_invalid"), answer
    assert contents(daemon.state_dir) == before


async def test_another_workspaces_backup_is_not_served_until_it_is_adopted(base: Path, daemon: RunningDaemon) -> None:
    (daemon.workspace / "here.txt").write_text("here\n")
    other = RunningDaemon(base / "two")
    assert other.start()["ok"]
    foreign = backed_up(other)
    assert daemon.stop() == 0
    code, answer = command(daemon, "journal", "restore", str(foreign))
    assert code == 0, answer
    refused = daemon.start()
    assert (refused["code"], "another one than the workspace's" in str(refused["message"])) == ("journal_behind", True)
    daemon.wait()
    code, answer = adopt(daemon)
    assert code == 0, answer
    assert "another journal" in answer["message"]
    assert daemon.start()["ok"]


async def test_an_adoption_prints_its_answer_alone(daemon: RunningDaemon) -> None:
    """What it logs, as of a snapshot from before an upgrade, goes to stderr."""
    assert daemon.stop() == 0
    with closing(sqlite3.connect(daemon.state_dir / "journal.db")) as database:
        assert database.execute("UPDATE snapshots SET version = 'old'").rowcount
        database.commit()
    code, answer = adopt(daemon)
    assert code == 0, answer
