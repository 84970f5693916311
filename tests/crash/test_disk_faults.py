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

from orchestrator.clients.python import FileAccess
from orchestrator.core.errors import OrchestratorError
from orchestrator.workspace import disk as kernel
from orchestrator.workspace.disk import Disk
from tests.crash.failing import FailingDisk, Fault
from tests.crash.inside import Inside, living
from tests.crash.scenarios import (
    AGENT,
    OPERATIONS,
    REQUEST,
    Ground,
    Operation,
    about_files,
    outcomes,
)

pytestmark = pytest.mark.anyio

MOST_CALLS = 2_000
FAULTS: tuple[Fault, ...] = ("EIO", "ENOSPC", "EMFILE", "short write", "dead")


class Reported(msgspec.Struct, frozen=True):
    """What came of one call on a disk that failed in it."""

    code: str  # `applied`, or the refusal's code
    fired: str | None
    stopped: bool  # writes are stopped
    tree: dict[str, str | None]
    at: int = 0  # the call that failed


@pytest.fixture(autouse=True)
def leases() -> Iterator[None]:
    """As in the daemon, leases are taken."""
    allowed = kernel._Leases.allowed
    kernel.ignore_lease_breaks()
    yield
    kernel._Leases.allowed = allowed


async def attempt(
    life: Inside, files: FileAccess, ground: Ground, operation: Operation, disk: FailingDisk, fault: Fault, at: int
) -> Reported:
    """Ask for the change on a disk whose `at`-th call fails."""
    disk.arm(fault, at)
    code: str
    try:
        code = (await operation.call(files, REQUEST)).status
    except OrchestratorError as error:
        code = error.code
    await life.idle()  # what goes on after the answer may meet the fault too
    disk.mend()
    return Reported(code, disk.fired, await life.writes_stopped(), ground.contents(operation))


async def failing(base: Path, operation: Operation, fault: Fault, at: int, *, fresh: bool) -> Reported:
    """Ask again and again in one life, the fault one call later each time, until something came of it.

    Each time with the same request id: a refusal for the disk's sake must not be what a retry gets.
    With `fresh` only once, so that nothing is known from the time before.
    """
    ground = Ground(base)
    ground.prepare(operation)
    disk = FailingDisk(Disk())
    async with living(ground.state_dir, ground.workspace, disk.disk) as life:
        files = await life.client(AGENT)
        if operation.prepare is not None:
            await operation.prepare(files)
        await life.idle()
        while True:
            reported = await attempt(life, files, ground, operation, disk, fault, at)
            try:
                check(reported, operation, fault)
                assert reported.code == "applied" or reported.stopped or fault == "dead" or ground.temps() == []
            except AssertionError as error:
                error.add_note(f"{fault} at call {at}: {reported}")
                raise
            if fresh or reported.code == "applied" or reported.stopped:
                break
            at += 1
        if reported.stopped:  # though the disk is well again: nobody knows what it has kept
            with pytest.raises(OrchestratorError) as refused:
                await files.write_file("later.txt", "x", mode="create")
            assert refused.value.code == "writes_stopped"
            assert not (ground.workspace / "later.txt").exists()
    assert not disk.handles
    try:
        await mended(ground, operation, reported)
    except AssertionError as error:
        error.add_note(f"{fault} at call {at}: {reported}")
        raise
    return msgspec.structs.replace(reported, at=at)


async def mended(ground: Ground, operation: Operation, reported: Reported) -> None:
    """Two more starts on a disk that is well."""
    disk = Disk()
    async with living(ground.state_dir, ground.workspace, disk) as life:
        found = ground.contents(operation)
        assert found in (operation.before, operation.after)
        closing = [entry["kind"] for entry in outcomes(await life.events())[-1:]]
        if reported.code == "applied":
            assert found == operation.after
        if not reported.stopped:
            assert found == reported.tree  # nothing was left to do
        if found == operation.after:
            assert closing == ["change_applied"]
        await life.agrees()
        await life.idle()
        first = await life.events()
    if not reported.stopped and reported.code == "applied":
        return
    async with living(ground.state_dir, ground.workspace, disk) as life:
        assert about_files(await life.events()) == about_files(first)
        assert ground.contents(operation) == found
        files = await life.client(AGENT)
        assert (await operation.call(files, REQUEST)).status == "applied"
        await life.idle()
        assert ground.contents(operation) == operation.after
        await life.agrees()


def check(reported: Reported, operation: Operation, fault: Fault) -> None:
    """The answer, by what failed; a refusal has changed nothing."""
    # With the change done, a sync may still fail as the directories that it left empty are removed.
    assert reported.stopped == (reported.code == "writes_stopped") or (reported.code, reported.fired) == (
        "applied",
        "sync",
    )
    match fault:
        case _ if reported.fired is None:
            assert reported.code == "applied"
        case "short write":
            assert reported.code == "applied"
        case "ENOSPC":
            assert reported.code in ("applied", "disk_full", "writes_stopped")
        case "EMFILE":
            assert reported.code in ("applied", "descriptors_exhausted", "writes_stopped")
        case _ if reported.fired == "sync":
            assert reported.stopped  # what a failed sync has left on the disk, nobody knows
        case _:
            assert reported.code in ("applied", "io_error", "writes_stopped")
    if reported.code not in ("applied", "writes_stopped"):
        assert reported.tree == operation.before


async def at_each_call_in_turn(base: Path, operation: Operation, fault: Fault, *, fresh: bool) -> None:
    at = 1
    for life in range(MOST_CALLS):
        folder = base / str(life)
        folder.mkdir()
        reported = await failing(folder, operation, fault, at, fresh=fresh)
        if reported.fired is None:
            return
        at = reported.at + 1
    raise AssertionError("the fault never ended")


LONG: tuple[tuple[str, Fault], ...] = (
    *((name, fault) for name in ("revert", "several", "rollback") for fault in ("EIO", "dead")),
    *((name, fault) for name in ("move_tree", "delete_tree") for fault in ("EIO", "EMFILE", "dead")),
)
"""They make hundreds of calls, most of which others of the same operation make as well."""

EACH = [
    pytest.param(
        *(operation, fault),
        id=f"{operation.name}-{fault}",
        marks=[pytest.mark.soak] if (operation.name, fault) in LONG else [],
    )
    for operation in OPERATIONS
    for fault in FAULTS
]


@pytest.mark.parametrize(("operation", "fault"), EACH)
async def test_at_each_call_in_turn(base: Path, operation: Operation, fault: Fault) -> None:
    await at_each_call_in_turn(base, operation, fault, fresh=False)


@pytest.mark.soak
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda op: op.name)
async def test_at_each_call_of_a_daemon_that_knows_nothing(base: Path, operation: Operation, fault: Fault) -> None:
    await at_each_call_in_turn(base, operation, fault, fresh=True)
