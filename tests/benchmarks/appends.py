"""Durable appends of 64 callers at once: the journal in this process, beside aiosqlite that commits each alone."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiosqlite
import anyio

from orchestrator.core.events.base import Origin
from orchestrator.core.events.sessions import TaskBegun
from orchestrator.core.ids import AgentName, SessionId
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.machine import SystemClock, SystemEntropy
from orchestrator.ports.journal import ANY_VERSION, AppendBatch, NewEvent
from tests.benchmarks.measuring import Row, Samples, Target
from tests.benchmarks.setting import Rows, Setting

CALLERS = 64
OURS_EACH, THEIRS_EACH = 50, 5
"""Appends of one caller in a round, so that the rounds of both take about as long."""

TITLE = "x" * 100
Append = Callable[[int], Awaitable[object]]


async def rows(setting: Setting) -> Rows:
    """Both fill a database of their own on the same disk; p99 is of each round, over all its appends."""
    folder = setting.peers_work / "appends"
    folder.mkdir()
    rates, slowest = {"ours": Samples([]), "theirs": Samples([])}, Samples([])
    async with journal(folder / "journal") as ours, single(folder / "single.db") as theirs:
        for turn in range(-2, setting.times(8)):
            for name, append, each in (("ours", ours, OURS_EACH), ("theirs", theirs, THEIRS_EACH)):
                rate, latencies = await round_of(append, each)
                if turn >= 0:
                    rates[name].values.append(rate)
                    if name == "ours":
                        slowest.values.append(latencies.at(0.99))
    work = f"durable appends, {CALLERS} callers"
    return [
        Row(
            work=work,
            ours=rates["ours"],
            peer="aiosqlite, autocommit, WAL, FULL",
            theirs=rates["theirs"],
            target=Target(
                at_least=10.0,
                why_missed="the target was set where the peer's commits, each with a sync of its own, were 2,800 to "
                "4,500 a second; where a sync takes less there is less to save by sharing it.",
            ),
            unit="calls/s",
        ),
        Row(work=f"{work}, p99 of a round", ours=slowest, target=Target(at_most_ms=25)),
    ]


@asynccontextmanager
async def journal(folder: Path) -> AsyncIterator[Append]:
    """Chained, indexed and folded, as the daemon appends."""
    folder.mkdir()
    store = await SqliteJournal.open(folder, clock=SystemClock(), entropy=SystemEntropy())

    async def append(caller: int) -> None:
        session = SessionId(f"s-{caller}")
        origin = Origin(session=session, agent=AgentName(f"caller-{caller}"))
        event = TaskBegun(session=session, title=TITLE)
        await store.append(AppendBatch((NewEvent(f"session:s-{caller}", event, ANY_VERSION),), origin))

    try:
        yield append
    finally:
        await store.close()


@asynccontextmanager
async def single(path: Path) -> AsyncIterator[Append]:
    """A bare row: no hash, no index but the key."""
    async with aiosqlite.connect(path, isolation_level=None) as base:
        await base.execute("PRAGMA journal_mode = WAL")
        await base.execute("PRAGMA synchronous = FULL")
        await base.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, caller INTEGER, body TEXT NOT NULL)")

        async def append(caller: int) -> None:
            await base.execute("INSERT INTO events (caller, body) VALUES (?, ?)", (caller, TITLE))

        yield append


async def round_of(append: Append, each: int) -> tuple[float, Samples]:
    """All callers at once, each its next when its last is durable; appends a second, and how long each took, in ms."""
    latencies = Samples([])

    async def caller(number: int) -> None:
        for _ in range(each):
            start = time.perf_counter()
            await append(number)
            latencies.values.append((time.perf_counter() - start) * 1e3)

    begun = time.perf_counter()
    async with anyio.create_task_group() as callers:
        for number in range(CALLERS):
            callers.start_soon(caller, number)
    return CALLERS * each / (time.perf_counter() - begun), latencies
