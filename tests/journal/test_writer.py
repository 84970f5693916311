"""The writer thread: many units in one commit, each on its own feet; and what a failing disk means."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from orchestrator.core.content import FoundFile
from orchestrator.core.errors import DiskFull, OrchestratorError, WritesStopped
from orchestrator.core.events.base import Origin
from orchestrator.core.events.files import FilesFound
from orchestrator.core.events.journal_maintenance import PayloadRedacted
from orchestrator.core.events.sessions import TaskBegun
from orchestrator.core.ids import Seq, SessionId, WorkspacePath
from orchestrator.journal import database_file
from orchestrator.journal import sqlite as sqlite_module
from orchestrator.journal.database_file import FILE_NAME, open_reader, open_writer
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.journal.writer import TransactionHook
from orchestrator.ports.journal import AppendBatch, StreamMoved
from tests.journal.conftest import Open
from tests.journal.fixtures import TASK, looked, signature, unit

pytestmark = pytest.mark.anyio


async def test_concurrent_appends_share_commits(opened: Open) -> None:
    steps: list[str] = []
    journal = await opened(step=steps.append)

    async def append() -> None:
        for _ in range(5):
            await journal.append(unit(looked()))

    async with anyio.create_task_group() as group:
        for _ in range(64):
            group.start_soon(append)
    commits = steps.count("txn_committed:metadata_read")
    assert journal.head == 320
    assert commits == steps.count("txn_open:metadata_read")
    assert commits <= 100


async def test_steps_are_on_both_sides_of_the_commit(state_dir: Path, opened: Open) -> None:
    seen: list[tuple[str, int]] = []

    def step(name: str) -> None:
        reader = open_reader(state_dir / FILE_NAME)
        seen.append((name, reader.execute("SELECT count(*) FROM events").fetchone()[0]))
        reader.close()

    journal = await opened(step=step)
    await journal.append(unit(looked(), TASK, looked()))
    assert seen == [
        ("txn_open:metadata_read", 0),
        ("txn_open:task_begun", 0),
        ("txn_committed:metadata_read", 3),
        ("txn_committed:task_begun", 3),
    ]


async def outcomes(journal: SqliteJournal, *units: AppendBatch) -> list[Any]:
    """What came of each, all sent at once."""
    results: list[Any] = [None] * len(units)

    async def append(number: int, one: AppendBatch) -> None:
        try:
            results[number] = [recorded.seq for recorded in await journal.append(one)]
        except (StreamMoved, OrchestratorError, OverflowError) as error:
            results[number] = type(error)

    async with anyio.create_task_group() as group:
        for number, one in enumerate(units):
            group.start_soon(append, number, one)
    return results


async def test_a_unit_that_does_not_fit_leaves_its_neighbours_alone(opened: Open) -> None:
    journal = await opened()
    found = await outcomes(
        journal,
        unit(looked(), looked(), stream="x", expected=0),
        unit(looked(), looked(), stream="x", expected=1),
        unit(looked(), stream="x", expected=2),
        unit(looked(), stream="x", expected=2),
    )
    assert found == [[1, 2], StreamMoved, [3], StreamMoved]
    assert (await journal.verify()).problems == ()


async def test_a_value_that_no_column_holds_leaves_its_neighbours_alone(opened: Open) -> None:
    journal = await opened()
    entry = FoundFile(path=WorkspacePath("a"), signature=signature(1), mode=2**63)
    found = await outcomes(journal, unit(looked()), unit(FilesFound(entries=(entry,))), unit(looked()))
    assert found == [[1], OverflowError, [2]]
    assert (await journal.verify()).problems == ()


# --- a failing disk ---------------------------------------------------------------------


async def test_a_full_disk_refuses_and_goes_on_when_there_is_space(
    monkeypatch: pytest.MonkeyPatch, opened: Open
) -> None:
    held: list[sqlite3.Connection] = []

    def limited(path: Path) -> sqlite3.Connection:
        held.append(open_writer(path))
        return held[0]

    monkeypatch.setattr(sqlite_module, "open_writer", limited)
    journal = await opened()
    await journal.append(unit(looked()))
    (pages,) = held[0].execute("PRAGMA page_count").fetchone()
    held[0].execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(DiskFull):
        await journal.append(unit(*[looked("x" * 1000)] * 50, stream="x"))
    assert (journal.head, journal.stream_version("x")) == (1, 0)
    held[0].execute(f"PRAGMA max_page_count = {pages + 1000}")
    await journal.append(unit(looked("x" * 1000), stream="x", expected=0))
    assert journal.head == 2
    assert (await journal.verify()).problems == ()


class Failing(sqlite3.Connection):
    """Its commits fail while `broken` is set, as after a failed fsync."""

    broken = False

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if statement == "COMMIT" and Failing.broken:
            raise sqlite3.OperationalError("disk I/O error")
        return super().execute(statement, *values)


def connect_failing(place: Path | str, *, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(place, uri=uri, isolation_level=None, check_same_thread=False, factory=Failing)


async def test_a_failed_sync_stops_writing_for_good(monkeypatch: pytest.MonkeyPatch, opened: Open) -> None:
    monkeypatch.setattr(database_file, "_connect", connect_failing)
    journal = await opened()
    await journal.append(unit(looked()))
    monkeypatch.setattr(Failing, "broken", True)
    assert await outcomes(journal, unit(looked()), unit(looked())) == [WritesStopped] * 2
    monkeypatch.setattr(Failing, "broken", False)
    with pytest.raises(WritesStopped, match="disk I/O error"):
        await journal.append(unit(looked()))
    assert [recorded.seq async for recorded in journal.events()] == [1]
    assert journal.head == 1
    await journal.close()
    again = await opened()
    await again.append(unit(looked()))
    assert (await again.verify()).problems == ()


async def test_a_reader_of_an_older_state_holds_a_redaction_up_until_it_is_gone(state_dir: Path, opened: Open) -> None:
    journal = await opened()
    await journal.append(unit(TaskBegun(session=SessionId("s"), title="swordfish")))
    log = state_dir / "journal.db-wal"
    reader = open_reader(state_dir / FILE_NAME)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM events").fetchone()
    done = await journal.redact(PayloadRedacted(target=Seq(1), fields=("title",), by="ada"), Origin())
    assert not done.scrubbed
    assert b"swordfish" in log.read_bytes()
    reader.close()
    await journal.append(unit(looked()))
    assert b"swordfish" not in log.read_bytes()
    assert b"swordfish" not in (state_dir / FILE_NAME).read_bytes()


@pytest.mark.parametrize("step", ["txn_open:metadata_read", "txn_open:any"], ids=["queued", "under way"])
async def test_a_hook_that_nobody_waits_for_any_more(opened: Open, step: str) -> None:
    """Called off before or while it runs, it leaves the writer to the units."""
    reached, go_on = threading.Event(), threading.Event()

    def hold(name: str) -> None:
        if name == step and not go_on.is_set():
            reached.set()
            assert go_on.wait(60)

    journal = await opened(step=hold)
    hook = TransactionHook(inside=lambda connection: None, name="any")
    async with anyio.create_task_group() as tasks:
        if step == "txn_open:metadata_read":
            tasks.start_soon(journal.append, unit(looked()))
            await to_thread.run_sync(reached.wait, 60)
        async with anyio.create_task_group() as waiting:
            waiting.start_soon(journal.append, AppendBatch((), Origin()), hook)
            await anyio.wait_all_tasks_blocked()
            await to_thread.run_sync(reached.wait, 60)
            waiting.cancel_scope.cancel()
        go_on.set()
        with anyio.fail_after(60):
            (recorded,) = await journal.append(unit(looked()))
    assert journal.head == recorded.seq
