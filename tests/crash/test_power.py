"""FAULTS row 17, for each kind: the change is on the disk, and the power goes before its outcome is committed."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from orchestrator.core.errors import OrchestratorError
from tests.crash.dropped_fsyncs import ForgettingDisk, PowerGone
from tests.crash.inside import living
from tests.crash.scenarios import AGENT, OPERATIONS, REQUEST, Operation, outcomes

pytestmark = pytest.mark.anyio

LUCKS = 5
"""What survives of what is not synced should not matter here: everything of the change is."""


def on_disk(disk: ForgettingDisk, operation: Operation) -> dict[str, str | None]:
    tree = disk.tree()
    return {path: tree[path].decode() if path in tree else None for path in operation.before}


@pytest.mark.parametrize("luck", range(LUCKS))
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda op: op.name)
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
