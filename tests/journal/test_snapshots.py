"""Snapshots, the marks beside them, and the tables that are made anew: kept with the events, never in their place."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import msgspec
import pytest

from orchestrator.core.errors import ArchiveMissing, JournalCorrupt, JournalTooNew
from orchestrator.core.events.base import Origin, SlimRecorded
from orchestrator.core.events.codec import encode as encode_event
from orchestrator.core.ids import Seq
from orchestrator.core.projections.file_rows import pack
from orchestrator.core.projections.state import State, encode, freeze
from orchestrator.core.projections.versions import HISTORY_VERSION
from orchestrator.engine.record.folded_state import restored
from orchestrator.journal import segments as segments_module
from orchestrator.journal import startup_checks, versions
from orchestrator.journal.database_file import FILE_NAME
from orchestrator.journal.maintenance import SqliteMaintenance
from orchestrator.journal.snapshot_table import KEPT
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.ports.journal import EventFilter, Snapshot
from tests.golden.samples import GROWN, SAMPLES
from tests.journal.altered_journal import alter
from tests.journal.conftest import Open
from tests.journal.fixtures import STREAM, applied, by, found, having, intended, looked, unit

pytestmark = pytest.mark.anyio


async def folded(journal: SqliteJournal, *, until: int | None = None) -> State:
    state = State()
    async for piece in journal.replay(until=until):
        for recorded in piece:
            state.apply(recorded)
    return state


async def keep(journal: SqliteJournal) -> bytes:
    """A snapshot of what the journal's events make; its bytes."""
    state = await folded(journal)
    data = encode(freeze(state))
    snapshot = Snapshot(state.head, state.tip, hashlib.sha256(data).digest(), state.version)
    await journal.keep_snapshot(snapshot, data)
    return data


async def grown(journal: SqliteJournal, times: int = 1) -> None:
    """All samples, and more: 2 events, then one of every kind."""
    for _ in range(times):
        await journal.append(unit(found(b"one"), stream="workspace", blobs=[b"one"]))
        await journal.append(unit(*SAMPLES, *GROWN, stream="x", origin=by(session="s-1f")))


def as_bytes(state: State) -> bytes:
    return encode(freeze(state))


# --- keeping ----------------------------------------------------------------------------------


async def test_a_snapshot_outlives_the_process(opened: Open) -> None:
    journal = await opened()
    await grown(journal)
    data = await keep(journal)
    await journal.close()
    again = await opened()
    (snapshot,) = await again.snapshots()
    assert (snapshot.seq, await again.snapshot(snapshot.seq)) == (again.head, data)


async def test_the_newest_stay(opened: Open) -> None:
    journal = await opened()
    for _ in range(KEPT + 2):
        await journal.append(unit(looked()))
        await keep(journal)
    assert [item.seq for item in await journal.snapshots()] == [5, 4, 3]
    with pytest.raises(JournalCorrupt, match="@2 is not there"):
        await journal.snapshot(2)


async def test_appends_go_on_beside_a_snapshot_that_fails(opened: Open) -> None:
    def step(name: str) -> None:
        if name == "txn_open:snapshot":
            raise sqlite3.OperationalError("the disk is on fire")

    journal = await opened(step=step)
    await journal.append(unit(looked()))
    with pytest.raises(JournalCorrupt, match="on fire"):
        await keep(journal)
    assert await journal.snapshots() == []
    (recorded,) = await journal.append(unit(looked()))
    assert recorded.seq == 2
    assert (await journal.verify()).problems == ()


async def test_closing_with_a_long_queue_takes_all_of_it(opened: Open) -> None:
    import anyio

    journal = await opened()
    done: list[int] = []

    async def append() -> None:
        done.append((await journal.append(unit(looked())))[0].seq)

    async with anyio.create_task_group() as group:
        for _ in range(2000):
            group.start_soon(append)
        await anyio.lowlevel.checkpoint()
        await journal.close()
    assert sorted(done) == list(range(1, 2001))
    assert (await opened()).head == 2000


# --- replay ------------------------------------------------------------------------------------


