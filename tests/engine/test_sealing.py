"""When a checkpoint is due: by number, by time, and not without anything new."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint as pause

from orchestrator.core.events.journal_maintenance import CheckpointSigned
from orchestrator.engine.notes import Notes
from orchestrator.engine.record.verification import CheckpointSigner
from orchestrator.journal.signatures import KeyFile
from orchestrator.ports.journal import Journal
from tests.in_memory.journal import MemoryJournal
from tests.journal.fixtures import SeededEntropy, SteppingClock, looked, unit

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Given:
    """A journal and its sealer."""

    def __init__(self, folder: Path) -> None:
        self.journal: Journal = MemoryJournal(clock=SteppingClock(), entropy=SeededEntropy())
        self.folder = folder

    def sealer(self, *, every_events: int, every_s: float) -> CheckpointSigner:
        return CheckpointSigner(
            self.journal, Notes(self.journal), KeyFile(self.folder), every_events=every_events, every_s=every_s
        )

    async def heads(self) -> list[int]:
        return [
            recorded.event.head
            async for recorded in self.journal.events()
            if isinstance(recorded.event, CheckpointSigned)
        ]


@pytest.fixture
async def surroundings(tmp_path: Path) -> AsyncIterator[Given]:
    made = Given(tmp_path)
    yield made
    report = await made.journal.verify()
    assert report.problems == ()


@asynccontextmanager
async def on_duty(sealer: CheckpointSigner) -> AsyncIterator[None]:
    await sealer.begin()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sealer.run)
        yield
        tasks.cancel_scope.cancel()


async def until_signed(given: Given, count: int) -> None:
    with anyio.fail_after(60):
        while len(await given.heads()) < count:
            await pause()


async def test_after_so_many_events(surroundings: Given) -> None:
    async with on_duty(surroundings.sealer(every_events=3, every_s=3600)):
        await surroundings.journal.append(unit(looked(), looked()))
        assert await surroundings.heads() == []
        await surroundings.journal.append(unit(looked()))
        await until_signed(surroundings, 1)
        await surroundings.journal.append(unit(looked(), looked(), looked()))
        await until_signed(surroundings, 2)
    assert await surroundings.heads() == [3, 7]


async def test_after_so_much_time_with_something_new(surroundings: Given) -> None:
    async with on_duty(surroundings.sealer(every_events=1000, every_s=0)):
        for _ in range(100):
            await pause()
        assert await surroundings.heads() == []
        await surroundings.journal.append(unit(looked()))
        await until_signed(surroundings, 1)
        for _ in range(100):
            await pause()  # its own event is nothing new
    assert await surroundings.heads() == [1]


async def test_a_later_run_counts_what_came_after_the_last_checkpoint(surroundings: Given) -> None:
    await surroundings.journal.append(unit(looked()))
    first = surroundings.sealer(every_events=1000, every_s=3600)
    await first.begin()
    await first.end()
    idle = surroundings.sealer(every_events=1000, every_s=3600)
    await idle.begin()
    await idle.end()
    assert await surroundings.heads() == [1]
    await surroundings.journal.append(unit(looked()))
    later = surroundings.sealer(every_events=1000, every_s=3600)
    await later.begin()
    await later.end()
    assert await surroundings.heads() == [1, 3]


async def test_a_key_that_cannot_be_used_is_logged_and_nothing_else_fails(surroundings: Given) -> None:
    (surroundings.folder / "journal.key").write_text("no key")
    await surroundings.journal.append(unit(looked()))
    sealer = surroundings.sealer(every_events=1, every_s=3600)
    await sealer.begin()
    await sealer.end()
    assert await surroundings.heads() == []
