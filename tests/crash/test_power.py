"""FAULTS row 17, for each kind of change: the power goes before its outcome is committed, or right after recovery."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.core.errors import OrchestratorError
from tests.crash.dropped_fsyncs import ForgettingDisk, PowerGone
from tests.crash.inside import living
from tests.crash.scenarios import AGENT, OPERATIONS, REQUEST, Operation, outcomes
from tests.crash.test_many import CHANGE

pytestmark = pytest.mark.anyio

LUCKS = 5
"""What survives of what is not synced should not matter here: everything of the change is."""


def on_disk(disk: ForgettingDisk, operation: Operation) -> dict[str, str | None]:
    tree = disk.tree()
    return {path: tree[path].decode() if path in tree else None for path in operation.before}


async def interrupted(base: Path, operation: Operation, disk: ForgettingDisk, step: Callable[[str], None]) -> Path:
    """The state directory that a daemon leaves whose change is cut short, by `step` or by what the disk meets."""
    state, later = base / "state", base / "later"
    state.mkdir()
    try:
        async with living(state, base / "work", disk, step=step, leave=lambda: shutil.copytree(state, later)) as life:
            files = await life.client(AGENT)
            if operation.prepare is not None:
                await operation.prepare(files)
                await life.idle()
            with pytest.raises(OrchestratorError):
                await operation.call(files, REQUEST)
            raise PowerGone
    except* (PowerGone, OrchestratorError):
        pass
    return later


@pytest.mark.parametrize("luck", range(LUCKS))
@pytest.mark.parametrize("operation", [*OPERATIONS, CHANGE], ids=lambda op: op.name)
async def test_the_outcome_is_lost(base: Path, operation: Operation, luck: int) -> None:
    disk = ForgettingDisk()
    for path, text in operation.on_disk.items():
        disk.put(path, text.encode())
    reached = 0

    def step(name: str) -> None:
        nonlocal reached
        reached += name == "txn_open:change_applied"
        if reached == operation.earlier + 1:
            disk.cut()
            raise PowerGone

    later = await interrupted(base, operation, disk, step)
    disk = disk.after_the_cut(random.Random(luck))
    async with living(later, base / "work", disk) as life:
        assert on_disk(disk, operation) == operation.after
        (closing,) = outcomes(await life.events())
        assert (closing["kind"], closing["recovered"]) == ("change_applied", True)
        await life.agrees()
        files = await life.client(AGENT)
        assert (await operation.call(files, REQUEST)).status == "applied"
        await life.idle()
        assert on_disk(disk, operation) == operation.after


class NothingSurvives(random.Random):
    """Of what is not synced."""

    def random(self) -> float:
        return 1.0

    def randint(self, a: int, b: int) -> int:
        return a


@pytest.mark.parametrize("operation", [*OPERATIONS, CHANGE], ids=lambda op: op.name)
async def test_what_recovery_completes_is_synced(base: Path, operation: Operation) -> None:
    """The daemon dies before it syncs the directory; the power goes once recovery has said that the change is there."""
    disk = ForgettingDisk()
    for path, text in operation.on_disk.items():
        disk.put(path, text.encode())
    intents = 0
    renamed = dead = False

    def step(name: str) -> None:
        nonlocal intents
        intents += name == "txn_committed:change_intended"

    def meet(name: str) -> None:
        nonlocal renamed, dead
        renamed = renamed or (intents == operation.earlier + 1 and name in ("exchange", "noreplace"))
        dead = dead or (renamed and name == "sync directory")
        if dead:
            raise PowerGone

    disk.meet = meet
    later, last = await interrupted(base, operation, disk, step), base / "last"
    assert dead

    def cut(name: str) -> None:
        if name == "txn_committed:change_applied":
            disk.cut()

    disk.meet = lambda name: None
    try:
        async with living(later, base / "work", disk, step=cut, leave=lambda: shutil.copytree(later, last)) as life:
            await life.idle()
    except* (PowerGone, OSError, OrchestratorError):
        pass
    assert disk.gone
    disk = disk.after_the_cut(NothingSurvives())
    async with living(last, base / "work", disk) as life:
        assert on_disk(disk, operation) == operation.after
        await life.agrees()