async def test_a_replay_is_the_events(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments_module, "PIECE", 7)
    journal = await opened()
    await grown(journal, 2)
    pieces = [piece async for piece in journal.replay(after=3, until=60)]
    assert [event for piece in pieces for event in piece] == [
        SlimRecorded(whole.seq, whole.at, whole.session, whole.agent, whole.event, whole.hash)
        async for whole in journal.events(EventFilter(after=3, until=60))
    ]
    assert max(map(len, pieces)) == 7


async def test_every_stored_sample_is_replayed(opened: Open) -> None:
    journal = await opened()
    live = State()
    journal.subscribe(live.apply)
    await grown(journal, 2)
    await journal.close()
    assert as_bytes(await folded(await opened())) == as_bytes(live)


async def test_an_unknown_kind_stops_the_replay_with_its_place(state_dir: Path, opened: Open) -> None:
    journal = await opened()
    await grown(journal)
    await journal.close()
    alter(state_dir, "UPDATE events SET tag = 'of_tomorrow', payload = ? WHERE seq = 9", b'{"event":"of_tomorrow"}')
    again = await opened(readonly=True)
    with pytest.raises(JournalTooNew, match=r"event @9 is of kind 'of_tomorrow'"):
        await restored(again)


async def test_a_gap_stops_the_replay_with_its_place(state_dir: Path, opened: Open) -> None:
    journal = await opened()
    await grown(journal)
    await journal.close()
    alter(state_dir, "DELETE FROM events WHERE seq = 9")
    with pytest.raises(JournalCorrupt, match="@10 after @8"):
        await restored(await opened(readonly=True))


# --- restoring ---------------------------------------------------------------------------------


async def test_a_restored_state_is_that_of_a_replay(opened: Open) -> None:
    journal = await opened()
    await grown(journal)
    (intent,) = await journal.append(unit(intended(b"one", b"two"), stream=STREAM, origin=by(), blobs=[b"two"]))
    await keep(journal)
    await journal.append(unit(looked()))
    state = await restored(journal)
    assert as_bytes(state) == as_bytes(await folded(journal))
    assert state.pending.open_intents()[-1][0] == intent.seq
    await journal.append(unit(applied(intent.seq, b"one", b"two"), stream=STREAM, origin=by()))
    assert as_bytes(await restored(journal)) == as_bytes(await folded(journal))


async def test_the_newest_snapshot_is_used(state_dir: Path, opened: Open) -> None:
    """What it holds was altered together with its digest: only who starts from it can tell."""
    journal = await opened()
    await journal.append(unit(found(b"one"), stream="workspace"))
    await keep(journal)
    state = await folded(journal)
    (known,) = state.registry.files()
    assert known.mode == 0o644
    state.registry.table("files")[known.path] = pack(msgspec.structs.replace(known, mode=0o777))
    data = as_bytes(state)
    digest = hashlib.sha256(data).digest()
    await journal.keep_snapshot(Snapshot(state.head, state.tip, digest, state.version), data)
    (entry,) = (await restored(journal)).registry.files()
    assert entry.mode == 0o777


DAMAGE = [
    pytest.param("UPDATE snapshots SET data = x'00' WHERE seq = {newest}", id="no zstd"),
    pytest.param("UPDATE snapshots SET digest = zeroblob(32) WHERE seq = {newest}", id="another digest"),
    pytest.param("UPDATE snapshots SET hash = zeroblob(32) WHERE seq = {newest}", id="another history"),
    pytest.param("UPDATE snapshots SET version = 'registry:0' WHERE seq = {newest}", id="other projections"),
    pytest.param("UPDATE snapshots SET seq = seq - 1 WHERE seq = {newest}", id="moved to another event"),
    pytest.param("UPDATE snapshots SET seq = seq + 1000 WHERE seq = {newest}", id="of events that are not there"),
    pytest.param("UPDATE snapshots SET data = substr(data, 1, 90)", id="all cut"),
    pytest.param("DELETE FROM snapshots", id="all gone"),
    pytest.param("DROP TABLE snapshots", id="no table"),
]


