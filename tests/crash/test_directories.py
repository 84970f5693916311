"""A directory that is made, or removed empty: cut off at each step, it is there or not, and the journal says which."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.clients.python import FileAccess
from tests.crash.scenarios import AGENT, REQUEST, Ground, Operation, outcomes

pytestmark = pytest.mark.anyio


async def _made(files: FileAccess) -> object:
    return await files.create_directory("d")


MAKE = Operation("make", {}, {}, lambda files, id: files.create_directory("d", request_id=id), "d", writes_temp=False)
REMOVE = Operation(
    *("remove", {}, {}, lambda files, id: files.delete_file("d", request_id=id), "d"),
    prepare=_made,
    writes_temp=False,
    earlier=1,
)


@pytest.mark.parametrize(
    ("step", "happened"),
    [
        ("txn_committed:change_intended", False),
        ("directory_synced", True),
        ("txn_open:change_applied", True),
        ("txn_committed:change_applied", True),
    ],
)
@pytest.mark.parametrize("operation", [pytest.param(item, id=item.name) for item in (MAKE, REMOVE)])
async def test_cut_off(base: Path, operation: Operation, step: str, happened: bool) -> None:
    ground = Ground(base)
    ground.prepare(operation)
    await ground.crash(operation, at=f"{step}:{operation.earlier + 1}")
    directory = ground.workspace / "d"
    with ground.serving():
        assert directory.is_dir() == (happened == (operation is MAKE))
        (closing,) = outcomes(await ground.events())[-1:]
        assert closing["kind"] == ("change_applied" if happened else "change_aborted")
        await ground.agrees()
        async with ground.client(AGENT) as files:
            assert (await operation.call(files, REQUEST)).status == "applied"
        assert directory.is_dir() == (operation is MAKE)
        await ground.agrees()
