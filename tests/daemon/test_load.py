"""`make soak`: a second client's calls beside whatever costs the daemon most; each run prints how long they took."""

from __future__ import annotations

import pytest

from tests.daemon.beside import Measured, at
from tests.daemon.hostile_loads import HOSTILE
from tests.daemon.loads import HEAVY, Load, beside_flood, beside_nothing, beside_work, name_of, resident_mb
from tests.daemon.running import RunningDaemon
from tests.daemon.talking import Talk

pytestmark = [pytest.mark.anyio, pytest.mark.soak]

SOAK_S = 20.0
MOST_P99_MS = 100.0


def held(name: str, alone: Measured, beside: Measured, more: str) -> None:
    """On a machine that is busy with something else, what a call takes alone is the measure."""
    print(f"\n{name}: {more}\n  alone:  {alone}\n  beside: {beside}")
    assert at(beside.all, 0.99) <= max(MOST_P99_MS, 2 * at(alone.all, 0.99))


@pytest.mark.parametrize("load", [*HEAVY, *HOSTILE], ids=name_of)
async def test_beside_heavy_or_hostile_work(daemon: RunningDaemon, load: Load) -> None:
    alone = beside_nothing(daemon, SOAK_S / 4)
    beside, turns = await beside_work(daemon, load, SOAK_S)
    held(name_of(load), alone, beside, f"{turns} turns, the daemon holds {resident_mb(daemon)} MB")


@pytest.mark.parametrize("writes", [False, True], ids=["reads", "writes"])
async def test_beside_a_flood_of_calls(daemon: RunningDaemon, writes: bool) -> None:
    alone = beside_nothing(daemon, SOAK_S / 4)
    beside, done = await beside_flood(daemon, SOAK_S, writes=writes)
    held(f"256 open {'writes' if writes else 'reads'}", alone, beside, f"{done / SOAK_S:.0f} calls of it a second")
    for values, others in ((beside.reads, alone.reads), (beside.edits, alone.edits)):
        assert at(values, 0.5) <= 4 * at(others, 0.5)


async def test_answers_that_nobody_reads(daemon: RunningDaemon) -> None:
    """2,000 of them took 1.7 GB."""
    (daemon.workspace / "long.txt").write_text("".join(f"{n} {'x' * 60}\n" for n in range(100_000)))
    before = resident_mb(daemon)
    alone = beside_nothing(daemon, SOAK_S / 4)
    talks = [Talk(daemon, f"silent{n}", "mcp") for n in range(4)]
    for talk in talks:
        for _ in range(500):
            talk.call("read_file", path="long.txt", max_tokens=250_000)
    beside = beside_nothing(daemon, SOAK_S, "beside")
    full = resident_mb(daemon)
    for talk in talks:
        talk.close()
    held("unread answers", alone, beside, f"{before} MB before, {full} MB while they wait, {resident_mb(daemon)} after")
    assert full <= before + 200
