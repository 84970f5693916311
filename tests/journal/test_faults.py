"""A disk that fails at its n-th call, for every n; and one whose power is cut there."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from orchestrator.core.errors import DiskFull, JournalCorrupt, OrchestratorError, StateDirectoryUnusable, WritesStopped
from orchestrator.journal import database_file
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.ports.journal import AppendBatch, EventFilter, Snapshot, StreamMoved
from orchestrator.ports.machine import Step
from tests.journal.driver import Driver
from tests.journal.fixtures import SeededEntropy, SteppingClock, by, found, looked, unit
from tests.journal.simulated_disk import Call, Disk, Fault, Kind

pytestmark = [
    pytest.mark.anyio,
    # An error of the file system that SQLite itself ignores is one that `apsw` can hand to nobody.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

CHECKPOINT_PAGES = 12
"""So that the log is folded into the database every few events, and again while events come."""

BALLAST_BYTES = 4096
MOST_CALLS = 3000
AGENT = "bot"
ALL: frozenset[Call] = frozenset(get_args(Call))


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder in memory, where there is one: what a real sync waits for is no part of these tests."""
    folder = Path(tempfile.mkdtemp(prefix="o-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
    yield folder
    shutil.rmtree(folder)


def units() -> Iterator[tuple[str, AppendBatch]]:
    """What is appended, each with the request id that it claims."""
    for number in range(5):
        request = f"r{number}"
        origin = by(AGENT, request=request)
        yield request, unit(looked("x" * 100 * number), looked(), stream="s", expected=2 * number, origin=origin)
    content = random.Random(1).randbytes(30_000)
    yield "r5", unit(found(content), stream="f", expected=0, blobs=(content,), origin=by(AGENT, request="r5"))
    closing = unit(looked(), stream="s", expected=10, origin=by(AGENT, request="r6"))
    yield "r6", msgspec.structs.replace(closing, closes=True)
    yield "r7", unit(looked(), stream="t", expected=0, origin=by(AGENT, request="r7"))


class Reported(msgspec.Struct):
    """What the callers of a journal were told."""

    acknowledged: dict[str, int] = {}  # by request id, the first position
    refused: dict[str, OrchestratorError] = {}
    opened: bool = False

    @property
    def unsure(self) -> set[str]:
        """Requests whose answer was that nothing can be said, or that it is owed: those may be there."""
        owed = {request for request, one in units() if one.closes}
        return {
            request for request, error in self.refused.items() if request in owed or not isinstance(error, DiskFull)
        }


@contextmanager
def on(disk: Disk, monkeypatch: pytest.MonkeyPatch, *, synchronous: str = "FULL") -> Iterator[None]:
    """The journal's files go through that disk."""
    with monkeypatch.context() as patch:
        patch.setattr(database_file, "sqlite3", Driver(disk.name, synchronous=synchronous))
        patch.setattr(database_file, "CHECKPOINT_PAGES", CHECKPOINT_PAGES)
        yield


@asynccontextmanager
async def journal_in(state_dir: Path, *, step: Step = lambda name: None) -> AsyncIterator[SqliteJournal]:
    journal = await SqliteJournal.open(
        state_dir, clock=SteppingClock(), entropy=SeededEntropy(), step=step, reserve_bytes=BALLAST_BYTES
    )
    try:
        yield journal
    finally:
        await journal.close()


async def live(state_dir: Path) -> Reported:
    """Open, append, close; whatever the disk makes of it."""
    reported = Reported(acknowledged={}, refused={})
    try:
        async with journal_in(state_dir) as journal:
            reported.opened = True
            for request, one in units():
                try:
                    reported.acknowledged[request] = (await journal.append(one))[0].seq
                except OrchestratorError as error:
                    reported.refused[request] = error
                except StreamMoved:
                    assert reported.refused, "what it builds on was refused"
    except (JournalCorrupt, StateDirectoryUnusable, DiskFull):
        reported.opened = False
    return reported


async def holds(state_dir: Path, reported: Reported) -> None:
    """All that was acknowledged, nothing that was refused, nothing half; and it goes on."""
    async with journal_in(state_dir) as journal:
        report = await journal.verify()
        assert report.problems == ()
        there = [recorded async for recorded in journal.events()]
        assert [recorded.seq for recorded in there] == list(range(1, len(there) + 1))
        whole = dict(units())
        claimed: dict[str, int] = {}
        for request, one in whole.items():
            mine = [recorded for recorded in there if recorded.origin.request_id == request]
            assert len(mine) in (0, len(one.events)), "half a unit"
            assert [recorded.event for recorded in mine] in ([], [new.event for new in one.events])
            seen = await journal.request(AGENT, request)
            assert (seen.seq if seen else None) == (mine[0].seq if mine else None)
            if mine:
                claimed[request] = mine[0].seq
                for digest, data in one.blobs:
                    assert await journal.blob(digest) == data
        assert claimed.items() >= reported.acknowledged.items(), "an acknowledged event is gone"
        assert claimed.keys() - reported.acknowledged.keys() <= reported.unsure, "what was refused is there"
        for stream in ("s", "f", "t"):
            assert journal.stream_version(stream) == sum(recorded.stream == stream for recorded in there)
        await journal.append(unit(looked(), stream="after", expected=0, origin=by("later")))
        assert journal.head == len(there) + 1


FAILING = [
    pytest.param("error", frozenset({"write"}), False, id="write fails"),
    pytest.param("half", frozenset({"write"}), True, id="write of one half, from then on", marks=pytest.mark.soak),
    pytest.param("half", frozenset({"write"}), False, id="write of one half", marks=pytest.mark.soak),
    pytest.param("full", frozenset({"write"}), True, id="no space, from then on", marks=pytest.mark.soak),
    pytest.param("full", frozenset({"write"}), False, id="no space", marks=pytest.mark.soak),
    pytest.param("error", frozenset({"sync"}), True, id="sync fails, from then on"),
    pytest.param("error", frozenset({"sync"}), False, id="sync fails"),
    pytest.param("error", frozenset({"truncate"}), True, id="truncate fails"),
    pytest.param("error", frozenset({"open"}), True, id="open fails, from then on"),
    pytest.param("error", frozenset({"open"}), False, id="open fails"),
    pytest.param("error", frozenset({"read"}), False, id="read of the log fails"),
    pytest.param("error", frozenset({"delete"}), True, id="delete fails"),
]


@pytest.mark.parametrize(("kind", "calls", "lasting"), FAILING)
async def test_a_call_fails(
    memory: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind, calls: frozenset[Call], lasting: bool
) -> None:
    for nth in count(1):
        state_dir = memory / str(nth)
        fault = Fault(kind, calls, nth, lasting=lasting)
        disk = Disk(f"failing-{nth}", fault)
        with on(disk, monkeypatch):
            reported = await live(state_dir)
        disk.unregister()
        stopped = [error for error in reported.refused.values() if isinstance(error, WritesStopped)]
        assert not stopped or "r7" in reported.refused, "after an unknown answer nothing more is written"
        await holds(state_dir, reported)
        if not fault.fired:
            assert len(reported.acknowledged) == len(list(units()))
            return
        assert nth < MOST_CALLS


async def test_a_sync_that_fails_beside_the_units_stops_them_too(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot's commit is on the same disk."""
    disk = Disk("task")
    with on(disk, monkeypatch):
        async with journal_in(memory / "state") as journal:
            await journal.append(unit(looked()))
            disk.fault = Fault("error", frozenset({"sync"}), 1)
            head = journal.head
            with pytest.raises(WritesStopped, match="disk I/O error"):
                await journal.keep_snapshot(Snapshot(head, b"h" * 32, b"d" * 32, "v"), b"data")
            assert disk.fault.fired
            assert "disk I/O error" in journal.trouble
            with pytest.raises(WritesStopped):
                await journal.append(unit(looked()))
    disk.unregister()
    async with journal_in(memory / "state") as journal:
        assert journal.head == head
        assert journal.trouble == ""


# --- the power is cut -------------------------------------------------------------------


async def cut_at(
    nth: int, memory: Path, monkeypatch: pytest.MonkeyPatch, *, syncs: bool = True, synchronous: str = "FULL"
) -> tuple[Disk, Reported]:
    """What was answered before the power went at the n-th change of a file, and the disk that it left."""
    fault = Fault("cut", frozenset({"write", "truncate", "sync", "delete"}), nth)
    disk = Disk(f"cut-{nth}", fault, syncs=syncs)
    with on(disk, monkeypatch, synchronous=synchronous):
        reported = await live(memory / f"{nth}")
    disk.unregister()
    return disk, reported


async def test_the_power_is_cut(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every change of a file. Some of them are those of a checkpoint: FAULTS row 18."""
    met: set[tuple[str, str]] = set()
    for nth in count(1):
        disk, reported = await cut_at(nth, memory, monkeypatch)
        for seed in (None, 1):
            after = memory / f"{nth}-{seed}"
            disk.after_cut(memory / f"{nth}", after, random.Random(seed * 1000 + nth) if seed else None)
            await holds(after, reported)
        if not disk.off:
            assert len(reported.acknowledged) == len(list(units()))
            break
        if reported.opened and len(reported.acknowledged) < len(list(units())):
            call, path = disk.calls[disk.cut]
            met.add((call, Path(path).name))
        assert nth < MOST_CALLS
    assert met >= {("write", "journal.db"), ("sync", "journal.db"), ("write", "journal.db-wal")}, "while it appends"


@pytest.mark.parametrize(
    ("syncs", "synchronous"),
    [
        pytest.param(False, "FULL", id="a disk that does not sync"),
        pytest.param(True, "NORMAL", id="synchronous NORMAL"),
        pytest.param(True, "OFF", id="synchronous OFF"),
    ],
)
async def test_what_the_sync_of_each_commit_is_for(
    memory: Path, monkeypatch: pytest.MonkeyPatch, syncs: bool, synchronous: str
) -> None:
    """Without it, some cut takes what was acknowledged: the test above can fail."""
    for nth in count(1):
        disk, reported = await cut_at(nth, memory, monkeypatch, syncs=syncs, synchronous=synchronous)
        assert disk.off, "no cut took anything"
        after = memory / f"{nth}-after"
        disk.after_cut(memory / f"{nth}", after)
        if reported.acknowledged:
            with pytest.raises(AssertionError, match="an acknowledged event is gone"):
                await holds(after, reported)
            return


# --- the clock jumps --------------------------------------------------------------------


class JumpingClock(SteppingClock):
    """Now years back, now years ahead."""

    def __init__(self) -> None:
        super().__init__()
        self._chance = random.Random(25)

    def now_ms(self) -> int:
        self.ms = self._chance.randrange(0, 4_000_000_000_000)
        return self.ms


async def test_a_clock_that_jumps_changes_no_order(state_dir: Path) -> None:
    """FAULTS row 25: positions alone order; the time is what the clock said."""
    journal = await SqliteJournal.open(state_dir, clock=JumpingClock(), entropy=SeededEntropy())
    reported = [(await journal.append(one))[0].seq for _, one in units()]
    await journal.close()
    assert reported == sorted(reported)
    async with journal_in(state_dir) as journal:
        there = [recorded async for recorded in journal.events()]
        assert [recorded.seq for recorded in there] == list(range(1, len(there) + 1))
        times = [recorded.at for recorded in there]
        assert times != sorted(times)
        assert (await journal.verify()).problems == ()
        newest = await journal.newest(EventFilter(), limit=3)
        assert [recorded.seq for recorded in newest] == [len(there) - n for n in range(3)]
        assert journal.stream_version("s") == 11
        for (request, _), seq in zip(units(), reported, strict=True):
            seen = await journal.request(AGENT, request)
            assert seen is not None
            assert seen.seq == seq
