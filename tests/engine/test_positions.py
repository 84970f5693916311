"""A tree is only told when the changes that began before it are over."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from orchestrator.core.errors import VersionUnknown
from orchestrator.core.ids import Seq
from orchestrator.engine.services import Services
from orchestrator.workspace.disk import Disk
from orchestrator.workspace.local import LocalWorkspace
from tests.engine.parts import services_of
from tests.journal.fixtures import PATH, STREAM, SeededEntropy, SteppingClock, applied, digest, found, intended, unit

pytestmark = pytest.mark.anyio


@pytest.fixture
def services(base: Path) -> Services:
    clock, entropy = SteppingClock(), SeededEntropy()
    workspace = LocalWorkspace(str(base), disk=Disk())
    return services_of(workspace, clock=clock, entropy=entropy)


async def test_a_tree_waits_for_the_changes_that_began_before_it(services: Services) -> None:
    journal = services.journal
    await journal.append(unit(found(b"one"), stream="workspace"))  # @1
    reported: list[str | None] = []

    async def ask() -> None:
        await services.past.wait_for_changes(Seq(2))
        reported.extend(row.digest for row in (await services.past.tree(Seq(2))).values())

    async with anyio.create_task_group() as tasks:
        async with services.locks.alone((PATH,)):
            await journal.append(unit(intended(b"one", b"two"), stream=STREAM))  # @2
            tasks.start_soon(ask)
            for _ in range(20):
                await checkpoint()
            assert reported == []
            await services.past.wait_for_changes(Seq(1))  # nothing began before that
            await journal.append(unit(applied(Seq(2), b"one", b"two"), stream=STREAM))  # @3
    assert reported == [digest(b"two")]


async def test_positions_are_held_against_the_journal(services: Services) -> None:
    await services.journal.append(unit(found(b"one"), stream="workspace"))
    assert [services.past.position(raw, parameter="at") for raw in ("@1", "1", 1, 0)] == [1, 1, 1, 0]
    for raw, least in ((2, 0), (0, 1)):
        with pytest.raises(VersionUnknown, match="@1") as refused:
            services.past.position(raw, parameter="at", least=least)
        assert refused.value.details == {"head": "@1"}
