"""A daemon that starts on what another one left: from a snapshot, whatever became of it, and what it vouches for."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from orchestrator.api.administration import Health
from orchestrator.clients.python import FileAccess, RemoteError
from orchestrator.journal.database_file import FILE_NAME
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

WAIT_S = 60

CRASHING = ("-m", "tests.crash.crashing")


@pytest.fixture
def stopped(base: Path) -> Iterator[RunningDaemon]:
    """A daemon that is started by the test; ended after it, however it left it."""
    daemon = RunningDaemon(base)
    (daemon.workspace / "a.txt").write_text("one\n")
    yield daemon
    if daemon.process is not None and daemon.process.poll() is None:
        daemon.kill()


def alter(daemon: RunningDaemon, *statements: str) -> None:
    connection = sqlite3.connect(daemon.state_dir / FILE_NAME)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def snapshots(daemon: RunningDaemon) -> list[int]:
    connection = sqlite3.connect(daemon.state_dir / FILE_NAME)
    found = connection.execute("SELECT seq FROM snapshots ORDER BY seq").fetchall()
    connection.close()
    return [seq for (seq,) in found]


def head(daemon: RunningDaemon) -> int:
    connection = sqlite3.connect(daemon.state_dir / FILE_NAME)
    (found,) = connection.execute("SELECT max(seq) FROM events").fetchone()
    connection.close()
    return int(found)


async def work(files: FileAccess) -> None:
    await files.read_file("a.txt")
    task = await files.begin_task("a task that goes on")
    assert task.task


async def checked(person: FileAccess) -> Health:
    """The state of health once the check in the background has come to its end."""
    with anyio.fail_after(WAIT_S):
        while (health := (await person.status()).health).checked == "running":
            await anyio.lowlevel.checkpoint()
    return health


async def lived(daemon: RunningDaemon) -> int:
    """One clean life with some events in it; where it ended."""
    daemon.start()
    async with daemon.client("alice") as files:
        await work(files)
    assert daemon.stop() == 0, daemon.log[-3000:]
    return head(daemon)


async def test_a_clean_stop_leaves_a_snapshot_of_the_last_event(stopped: RunningDaemon) -> None:
    end = await lived(stopped)
    assert snapshots(stopped) == [end]
    stopped.start()
    async with stopped.client() as person:
        health = await checked(person)
        assert (health.state, health.checked[0]) == ("ok", "@")
        verified = await person.journal_verify()
        assert verified.ok
        report = await person.journal_rebuild()
        assert (report.ok, report.first_difference) == (True, None)
        assert report.projections[-1] == "file_versions"
    assert stopped.stop() == 0


async def test_what_a_session_saw_lasts_over_a_snapshot(stopped: RunningDaemon) -> None:
    """A version that was read before the restart can be the base of an edit after it."""
    stopped.start()
    async with stopped.client("alice") as files:
        session = (await files.session_status()).session
        read = await files.read_file("a.txt")
    assert stopped.stop() == 0
    stopped.start()
    async with stopped.client("alice", session=session) as files:
        assert "a.txt" in str((await files.session_status()).recent_reads)
        again = await files.read_file("a.txt")
        assert again.version_id == read.version_id
    assert stopped.stop() == 0


DAMAGE = [
    pytest.param(("UPDATE snapshots SET data = x'00'",), "passed over", id="no zstd"),
    pytest.param(("UPDATE snapshots SET digest = zeroblob(32)",), "passed over", id="another digest"),
    pytest.param(("UPDATE snapshots SET version = 'registry:0'",), "other projections", id="other projections"),
    pytest.param(("DROP TABLE snapshots",), "first event", id="no table"),
    pytest.param(("DELETE FROM snapshots",), "", id="none"),
]


@pytest.mark.parametrize(("statements", "said"), DAMAGE)
async def test_a_snapshot_that_can_not_be_used_costs_time_only(
    stopped: RunningDaemon, statements: tuple[str, ...], said: str
) -> None:
    await lived(stopped)
    alter(stopped, *statements)
    stopped.start()
    assert said in stopped.log
    async with stopped.client() as person:
        assert (await checked(person)).state == "ok"
    async with stopped.client("alice") as files:
        assert len((await files.journal_query(limit=500)).entries) > 0
    assert stopped.stop() == 0


OLD = [
    pytest.param("UPDATE events SET at = at + 1 WHERE seq = 5", "the envelope of event @5 was altered", id="envelope"),
    pytest.param(
        "UPDATE events SET payload = x'7b7d' WHERE seq = 5", "the payload of event @5 was altered", id="payload"
    ),
    pytest.param("DELETE FROM events WHERE seq = 5", "missing before event @6: @5", id="row gone"),
]


@pytest.mark.parametrize(("statement", "problem"), OLD)
async def test_an_old_row_that_was_altered_stops_the_writes(
    stopped: RunningDaemon, statement: str, problem: str
) -> None:
    """Before the snapshot and the tail that a start reads, after a clean stop: found while serving, and said."""
    stopped.start()
    async with stopped.client("alice") as files:
        for _ in range(25):
            async with anyio.create_task_group() as group:
                for _ in range(60):
                    group.start_soon(files.file_info, "a.txt")
    assert stopped.stop() == 0
    stopped.start()
    async with stopped.client() as person:
        assert (await checked(person)).checked[0] == "@"
    assert stopped.stop() == 0
    alter(stopped, statement)
    assert head(stopped) > 1400
    assert stopped.start().get("ok") is True
    async with stopped.client("alice") as files, stopped.client() as person:
        health = await checked(person)
        assert health.checked == f"failed: {problem}"
        assert health.state == "writes_stopped"
        assert any(f"the journal is damaged: {problem}" in note for note in health.notes)
        assert (await files.read_file("a.txt")).text.endswith("one\n"), "reads go on"
        with pytest.raises(RemoteError) as refused:
            await files.write_file("b.txt", "two\n", "create")
        assert refused.value.code == "writes_stopped"
        assert not (stopped.workspace / "b.txt").exists()
    assert '"level": "error"' in stopped.log


async def test_a_row_in_the_tail_that_was_altered_is_refused_at_the_start(stopped: RunningDaemon) -> None:
    await lived(stopped)
    alter(stopped, "UPDATE events SET at = at + 1 WHERE seq = 5")
    said = stopped.start()
    assert said.get("ok") is None or said.get("ok") is False
    assert "event @5 was altered" in str(said)
    assert stopped.wait() == 1


async def test_rebuild_names_the_first_difference(stopped: RunningDaemon) -> None:
    await lived(stopped)
    alter(stopped, "UPDATE file_versions SET mode = 1")
    stopped.start()
    async with stopped.client() as person:
        report = await person.journal_rebuild()
        assert not report.ok
        assert "/file_versions/a.txt/@2/mode: 1 and 420" in (report.first_difference or "")
    stopped.stop()


@pytest.mark.parametrize("step", ["snapshot_frozen", "txn_open:snapshot", "txn_committed:snapshot"])
async def test_a_crash_beside_a_snapshot_leaves_a_journal_to_start_on(base: Path, step: str) -> None:
    crashing = RunningDaemon(base, module=CRASHING)
    (crashing.workspace / "a.txt").write_text("one\n")
    crashing.start("--at", step)
    async with crashing.client("alice") as files:
        await work(files)
    assert crashing.stop() == -9, "it ended where it should"
    daemon = RunningDaemon(base)
    daemon.start()
    async with daemon.client() as person:
        health = await checked(person)
        assert (health.state, health.checked[0]) == ("ok", "@")
        assert (await person.journal_rebuild()).first_difference is None
    assert daemon.stop() == 0
    assert snapshots(daemon)
