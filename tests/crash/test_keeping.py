"""Killed while events are archived, brought back, or contents collected: it happened whole, or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator.clients.python import FileAccess
from orchestrator.core.errors import DaemonRestarted
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

LARGE = "0123456789\n" * 30_000


@pytest.fixture
def daemon(base: Path) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(base)
    assert daemon.start()["ok"]
    yield daemon
    daemon.stop()


async def prepared(daemon: RunningDaemon) -> tuple[str, str]:
    """Contents that go when the events before a position are archived; the code and that position."""
    approver = await daemon.make_approver()
    async with daemon.client("bot") as files:
        await files.write_file("a.txt", LARGE, mode="create")
        await files.write_file("a.txt", "two\n", mode="truncate")
    async with daemon.client() as person:
        return approver, (await person.status()).head


def crashing(daemon: RunningDaemon, at: str) -> RunningDaemon:
    """The same workspace, served by a daemon that ends at a step."""
    assert daemon.stop() == 0
    ending = RunningDaemon(daemon.base, module=("-m", "tests.crash.crashing", "--at", at))
    assert ending.start()["ok"]
    return ending


def rows(daemon: RunningDaemon, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(daemon.state_dir / "journal.db")) as journal:
        return journal.execute(query).fetchall()


async def records_hold(person: FileAccess) -> None:
    report = await person.journal_verify()
    assert (report.ok, report.problems) == (True, ())
    assert (await person.journal_rebuild()).ok


@pytest.mark.parametrize("happened", [False, True], ids=["before its commit", "after its commit"])
async def test_killed_while_archiving(daemon: RunningDaemon, happened: bool) -> None:
    approver, head = await prepared(daemon)
    ending = crashing(daemon, f"txn_{'committed' if happened else 'open'}:segment_archived")
    async with ending.client() as person:
        with pytest.raises(DaemonRestarted):
            await person.journal_archive(head, approver=approver)
    ending.kill()
    assert len(rows(daemon, "SELECT file FROM segments")) == happened
    assert rows(daemon, "SELECT min(seq) FROM events") == [(int(head[1:]) if happened else 1,)]
    assert daemon.start()["ok"]
    async with daemon.client() as person:
        await records_hold(person)
        answer = await person.journal_archive(head, approver=approver)
        assert (len(answer.moved), len(answer.archived)) == (not happened, 1)
        await records_hold(person)


@pytest.mark.parametrize("happened", [False, True], ids=["before its commit", "after its commit"])
async def test_killed_while_bringing_back(daemon: RunningDaemon, happened: bool) -> None:
    approver, head = await prepared(daemon)
    async with daemon.client() as person:
        (moved,) = (await person.journal_archive(head, approver=approver)).moved
    ending = crashing(daemon, f"txn_{'committed' if happened else 'open'}:segment_restored")
    async with ending.client() as person:
        with pytest.raises(DaemonRestarted):
            await person.journal_unarchive(moved.file, approver=approver)
    ending.kill()
    assert len(rows(daemon, "SELECT file FROM segments")) == (not happened)
    assert rows(daemon, "SELECT min(seq) FROM events") == [(1 if happened else int(head[1:]),)]
    assert daemon.start()["ok"]
    async with daemon.client() as person:
        await records_hold(person)


@pytest.mark.parametrize("happened", [False, True], ids=["before its commit", "after its commit"])
async def test_killed_while_collecting(daemon: RunningDaemon, happened: bool) -> None:
    approver, head = await prepared(daemon)
    async with daemon.client() as person:
        await person.journal_archive(head, approver=approver)
    ending = crashing(daemon, f"txn_{'committed' if happened else 'open'}:contents_collected")
    async with ending.client() as person:
        with pytest.raises(DaemonRestarted):
            await person.journal_collect(approver=approver, grace_days=0)
    ending.kill()
    assert len(rows(daemon, "SELECT 1 FROM blobs WHERE data IS NULL")) == (not happened)
    assert [path for path in (daemon.state_dir / "blobs").rglob("*") if path.is_file()]  # not unlinked yet
    assert daemon.start()["ok"]
    assert bool([path for path in (daemon.state_dir / "blobs").rglob("*") if path.is_file()]) is not happened
    async with daemon.client() as person:
        await records_hold(person)
        assert (await person.journal_collect(approver=approver, grace_days=0)).contents == (not happened)
        await records_hold(person)
