"""The state directory goes away under a daemon that serves: nothing is acknowledged that a restart would not find."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.clients.python import RemoteError
from tests.daemon.cli import command
from tests.daemon.running import RunningDaemon

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


LARGE = 400_000
"""Bytes; such a content is a file of its own in the state directory, written before its event."""


@pytest.mark.parametrize(
    ("disturb", "size"),
    [(delete, 4), (delete, LARGE), (move, 4), (replace, 4), (replace_the_database, 4), (delete_the_log, 4)],
)
async def test_writes_stop(daemon: RunningDaemon, disturb: Callable[[Path], None], size: int) -> None:
    async with daemon.client("alice") as files:
        await files.write_file("a.txt", "one\n", "create")
        disturb(daemon.state_dir)
        for name in ("a.txt", "b.txt"):
            with pytest.raises(RemoteError) as refused:
                await files.write_file(name, "x" * size, "create" if name == "b.txt" else "append")
            assert refused.value.code == "writes_stopped"
            assert "journal.db" in refused.value.message
            assert "Put the state directory back" in refused.value.hint
        assert (daemon.workspace / "a.txt").read_text() == "one\n"
        assert not (daemon.workspace / "b.txt").exists()
        assert (await files.read_file("a.txt")).text.endswith("one\n"), "reads go on"
    async with daemon.client() as person:
        health = (await person.status()).health
        assert health.state == "writes_stopped"
        assert any("journal.db" in note for note in health.notes)
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
        assert said["code"] == "journal_behind", "what was acknowledged does not vanish silently"


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
