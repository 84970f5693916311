"""The file on disk: who may open it, how it is opened, and what a reopened one knows."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator.core.change import PathChange, Provenance
from orchestrator.core.errors import JournalCorrupt, JournalTooNew, WorkspaceHeld, WritesStopped
from orchestrator.core.events.files import ChangeApplied
from orchestrator.core.ids import Seq, WorkspacePath
from orchestrator.journal.database_file import APPLICATION_ID, FILE_NAME, migrations, open_reader, open_writer
from orchestrator.journal.event_rows import select
from orchestrator.ports.journal import EventFilter
from tests.journal.conftest import Open
from tests.journal.fixtures import (
    STREAM,
    applied,
    by,
    digest,
    found,
    intended,
    looked,
    seqs,
    unit,
)

pytestmark = pytest.mark.anyio


def asked(connection: sqlite3.Connection, pragma: str) -> object:
    return connection.execute(f"PRAGMA {pragma}").fetchone()[0]


@pytest.mark.parametrize(
    ("pragma", "value"),
    [
        pytest.param("journal_mode", "wal", id="WAL"),
        pytest.param("synchronous", 2, id="FULL: an acknowledged event outlives a power loss"),
        pytest.param("busy_timeout", 5000, id="waits for a lock"),
        pytest.param("application_id", APPLICATION_ID, id="marked as ours"),
        pytest.param("user_version", len(migrations()), id="schema"),
    ],
)
def test_the_writer_is_set_up(state_dir: Path, pragma: str, value: object) -> None:
    connection = open_writer(state_dir / FILE_NAME)
    assert asked(connection, pragma) == value
    connection.close()


def test_every_table_is_strict(state_dir: Path) -> None:
    connection = open_writer(state_dir / FILE_NAME)
    tables = {row[1]: row[5] for row in connection.execute("PRAGMA table_list") if not row[1].startswith("sqlite_")}
    connection.close()
    assert tables == dict.fromkeys(
        (
            "meta",
            "events",
            "requests",
            "blobs",
            "file_versions",
            "snapshots",
            "segments",
            "file_modes",
            "archived_streams",
        ),
        1,
    )


def test_a_reader_can_neither_write_nor_checkpoint(state_dir: Path) -> None:
    path = state_dir / FILE_NAME
    writer = open_writer(path)
    reader = open_reader(path)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("DELETE FROM meta")
    assert (asked(reader, "wal_autocheckpoint"), asked(reader, "query_only")) == (0, 1)
    reader.close()
    writer.close()


async def test_files_are_for_their_owner_only(state_dir: Path, opened: Open) -> None:
    state_dir.mkdir(mode=0o755)
    journal = await opened()
    await journal.append(unit(looked(), blobs=[b"x" * 300_000]))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in state_dir.rglob("*") if path.is_file()}
    assert set(modes) >= {FILE_NAME, f"{FILE_NAME}-wal"}
    assert set(modes.values()) == {0o600}
    folders = [state_dir, *(path for path in state_dir.rglob("*") if path.is_dir())]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}


async def test_a_reopened_journal_goes_on(opened: Open) -> None:
    journal = await opened()
    await journal.append(unit(looked(), looked(), stream="x", origin=by(request="r")))
    await journal.append(unit(found(b"one"), stream="workspace", blobs=[b"one"]))
    before = await journal.newest(limit=1)
    await journal.close()
    again = await opened()
    assert (again.head, again.stream_version("x"), again.stream_version("y")) == (3, 2, 0)
    assert await again.newest(limit=1) == before
    assert await again.request("bot", "r") is not None
    assert await again.blob(digest(b"one")) == b"one"
    (recorded,) = await again.append(unit(looked(), stream="x", expected=2))
    assert (recorded.seq, recorded.stream_version, recorded.prev_hash) == (4, 3, before[0].hash)
    assert (await again.verify()).problems == ()


async def test_closing_leaves_one_file(state_dir: Path, opened: Open) -> None:
    journal = await opened()
    await journal.append(unit(looked()))
    await journal.close()
    await journal.close()
    assert [path.name for path in state_dir.iterdir()] == [FILE_NAME]


async def test_closing_finishes_what_is_under_way(opened: Open) -> None:
    import anyio

    journal = await opened()
    done: list[int] = []

    async def append() -> None:
        done.extend(seqs(await journal.append(unit(looked(), blobs=[b"x" * 300_000]))))

    async with anyio.create_task_group() as group:
        group.start_soon(append)
        await anyio.lowlevel.checkpoint()
        await journal.close()
    assert done == [1]


# --- who else ---------------------------------------------------------------------------


async def test_the_older_of_two_writers_is_refused(opened: Open) -> None:
    older = await opened()
    await older.append(unit(looked()))
    newer = await opened()
    with pytest.raises(WorkspaceHeld):
        await older.append(unit(looked("older")))
    (recorded,) = await newer.append(unit(looked("newer")))
    assert recorded.seq == 2
    with pytest.raises(WorkspaceHeld):
        await older.append(unit(looked("older")))


async def test_a_reader_beside_a_writer(opened: Open) -> None:
    journal = await opened()
    await journal.append(unit(looked(), stream="x"))
    reader = await opened(readonly=True)
    assert (reader.head, reader.stream_version("x")) == (1, 1)
    assert (await reader.verify()).problems == ()
    with pytest.raises(WritesStopped):
        await reader.append(unit(looked()))
    await journal.append(unit(looked()))


async def test_reading_creates_nothing(state_dir: Path, opened: Open) -> None:
    with pytest.raises(JournalCorrupt, match=r"no journal\.db"):
        await opened(readonly=True)
    assert not state_dir.exists()


async def test_what_a_change_undoes_is_stored_once(state_dir: Path, opened: Open) -> None:
    """And not with each of its files: a rollback of 20,000 changes of 200 files wrote 32 MB."""
    journal = await opened()
    paths = tuple(PathChange(path=WorkspacePath(f"f{n}"), before=None, after=digest(b"x")) for n in range(50))
    undo = ChangeApplied(
        change=Seq(1),
        provenance=Provenance(operation="rollback", reverts=tuple(map(Seq, range(1, 1001)))),
        paths=paths,
    )
    await journal.append(unit(undo))
    assert await journal.reverters() == [(1, undo.provenance.reverts)]
    await journal.close()
    with closing(sqlite3.connect(state_dir / FILE_NAME)) as connection:
        rows = connection.execute("SELECT * FROM file_versions").fetchall()
    assert len(rows) == 50
    assert max(len(repr(row)) for row in rows) < 500


# --- what is refused --------------------------------------------------------------------


async def test_a_newer_schema_is_refused(state_dir: Path, opened: Open) -> None:
    await (await opened()).close()
    connection = sqlite3.connect(state_dir / FILE_NAME)
    connection.execute(f"PRAGMA user_version = {len(migrations()) + 1}")
    connection.close()
    for readonly in (False, True):
        with pytest.raises(JournalTooNew, match=f"schema {len(migrations()) + 1}"):
            await opened(readonly=readonly)


async def test_a_database_of_another_program_is_left_alone(state_dir: Path, opened: Open) -> None:
    state_dir.mkdir()
    connection = sqlite3.connect(state_dir / FILE_NAME)
    connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    before = (state_dir / FILE_NAME).read_bytes()
    with pytest.raises(JournalCorrupt, match="another program"):
        await opened()
    assert (state_dir / FILE_NAME).read_bytes() == before


async def test_what_is_no_database_is_refused(state_dir: Path, opened: Open) -> None:
    state_dir.mkdir()
    (state_dir / FILE_NAME).write_bytes(b"not a database, but long enough to be looked at\n" * 100)
    with pytest.raises(JournalCorrupt, match="not a database"):
        await opened()


# --- a log that was cut -----------------------------------------------------------------


async def test_a_cut_log_leaves_a_prefix(state_dir: Path, tmp_path: Path, opened: Open) -> None:
    journal = await opened()
    hashes = ["00" * 32]
    for number in range(12):
        recorded = await journal.append(
            unit(looked(str(number)), found(b"%d" % number), origin=by(request=f"r{number}"))
        )
        hashes += [event.hash.hex() for event in recorded]
    whole = tmp_path / "whole"
    shutil.copytree(state_dir, whole)
    await journal.close()
    log = whole / f"{FILE_NAME}-wal"
    size, heads = log.stat().st_size, []
    for part in range(17):
        shutil.rmtree(state_dir)
        shutil.copytree(whole, state_dir)
        with (state_dir / log.name).open("r+b") as file:
            file.truncate(size * part // 16)
        if part == 0:
            with pytest.raises(JournalCorrupt, match="no journal"):  # the schema itself was in the log
                await opened(readonly=True)
            continue
        cut = await opened()
        report = await cut.verify()
        assert report.problems == ()
        assert report.head % 2 == 0, "half a unit"
        assert report.head_hash == hashes[report.head]
        heads.append(report.head)
        await cut.append(unit(looked("after")))
        await cut.close()
    assert heads == sorted(heads)
    assert (heads[-1], len(set(heads)) > 4) == (24, True)


# --- what queries cost ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        pytest.param(EventFilter(), "PRIMARY KEY (rowid", id="all"),
        pytest.param(EventFilter(stream="x", agent="a", tags=("a", "b")), "events_by_stream (stream=?", id="stream"),
        pytest.param(EventFilter(session="x", agent="a", tags=("a",)), "events_by_session (session=?", id="session"),
        pytest.param(EventFilter(agent="x", tags=("a",)), "events_by_agent (agent=?", id="agent"),
        pytest.param(EventFilter(tags=("a",)), "events_by_tag (tag=?", id="tag"),
        pytest.param(EventFilter(tags=("a", "b")), "events_by_tag (tag=?", id="tags"),
    ],
)
@pytest.mark.parametrize("newest", [True, False])
def test_a_query_follows_one_index_in_order(state_dir: Path, wanted: EventFilter, index: str, newest: bool) -> None:
    connection = open_writer(state_dir / FILE_NAME)
    statement, values = select(wanted, after=5, until=100, limit=10, newest=newest)
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values)]
    connection.close()
    assert any(index in step for step in plan), plan
    assert not any("TEMP B-TREE FOR ORDER" in step for step in plan), plan


async def test_a_change_under_way_across_a_restart(opened: Open) -> None:
    journal = await opened()
    (intent,) = await journal.append(unit(intended(b"a", b"b"), stream=STREAM, expected=0, blobs=[b"b"]))
    await journal.close()
    again = await opened()
    await again.append(unit(applied(intent.seq, b"a", b"b"), stream=STREAM, expected=1))
    assert (await again.verify()).problems == ()


UNCLOSED = """
import asyncio, pathlib, sys
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.machine import SystemClock, SystemEntropy

async def main():
    journal = await SqliteJournal.open(pathlib.Path(sys.argv[1]), clock=SystemClock(), entropy=SystemEntropy())
    await journal.event(1)
    raise SystemExit(7)

asyncio.run(main())
"""


def test_a_program_that_does_not_close_its_journal_ends(state_dir: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", UNCLOSED, state_dir], timeout=60, check=False)
    assert ended.returncode == 7
