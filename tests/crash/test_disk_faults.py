"""An error or a short write at each call to the workspace's disk in turn, for each kind of change.

Whatever fails: the answer has the right code, every file holds what it held or what it should
(of several files all or none), the next start makes disk and journal agree, and a second finds
nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from orchestrator.core.errors import OrchestratorError
from orchestrator.workspace import disk as kernel
from orchestrator.workspace.disk import KernelDisk
from tests.crash.failing import FailingDisk, Fault
from tests.crash.given import (
    AGENT,
    OPERATIONS,
    REQUEST,
    Ground,
    Operation,
    about_files,
    outcomes,
)
from tests.crash.inside import living

pytestmark = pytest.mark.anyio

MOST_CALLS = 2_000
FAULTS: tuple[Fault, ...] = ("EIO", "ENOSPC", "short write", "dead")


class Told(msgspec.Struct, frozen=True):
    """What came of one call on a disk that failed in it."""

    code: str  # `applied`, or the refusal's code
    fired: str | None
    stopped: bool  # writes are stopped
    tree: dict[str, str | None]


@pytest.fixture(autouse=True)
def leases() -> Iterator[None]:
    """As in the daemon, leases are taken."""
    allowed = kernel._Leases.allowed
    kernel.ignore_lease_breaks()
    yield
    kernel._Leases.allowed = allowed


async def failed(ground: Ground, operation: Operation, fault: Fault, at: int) -> Told:
    """Make the change on a disk whose `at`-th call fails."""
    disk = FailingDisk(KernelDisk())
    async with living(ground.state_dir, ground.workspace, disk.disk) as life:
        files = await life.client(AGENT)
        if operation.prepare is not None:
            await operation.prepare(files)
        await life.idle()
        disk.arm(fault, at)
        try:
            code = (await operation.call(files, REQUEST)).status
        except OrchestratorError as error:
            code = error.code
        await life.idle()  # what goes on after the answer may meet the fault too
        disk.mend()
        return Told(code, disk.fired, await life.writes_stopped(), ground.contents(operation))


async def mended(ground: Ground, operation: Operation, told: Told) -> None:
    """Two more starts on a disk that is well."""
    disk = KernelDisk()
    async with living(ground.state_dir, ground.workspace, disk) as life:
        found = ground.contents(operation)
        assert found in (operation.before, operation.after)
        closing = [entry["kind"] for entry in outcomes(await life.events())[-1:]]
        if told.code == "applied":
            assert found == operation.after
        if not told.stopped:
            assert found == told.tree  # nothing was left to do
        if found == operation.after:
            assert closing == ["change_applied"]
        await life.agrees()
        first = await life.events()
    async with living(ground.state_dir, ground.workspace, disk) as life:
        assert about_files(await life.events()) == about_files(first)
        assert ground.contents(operation) == found
        files = await life.client(AGENT)
        assert (await operation.call(files, REQUEST)).status == "applied"
        await life.idle()
        assert ground.contents(operation) == operation.after
        await life.agrees()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda op: op.name)
async def test_at_each_call_in_turn(base: Path, operation: Operation, fault: Fault) -> None:
    codes = set()
    for at in range(1, MOST_CALLS):
        folder = base / str(at)
        folder.mkdir()
        ground = Ground(folder)
        ground.prepare(operation)
        told = await failed(ground, operation, fault, at)
        try:
            if told.fired is None:
                assert told.code == "applied"
                break
            check_code(told, fault)
            await mended(ground, operation, told)
        except AssertionError as error:
            error.add_note(f"{fault} at call {at}: {told}")
            raise
        codes.add((told.code, told.fired, at))
    else:
        raise AssertionError("the fault never ended")
    print(codes, at)


def check_code(told: Told, fault: Fault) -> None:
    """The code, and whether writing goes on, by what failed."""
    if fault == "short write":
        assert told.code == "applied"
        assert not told.stopped
