"""Journals in a folder of the test's own, closed at its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.ports.machine import Step
from tests.journal.fixtures import SeededEntropy, SteppingClock

Open = Callable[..., Awaitable[SqliteJournal]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
async def opened(state_dir: Path) -> AsyncIterator[Open]:
    """Opens the journal of `state_dir`; `close` may be called before the end, too."""
    async with AsyncExitStack() as stack:

        async def open_it(*, step: Step = lambda name: None, readonly: bool = False) -> SqliteJournal:
            journal = await SqliteJournal.open(
                state_dir, clock=SteppingClock(), entropy=SeededEntropy(), step=step, readonly=readonly
            )
            stack.push_async_callback(journal.close)
            return journal

        yield open_it
