"""A process that ends at any moment leaves a journal that holds all it acknowledged."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.journal.conftest import Open
from tests.journal.fixtures import looked, unit

pytestmark = pytest.mark.anyio

CHILD = """
import os, sys
import anyio
from orchestrator.journal.sqlite import SqliteJournal
from tests.journal.fixtures import SeededEntropy, SteppingClock, found, looked, unit

state_dir, last_step, callers = sys.argv[1], sys.argv[2], int(sys.argv[3])
count = 0

def step(name):
    global count
    count += name == last_step
    if count == 20:
        os._exit(9)

async def main():
    journal = await SqliteJournal.open(state_dir, clock=SteppingClock(), entropy=SeededEntropy(), step=step)

    async def append(number):
        for turn in range(100_000):
            data = b"%d-%d" % (number, turn) + b"x" * (300_000 if turn % 7 == 3 else 10)
            recorded = await journal.append(unit(looked(), found(data), stream=f"s{number}", blobs=[data]))
            os.write(1, b"%d\\n" % recorded[-1].seq)

    async with anyio.create_task_group() as group:
        for number in range(callers):
            group.start_soon(append, number)

anyio.run(main)
"""


def run_until_killed(state_dir: Path, *, after: int) -> list[int]:
    """What the child acknowledged before and while it was killed."""
    process = subprocess.Popen([sys.executable, "-c", CHILD, str(state_dir), "-", "4"], stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(after)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()
    assert process.returncode == -signal.SIGKILL
    return [int(line) for line in lines if line.endswith(b"\n")]


async def holds(opened: Open, acknowledged: list[int], before: int) -> int:
    """The head of a journal that is whole, holds all of that, and can be gone on with."""
    journal = await opened()
    report = await journal.verify()
    assert report.problems == ()
    assert report.head >= max(acknowledged, default=0)
    assert (report.head - before) % 2 == 0, "half a unit"
    await journal.append(unit(looked()))
    await journal.close()
    return report.head + 1


async def test_killed_while_it_appends(state_dir: Path, opened: Open) -> None:
    """Several lives of one journal."""
    head = 0
    for after in (1, 60, 250):
        acknowledged = run_until_killed(state_dir, after=after)
        assert len(acknowledged) >= after
        head = await holds(opened, acknowledged, head)


def run_until_step(state_dir: Path, step: str) -> list[int]:
    """What a single caller was acknowledged before the child ended at the 20th time of this step."""
    command = [sys.executable, "-c", CHILD, str(state_dir), step, "1"]
    child = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    assert child.returncode == 9
    return [int(line) for line in child.stdout.splitlines()]


@pytest.mark.parametrize(("step", "head"), [("txn_open:metadata_read", 38), ("txn_committed:metadata_read", 40)])
async def test_ended_beside_a_commit(state_dir: Path, opened: Open, step: str, head: int) -> None:
    acknowledged = run_until_step(state_dir, step)
    assert acknowledged == list(range(2, 39, 2))
    assert await holds(opened, acknowledged, 0) == head + 1