@pytest.mark.parametrize("statement", DAMAGE)
async def test_a_damaged_snapshot_is_never_trusted_and_never_fatal(
    state_dir: Path, opened: Open, statement: str
) -> None:
    journal = await opened()
    for _ in range(2):
        await grown(journal)
        await keep(journal)
    newest = journal.head
    await journal.append(unit(found(b"two"), stream="workspace"))
    expected = as_bytes(await folded(journal))
    await journal.close()
    alter(state_dir, statement.format(newest=newest))
    assert as_bytes(await restored(await opened())) == expected


async def test_projections_of_another_version_are_folded_anew(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """The snapshot holds something else, and would be believed: its version alone keeps it away."""
    journal = await opened()
    await journal.append(unit(found(b"one"), stream="workspace"))
    state = await folded(journal)
    data = as_bytes(state).replace(b'"mode":420', b'"mode":511')
    digest = hashlib.sha256(data).digest()
    await journal.keep_snapshot(Snapshot(state.head, state.tip, digest, state.version), data)
    monkeypatch.setattr(State, "version", "of another fold")
    (entry,) = (await restored(journal)).registry.files()
    assert entry.mode == 0o644


# --- what a start checks, and what is checked afterwards -----------------------------------------


async def checked(journal: SqliteJournal) -> list[int]:
    return [item.seq async for item in journal.checks()]


async def test_the_chain_is_checked_from_the_last_snapshot_on(
    state_dir: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(startup_checks, "TAIL", 2)
    journal = await opened()
    await journal.append(unit(*(looked(str(n)) for n in range(10))))
    await keep(journal)
    await journal.append(unit(*(looked(str(n)) for n in range(10))))
    await journal.close()
    alter(state_dir, "UPDATE events SET payload = ? WHERE seq = 11", encode_event(looked("!")))
    with pytest.raises(JournalCorrupt, match="event @11"):
        await opened()


async def test_damage_before_the_snapshot_is_found_while_serving(
    state_dir: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start does not look there."""
    monkeypatch.setattr(startup_checks, "TAIL", 2)
    journal = await opened()
    await journal.append(unit(*(looked(str(n)) for n in range(10))))
    await keep(journal)
    await journal.append(unit(looked()))
    await journal.close()
    alter(state_dir, "UPDATE events SET payload = ? WHERE seq = 4", encode_event(looked("!")))
    again = await opened()
    with pytest.raises(JournalCorrupt, match="the payload of event @4 was altered"):
        await checked(again)


async def test_a_spoilt_page_is_found_while_serving(state_dir: Path, opened: Open) -> None:
    journal = await opened()
    for number in range(40):
        await journal.append(unit(*(looked(f"{number} {'x' * 100}") for _ in range(50)), stream="x"))
    await keep(journal)
    await journal.close()
    path = state_dir / FILE_NAME
    data = bytearray(path.read_bytes())
    middle = len(data) // 4096 // 4 * 4096
    data[middle : middle + 4096] = bytes(4096)
    path.write_bytes(data)
    with pytest.raises(JournalCorrupt, match=r"@|damaged|malformed"):
        await checked(await opened())


async def test_every_run_checks_from_the_first_event_on(state_dir: Path, opened: Open) -> None:
    """What an earlier run found may have been edited since, and so may any word of it."""
    journal = await opened()
    await journal.append(unit(*(looked(str(n)) for n in range(500))))
    assert (await checked(journal))[-1] == 500
    await journal.close()
    steps = await checked(await opened())
    assert (steps[0], steps[-1]) == (200, 500)


# --- the table of versions ---------------------------------------------------------------------


async def rows(state_dir: Path) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(state_dir / FILE_NAME)
    found = connection.execute("SELECT * FROM file_versions ORDER BY path, seq").fetchall()
    found += connection.execute("SELECT * FROM file_modes ORDER BY path, seq").fetchall()
    connection.close()
    return found


async def test_another_version_of_the_fold_makes_the_table_anew(
    state_dir: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = await opened()
    await grown(journal)
    await journal.close()
    before = await rows(state_dir)
    alter(state_dir, "UPDATE file_versions SET mode = 511")
    await (await opened()).close()
    assert await rows(state_dir) != before, "of the same version: left alone"
    monkeypatch.setattr(versions, "HISTORY_VERSION", HISTORY_VERSION + 1)
    again = await opened()
    assert await rows(state_dir) == before
    assert await again.table_difference() is None
    assert [problem for problem in (await again.verify()).problems if "a table" in problem] == []
    await again.append(unit(found(b"two"), stream="workspace"))
    alter(state_dir, "UPDATE file_versions SET mode = 511")
    await again.close()
    await opened()
    assert await rows(state_dir) != before, "once only"


async def test_a_rebuild_that_fails_leaves_the_old_table(
    state_dir: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = await opened()
    await grown(journal)
    await journal.close()
    before = await rows(state_dir)

    def failing(connection: sqlite3.Connection, rows: object) -> None:
        raise sqlite3.OperationalError("no more disk")

    monkeypatch.setattr(versions, "HISTORY_VERSION", HISTORY_VERSION + 1)
    with monkeypatch.context() as broken:
        broken.setattr(versions, "add_versions", failing)
        with pytest.raises(JournalCorrupt, match="no more disk"):
            await opened()
    assert await rows(state_dir) == before
    assert await (await opened()).table_difference() is None


async def several_modes(journal: SqliteJournal) -> None:
    """A file that was met three times; each time its permission bits were others."""
    await journal.append(unit(having(b"x", 0o644), stream="workspace"))
    version = int(journal.head)
    for mode in (0o755, 0o600):
        await journal.append(unit(having(b"x", mode, version=version), stream="workspace"))


async def archived(journal: SqliteJournal, last: int) -> None:
    await SqliteMaintenance(journal, most_events=5).archive(Seq(last), Origin())


@pytest.mark.parametrize("last", [1, 5, 8, 40])
async def test_archived_events_are_folded_as_the_others(
    state_dir: Path, opened: Open, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    """Into a table made anew, a comparison, a replay and a state."""
    journal = await opened()
    await several_modes(journal)
    await grown(journal)
    state = as_bytes(await folded(journal))
    await archived(journal, last)
    assert as_bytes(await folded(journal, until=int(journal.head) - (last + 4) // 5)) == state
    assert await journal.table_difference() is None
    await journal.close()
    before = await rows(state_dir)
    alter(state_dir, "DELETE FROM file_modes")
    monkeypatch.setattr(versions, "HISTORY_VERSION", HISTORY_VERSION + 1)
    again = await opened()
    assert await rows(state_dir) == before
    assert await again.table_difference() is None
    assert as_bytes(await restored(again)) == as_bytes(await folded(again))
    assert [event.seq async for piece in again.replay(after=2) for event in piece] == list(range(3, again.head + 1))


async def test_a_table_is_not_made_anew_without_the_archived_events(
    state_dir: Path, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = await opened()
    await several_modes(journal)
    await archived(journal, 2)
    await journal.close()
    before = await rows(state_dir)
    (file,) = (state_dir / "archive").iterdir()
    file.rename(aside := state_dir / "aside")
    with monkeypatch.context() as newer:
        newer.setattr(versions, "HISTORY_VERSION", HISTORY_VERSION + 1)
        with pytest.raises(ArchiveMissing, match=file.name):
            await opened()
        assert await rows(state_dir) == before
        aside.rename(file)
        await (await opened()).close()
    assert await rows(state_dir) == before


@pytest.mark.parametrize(
    ("statement", "difference"),
    [
        pytest.param("DELETE FROM file_modes WHERE mode = 493", "/file_modes/", id="a mode gone"),
        pytest.param(
            "UPDATE file_versions SET mode = 511 WHERE seq = 1", "/src/a.py/@1/mode: 511 and 420", id="altered"
        ),
        pytest.param("DELETE FROM file_versions WHERE seq = 1", "/src/a.py/@1: None and", id="gone"),
    ],
)
async def test_the_first_difference_in_the_table_is_named(
    state_dir: Path, opened: Open, statement: str, difference: str
) -> None:
    journal = await opened()
    await grown(journal)
    await several_modes(journal)
    assert await journal.table_difference() is None
    await journal.close()
    alter(state_dir, statement)
    named = await (await opened()).table_difference()
    assert named is not None
    assert difference in named
