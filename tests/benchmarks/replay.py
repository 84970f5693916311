"""How fast a state is folded from stored events; beside it the `eventsourcing` library, rehydrating an aggregate."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event

from orchestrator.core.projections.state import State
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.machine import SystemClock, SystemEntropy
from tests.benchmarks.journals import filled
from tests.benchmarks.measuring import Row, Samples, Target
from tests.benchmarks.setting import Rows, Setting

OURS, THEIRS = 100_000, 10_000
"""Events; both are rates, and theirs takes ten times as long for each."""


class File(Aggregate):
    """A file as their library would keep it: who read which lines of which version."""

    @event("Opened")
    def __init__(self, path: str) -> None:
        self.path, self.reads = path, 0
        self.seen: dict[int, tuple[int, int]] = {}

    @event("Read")
    def read(self, operation: str, version_id: int, start: int, end: int, total_lines: int, tokens: int) -> None:
        self.reads += 1
        self.seen[version_id] = (start, end)


async def rows(setting: Setting) -> Rows:
    """Both in turns, each from its own SQLite file."""
    folder = Path(tempfile.mkdtemp(prefix="o-", dir="/var/tmp"))
    try:
        return [await _row(folder, setting.times(5))]
    finally:
        shutil.rmtree(folder)


async def _row(folder: Path, times: int) -> Row:
    application: Application[Any] = Application(
        env={"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(folder / "theirs.db")}
    )
    file = File("src/a.py")
    for number in range(THEIRS):
        file.read("read_file", 2, number * 37 % 400 + 1, number * 37 % 400 + 61, 500, 600)
    application.save(file)
    await filled(folder / "ours", OURS)
    journal = await SqliteJournal.open(folder / "ours", clock=SystemClock(), entropy=SystemEntropy())
    ours, theirs = Samples([]), Samples([])
    for turn in range(times + 1):
        mine, other = await _folded(journal), _rehydrated(application, file)
        if turn:
            ours.values.append(mine)
            theirs.values.append(other)
    await journal.close()
    return Row(
        work="replay: events a second, from SQLite to state",
        ours=ours,
        peer="eventsourcing, rehydrate",
        theirs=theirs,
        target=Target(
            at_least=20,
            why_missed="the target was set where the peer read 13,200 events a second: twenty times that is 264,000.",
        ),
        unit="calls/s",
    )


async def _folded(journal: SqliteJournal) -> float:
    state, start = State(), time.perf_counter()
    async for piece in journal.replay():
        state.apply_all(piece)
    assert state.head == OURS
    return state.head / (time.perf_counter() - start)


def _rehydrated(application: Application[Any], file: File) -> float:
    start = time.perf_counter()
    found: File = application.repository.get(file.id)
    assert found.reads == THEIRS
    return THEIRS / (time.perf_counter() - start)
