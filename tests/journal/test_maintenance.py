"""Archived events are read as they were; what nothing needs goes; a copy is whole or not there."""

from __future__ import annotations

import errno
import sqlite3
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from orchestrator.core.errors import ArchiveMissing, BackupInvalid, DiskFull, JournalCorrupt, NotLatestSegment
from orchestrator.core.events.base import Origin, Recorded
from orchestrator.core.ids import Seq
from orchestrator.core.positions import parse_seq
from orchestrator.journal import backup as backup_module
from orchestrator.journal.backup import copy_backup, make_backup, read_manifest
from orchestrator.journal.database_file import FILE_NAME
from orchestrator.journal.maintenance import SqliteMaintenance
from orchestrator.journal.segments import ARCHIVE, Segment
from orchestrator.journal.sqlite import PACKERS, SqliteJournal
from orchestrator.ports.journal import EventFilter
from tests.journal.altered_journal import alter
from tests.journal.conftest import Open
from tests.journal.fixtures import (
    PATH,
    STREAM,
    TASK,
    SeededEntropy,
    SteppingClock,
    aborted,
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

LARGE = b"0123456789" * 30_000
WHENEVER = 10**15

FILTERS = [
    pytest.param(EventFilter(), id="all"),
    pytest.param(EventFilter(after=7), id="after"),
    pytest.param(EventFilter(until=9), id="until"),
    pytest.param(EventFilter(after=5, until=16), id="between"),
    pytest.param(EventFilter(after=12, until=12), id="nothing"),
    pytest.param(EventFilter(tags=("task_begun",)), id="tag"),
    pytest.param(EventFilter(tags=("task_begun", "metadata_read"), until=20), id="tags"),
    pytest.param(EventFilter(stream="s:1"), id="stream"),
    pytest.param(EventFilter(agent="a1", session="s2"), id="agent and session"),
]


def keeper_of(journal: SqliteJournal, *, most: int = 7) -> SqliteMaintenance:
    return SqliteMaintenance(journal, most_events=most)


async def mixed(journal: SqliteJournal, events: int = 30) -> None:
    for number in range(1, events + 1):
        event = TASK if number % 3 == 0 else looked(str(number))
        await journal.append(
            unit(event, stream=f"s:{number % 4}", origin=by(f"a{number % 2}", session=f"s{number % 5}"))
        )


async def read(journal: SqliteJournal, wanted: EventFilter, batch: int) -> list[Recorded]:
    return [recorded async for recorded in journal.events(wanted, batch=batch)]


async def everything(journal: SqliteJournal, wanted: EventFilter) -> object:
    """All that can be asked with a filter, and event by event."""
    return (
        await read(journal, wanted, 1000),
        await read(journal, wanted, 3),
        [await journal.newest(wanted, limit=limit) for limit in (1, 4, 100)],
    )


@pytest.mark.parametrize("last", [1, 6, 7, 15, 30])
@pytest.mark.parametrize("wanted", FILTERS)
async def test_archived_events_are_read_as_before(opened: Open, wanted: EventFilter, last: int) -> None:
    journal = await opened()
    await mixed(journal)
    wanted = EventFilter(
        wanted.tags, wanted.stream, wanted.agent, wanted.session, wanted.after, min(wanted.until or 30, 30)
    )
    before = await everything(journal, wanted)
    events = [await journal.event(seq) for seq in range(1, 31)]
    versions = [journal.stream_version(f"s:{number}") for number in range(4)]
    keeper = keeper_of(journal)
    moved = await keeper.archive(Seq(last), Origin())
    assert (moved[0].first, moved[-1].last, len(moved)) == (1, last, (last + 6) // 7)
    assert await everything(journal, wanted) == before
    assert [await journal.event(seq) for seq in range(1, 31)] == events
    await journal.close()
    again = await opened()
    assert await everything(again, wanted) == before
    assert [again.stream_version(f"s:{number}") for number in range(4)] == versions
    (next_,) = await again.append(unit(looked(), stream="s:1", expected=versions[1]))
    assert next_.stream_version == versions[1] + 1
    report = await again.verify()
    assert (report.problems, report.events) == ((), 31 + len(moved))
    keeper = keeper_of(again)
    for segment in reversed(moved):
        await keeper.unarchive(segment.file, Origin())
    assert await everything(again, wanted) == before
    assert (await again.verify()).problems == ()


async def test_readers_under_way_miss_nothing(opened: Open) -> None:
    """Between any two pages of a reader events may be archived, or come back."""
    journal = await opened()
    await mixed(journal)
    keeper = keeper_of(journal, most=4)
    met: list[int] = []

    async def slowly() -> AsyncIterator[int]:
        async for recorded in journal.events(EventFilter(until=30), batch=2):
            yield recorded.seq

    async for seq in slowly():
        met.append(seq)
        if seq % 5 == 0:
            await keeper.archive(Seq(min(seq + 4, 30)), Origin())
        if seq == 22:
            await keeper.unarchive(keeper.archived[-1].file, Origin())
    assert met == list(range(1, 31))


async def test_readers_beside_an_archiver_miss_nothing(opened: Open) -> None:
    journal = await opened()
    await mixed(journal, 200)
    keeper = keeper_of(journal, most=3)
    done = anyio.Event()

    async def look() -> None:
        while not done.is_set():
            assert [r.seq async for r in journal.events(EventFilter(until=200), batch=5)] == list(range(1, 201))
            assert seqs(await journal.newest(EventFilter(until=200), limit=200)) == list(range(200, 0, -1))

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(look)
        await keeper.archive(Seq(200), Origin())
        done.set()


async def test_events_archived_under_a_query_are_not_missed(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = await opened()
    await mixed(journal)
    select, keeper = journal._select, keeper_of(journal)

    async def late(
        wanted: EventFilter, segment: Segment | None, *, after: int, limit: int, newest: bool
    ) -> list[object]:
        if segment is None:
            await keeper.archive(Seq(10), Origin())
        return await select(wanted, segment, after=after, limit=limit, newest=newest)

    monkeypatch.setattr(journal, "_select", late)
    assert seqs(await read(journal, EventFilter(until=30), 100)) == list(range(1, 31))


async def test_the_newest_may_be_asked_for_without_the_files(state_dir: Path, opened: Open) -> None:
    journal = await opened()
    await mixed(journal)
    (moved,) = await keeper_of(journal, most=100).archive(Seq(20), Origin())
    (state_dir / "archive" / moved.file).unlink()
    wanted = EventFilter(until=30)
    assert seqs(await journal.newest(wanted, limit=100, archived=False)) == list(range(30, 20, -1))
    with pytest.raises(ArchiveMissing):
        await journal.newest(wanted, limit=100)


async def test_segments_come_back_newest_first(opened: Open) -> None:
    journal = await opened()
    await mixed(journal)
    keeper = keeper_of(journal)
    first, *_, last = await keeper.archive(Seq(20), Origin())
    with pytest.raises(NotLatestSegment, match=first.file) as refused:
        await keeper.unarchive(first.file, Origin())
    assert last.file in refused.value.hint
    await keeper.unarchive(last.file, Origin())
    assert keeper.archived[-1].last == last.first - 1


@pytest.mark.parametrize(
    ("spoil", "error"), [("gone", ArchiveMissing), ("cut", JournalCorrupt), ("bit", JournalCorrupt)]
)
async def test_a_spoilt_segment_is_named(state_dir: Path, opened: Open, spoil: str, error: type[Exception]) -> None:
    journal = await opened()
    await mixed(journal)
    (moved,) = await keeper_of(journal, most=100).archive(Seq(20), Origin())
    await journal.close()
    path = state_dir / "archive" / moved.file
    data = path.read_bytes()
    path.unlink()
    if spoil != "gone":
        path.write_bytes(data[:-9] if spoil == "cut" else data[:-1] + bytes((data[-1] ^ 1,)))
    again = await opened()
    with pytest.raises(error, match=moved.file):
        await again.event(3)
    with pytest.raises(error, match=moved.file):
        await read(again, EventFilter(), 10)
    assert await again.event(21) is not None
    report = await again.verify()
    reported = report.unchecked if spoil == "gone" else report.problems
    assert any(moved.file in line for line in reported)
    assert (report.problems == ()) is (spoil == "gone")


@pytest.mark.parametrize("gone", ["seq <= 7", "seq = 7"], ids=["all", "the last"])
async def test_events_that_are_gone_are_not_archived(state_dir: Path, opened: Open, gone: str) -> None:
    journal = await opened()
    await mixed(journal)
    alter(state_dir, f"DELETE FROM events WHERE {gone}")
    with pytest.raises(JournalCorrupt, match="events @1 to @7 are not all in the database"):
        await keeper_of(journal).archive(Seq(7), Origin())
    assert not (state_dir / ARCHIVE).exists()


async def test_a_broken_link_to_the_archive_is_found_at_the_start(state_dir: Path, opened: Open) -> None:
    journal = await opened()
    await mixed(journal)
    await keeper_of(journal).archive(Seq(20), Origin())
    await journal.close()
    with closing(sqlite3.connect(state_dir / FILE_NAME)) as connection:
        connection.execute("UPDATE segments SET last_hash = zeroblob(32) WHERE last = 20")
        connection.commit()
    with pytest.raises(JournalCorrupt, match="event @21"):
        await opened()


# --- collecting ------------------------------------------------------------------------


async def test_what_is_named_again_meanwhile_stays(opened: Open) -> None:
    journal = await opened()
    (intent,) = await journal.append(unit(intended(b"one", LARGE), stream=STREAM, blobs=[LARGE]))
    await journal.append(unit(aborted(intent.seq), stream=STREAM))
    keeper = keeper_of(journal)
    as_of = journal.head
    await journal.append(unit(intended(b"one", LARGE), stream=STREAM, blobs=[LARGE]))
    found_ = await keeper.collect(needed=frozenset(), as_of=as_of, before_ms=WHENEVER, origin=Origin(), dry_run=False)
    assert found_.digests == ()
    assert await journal.blob(digest(LARGE)) == LARGE


@pytest.mark.parametrize("data", [b"small", LARGE], ids=["in the database", "in a file"])
@pytest.mark.parametrize("step", ["txn_open", "txn_committed"])
async def test_a_unit_prepared_during_a_collection_keeps_its_content(opened: Open, data: bytes, step: str) -> None:
    """It found the content kept, or its file in place; the writer, which knows better, puts it in again."""
    reached, go_on = threading.Event(), threading.Event()

    def hold(name: str) -> None:
        if name == f"{step}:contents_collected":
            reached.set()
            assert go_on.wait(60)

    journal = await opened(step=hold)
    (intent,) = await journal.append(unit(intended(b"one", data), stream=STREAM, blobs=[data]))
    await journal.append(unit(aborted(intent.seq), stream=STREAM))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(collect_all, keeper_of(journal), journal)
        await to_thread.run_sync(reached.wait, 60)
        tasks.start_soon(journal.append, unit(found(data), stream="workspace", blobs=[data]))
        await anyio.wait_all_tasks_blocked()
        await to_thread.run_sync(drain, journal._packers)
        go_on.set()
    assert await journal.blob(digest(data)) == data
    assert (await journal.verify()).problems == ()


def drain(packers: ThreadPoolExecutor) -> None:
    """Wait until every packer is free, and so has done what it was given before."""
    barrier = threading.Barrier(PACKERS)
    wait([packers.submit(barrier.wait, 60) for _ in range(PACKERS)])


async def collect_all(keeper: SqliteMaintenance, journal: SqliteJournal) -> None:
    await keeper.collect(needed=frozenset(), as_of=journal.head, before_ms=WHENEVER, origin=Origin(), dry_run=False)


async def test_the_version_that_stood_when_the_kept_events_begin_stays(opened: Open) -> None:
    journal = await opened()
    for old, new in ((b"0", b"1"), (b"1", b"2"), (b"2", b"3")):
        (intent,) = await journal.append(unit(intended(old, new), stream=STREAM, blobs=[new]))
        await journal.append(unit(applied(intent.seq, old, new), stream=STREAM))
    keeper = keeper_of(journal)
    await keeper.archive(Seq(4), Origin())  # @5, @6: from 2 to 3
    await collect_all(keeper, journal)
    assert [await journal.has_blob(digest(data)) for data in (b"1", b"2", b"3")] == [False, True, True]
    row = await journal.version_at(PATH, 5)
    assert row is not None
    report = await journal.verify()
    assert report.problems == ()


async def test_files_that_no_row_names_are_swept_at_the_start(state_dir: Path, opened: Open) -> None:
    journal = await opened()
    await journal.append(unit(found(LARGE), blobs=[LARGE]))
    await journal.close()
    stray = state_dir / "blobs" / "ab" / ("c" * 62)
    stray.parent.mkdir(exist_ok=True)
    stray.write_bytes(b"left by a crash between commit and unlink")
    again = await opened()
    assert not stray.exists()
    assert await again.blob(digest(LARGE)) == LARGE


# --- backing up ------------------------------------------------------------------------


async def test_a_backup_beside_writers_is_one_moment(state_dir: Path, tmp_path: Path, opened: Open) -> None:
    journal = await opened()
    await mixed(journal, 60)
    await journal.append(unit(found(LARGE), stream="workspace", blobs=[LARGE]))
    keeper = keeper_of(journal)
    await keeper.archive(Seq(20), Origin())
    done = anyio.Event()

    async def write() -> None:
        number = 0
        while not done.is_set():
            number += 1
            data = LARGE + b"%d" % number
            await journal.append(unit(looked(), found(data), stream="more", blobs=[data]))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        report = await keeper.backup(str(tmp_path / "copy"))
        done.set()
    (tmp_path / "again").mkdir()
    assert copy_backup(tmp_path / "copy", tmp_path / "again").head == parse_seq(report.head)
    recorded = await journal.event(parse_seq(report.head))
    assert recorded is not None
    assert recorded.hash.hex() == report.head_hash
    assert len(list((tmp_path / "again" / "archive").iterdir())) == 3


async def test_a_full_disk_leaves_nothing_of_a_backup(
    tmp_path: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = await opened()
    await journal.append(unit(found(LARGE), blobs=[LARGE]))

    def full(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(backup_module, "copy_file", full)
    target = tmp_path / "copy"
    with pytest.raises(DiskFull, match="copy"):
        await keeper_of(journal).backup(str(target))
    assert not target.exists()


async def test_a_corrupt_journal_makes_no_backup(state_dir: Path, tmp_path: Path, opened: Open) -> None:
    journal = await opened()
    await mixed(journal)
    with closing(sqlite3.connect(state_dir / FILE_NAME)) as connection:
        connection.execute("UPDATE events SET payload = x'7b7d' WHERE seq = 4")
        connection.commit()
    with pytest.raises(JournalCorrupt, match="event @4"):
        make_backup(state_dir, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    with pytest.raises(BackupInvalid, match="manifest"):
        read_manifest(state_dir)


# --- the clock -------------------------------------------------------------------------


async def test_a_clock_that_jumps_back_changes_no_order(state_dir: Path) -> None:
    clock = SteppingClock()
    journal = await SqliteJournal.open(state_dir, clock=clock, entropy=SeededEntropy())
    for number in range(6):
        clock.ms -= 3_600_000 if number == 3 else 0
        await journal.append(unit(found(b"%d" % number), stream="workspace", blobs=[b"%d" % number]))
    events = await read(journal, EventFilter(), 2)
    assert events[3].at < events[2].at
    assert seqs(events) == [1, 2, 3, 4, 5, 6]
    assert [row.digest for row in await journal.versions(PATH, limit=9)] == [
        digest(b"%d" % n) for n in range(5, -1, -1)
    ]
    row = await journal.version_at(PATH, 3)
    assert row is not None
    assert row.digest == digest(b"2")
    await SqliteMaintenance(journal).archive(Seq(4), Origin())
    await journal.close()
    again = await SqliteJournal.open(state_dir, clock=clock, entropy=SeededEntropy())
    assert seqs(await read(again, EventFilter(until=6), 2)) == [1, 2, 3, 4, 5, 6]
    assert (await again.verify()).problems == ()
    await again.close()
