"""The journal goes away or is cut under a daemon that serves: nothing is acknowledged that a restart would not find."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from orchestrator.clients.python import RemoteError
from tests.daemon.cli import command
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(base)
    assert daemon.start("--no-watch")["ok"]
    yield daemon
    daemon.stop()


def delete(state: Path) -> None:
    shutil.rmtree(state)


def move(state: Path) -> None:
    state.rename(state.with_name("elsewhere"))


def replace(state: Path) -> None:
    """By a copy that was made while the daemon served, as a backup program makes one."""
    copy = state.with_name("copy")
    shutil.copytree(state, copy)
    move(state)
    copy.rename(state)


def replace_the_database(state: Path) -> None:
    (state / "copy.db").write_bytes((state / "journal.db").read_bytes())
    (state / "copy.db").replace(state / "journal.db")


def delete_the_log(state: Path) -> None:
    (state / "journal.db-wal").unlink()


def cut_the_log(state: Path) -> None:
    os.truncate(state / "journal.db-wal", 0)


def cut_the_database(state: Path) -> None:
    os.truncate(state / "journal.db", 8192)


def fold_the_log(state: Path) -> None:
    with closing(sqlite3.connect(state / "journal.db")) as journal:
        journal.execute("PRAGMA wal_checkpoint(TRUNCATE)")


async def the_check_of_the_start_ends(daemon: RunningDaemon) -> None:
    """It reads the journal too, and might be the first to meet the trouble."""
    async with daemon.client() as person:
        with anyio.fail_after(60):
            while (await person.status()).health.checked == "running":
                await anyio.lowlevel.checkpoint()


LARGE = 400_000
"""Bytes; such a content is a file of its own in the state directory, written before its event."""


@pytest.mark.parametrize(
    ("disturb", "size", "hint"),
    [
        (delete, 4, "Put the state directory back"),
        (delete, LARGE, "Put the state directory back"),
        (move, 4, "Put the state directory back"),
        (replace, 4, "Put the state directory back"),
        (replace_the_database, 4, "Put the state directory back"),
        (delete_the_log, 4, "Put the state directory back"),
        (cut_the_log, 4, "`orchestrator stop`"),
        (cut_the_log, LARGE, "`orchestrator stop`"),
        (cut_the_database, 4, "`orchestrator stop`"),
    ],
)
async def test_writes_stop(daemon: RunningDaemon, disturb: Callable[[Path], None], size: int, hint: str) -> None:
    async with daemon.client("alice") as files:
        await files.write_file("a.txt", "one\n", "create")
        await the_check_of_the_start_ends(daemon)
        if disturb is cut_the_database:  # what lies in the log alone is not cut with it
            fold_the_log(daemon.state_dir)
            await files.write_file("c.txt", "one\n", "create")
        disturb(daemon.state_dir)
        for name in ("a.txt", "b.txt"):
            with pytest.raises(RemoteError) as refused:
                await files.write_file(name, "x" * size, "create" if name == "b.txt" else "append")
            assert refused.value.code == "writes_stopped"
            assert "journal.db" in refused.value.message
            assert hint in refused.value.hint
            assert "move it away" not in refused.value.hint
        assert (daemon.workspace / "a.txt").read_text() == "one\n"
        assert not (daemon.workspace / "b.txt").exists()
        assert (await files.read_file("a.txt")).text.endswith("one\n"), "reads go on"
    async with daemon.client() as person:
        health = (await person.status()).health
        assert health.state == "writes_stopped"
        assert any("journal.db" in note for note in health.notes), health.notes
        with pytest.raises(RemoteError) as refused:
            await person.journal_verify()
        assert refused.value.code == "writes_stopped", "what lies there is not what the daemon serves"
    assert command(daemon, "stop")[0] == 0
    assert daemon.wait() == 0
    said = daemon.start()
    if disturb in (delete, move):
        assert (said["ok"], said["code"]) == (False, "journal_behind"), "a new journal would forget the old one"
    elif said["ok"]:
        async with daemon.client() as person:
            assert (await person.file_history("a.txt")).versions, "what was acknowledged is there"
    else:
        assert said["code"] in ("journal_behind", "journal_corrupt"), "what was acknowledged does not vanish silently"


async def test_a_state_directory_that_is_put_back_is_served_again(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as files:
        await files.write_file("a.txt", "one\n", "create")
        move(daemon.state_dir)
        with pytest.raises(RemoteError):
            await files.write_file("b.txt", "two\n", "create")
    daemon.state_dir.with_name("elsewhere").rename(daemon.state_dir)
    assert daemon.stop() == 0
    assert daemon.start()["ok"]
    async with daemon.client("alice") as files:
        assert (await files.write_file("b.txt", "two\n", "create")).status == "applied"
        assert (await files.file_history("a.txt")).versions


async def test_a_log_that_is_folded_into_its_database_from_outside_is_no_damage(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as files:
        await files.write_file("a.txt", "one\n", "create")
        fold_the_log(daemon.state_dir)
        assert (daemon.state_dir / "journal.db-wal").stat().st_size == 0
        assert (await files.write_file("b.txt", "two\n", "create")).status == "applied"
    async with daemon.client() as person:
        assert (await person.status()).health.state == "ok"


async def test_a_page_that_can_not_be_read_stops_writes(daemon: RunningDaemon) -> None:
    """Of no file that became shorter: SQLite itself says so, to who looks something up for a change."""
    async with daemon.client("alice") as files:
        await files.write_file("a.txt", "one\n", "create")
        fold_the_log(daemon.state_dir)
        path = daemon.state_dir / "journal.db"
        path.write_bytes(path.read_bytes()[:4096] + b"\x5a" * (path.stat().st_size - 4096))
        os.utime(path)
        for name in ("b.txt", "c.txt"):
            with pytest.raises(RemoteError) as refused:
                await files.write_file(name, "two\n", "create")
            assert refused.value.code == "writes_stopped"
            assert "`orchestrator stop`" in refused.value.hint
            assert not (daemon.workspace / name).exists()
    async with daemon.client() as person:
        assert (await person.status()).health.state == "writes_stopped"
