"""FAULTS row 15: a change of several files that was cut off in its middle, and what became of the rest of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.clients.python import RemoteError
from tests.crash.crashing import FOREIGN
from tests.crash.scenarios import (
    AGENT,
    DELETE_TREE,
    MOVE_TREE,
    REQUEST,
    ROLLBACK,
    SEVERAL,
    Ground,
    Operation,
    about_files,
    content,
    outcomes,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def ground(base: Path) -> Ground:
    return Ground(base)


@pytest.mark.parametrize(
    ("operation", "nth"),
    [
        pytest.param(operation, nth, id=f"{operation.name}-{nth}")
        for operation, files in ((SEVERAL, 3), (ROLLBACK, 3), (MOVE_TREE, 2), (DELETE_TREE, 2))
        for nth in range(1, files + 1)
    ],
)
@pytest.mark.parametrize("step", ["hash_rechecked", "swapped", "directory_synced"])
async def test_some_of_the_files_are_done(ground: Ground, operation: Operation, step: str, nth: int) -> None:
    """Once one of them has changed, the rest follows at the restart; before that, none does."""
    ground.prepare(operation)
    await ground.crash(operation, at=f"{step}:{operation.earlier + nth}")
    happened = step != "hash_rechecked" or nth > 1
    with ground.serving():
        assert ground.contents(operation) == (operation.after if happened else operation.before)
        (closing,) = outcomes(await ground.events())
        assert closing["kind"] == ("change_applied" if happened else "change_aborted")
        await ground.agrees()
        async with ground.client(AGENT) as files:
            assert (await operation.call(files, REQUEST)).status == "applied"
        assert ground.contents(operation) == operation.after
        await ground.agrees()
        if happened and operation.emptied:
            assert not (ground.workspace / operation.emptied).exists(), "the folder that it emptied stays"


@pytest.mark.parametrize("step", ["written", "txn_open:change_applied", "txn_committed:change_applied"])
@pytest.mark.parametrize("operation", [pytest.param(item, id=item.name) for item in (MOVE_TREE, DELETE_TREE)])
async def test_killed_around_the_emptying_of_the_folder(ground: Ground, operation: Operation, step: str) -> None:
    """Whenever the end comes, the folder goes with its files."""
    ground.prepare(operation)
    await ground.crash(operation, at=step)
    with ground.serving():
        assert ground.contents(operation) == operation.after
        assert not (ground.workspace / "tree").exists()
        await ground.agrees()


@pytest.mark.parametrize("place", ["done", "to do"])
async def test_somebody_wrote_to_one_of_them_meanwhile(ground: Ground, place: str) -> None:
    """Their content stays; the other files are what the change made of them."""
    ground.prepare(SEVERAL)
    await ground.crash(SEVERAL, at="swapped:2")  # notes.txt and the rename's new name, or its removal, are done
    theirs = "notes.txt" if place == "done" else "short.txt"
    (ground.workspace / theirs).write_bytes(FOREIGN)
    with ground.serving():
        assert ground.contents(SEVERAL) == {**SEVERAL.after, theirs: FOREIGN.decode()}
        events = await ground.events()
        diverged, applied = outcomes(events)
        assert (diverged["kind"], applied["kind"]) == ("change_diverged", "change_applied")
        assert [item["path"] for item in diverged["paths"]] == [theirs]
        assert theirs not in {item["path"] for item in applied["paths"]}
        await ground.agrees()
        async with ground.client(AGENT) as files:
            answer = await SEVERAL.call(files, REQUEST)
        assert answer.status == "diverged"
    with ground.serving():
        assert about_files(await ground.events()) == about_files(events)


@pytest.mark.parametrize("meet", [1, 2, 4])
async def test_one_that_does_not_fit_takes_the_others_back(ground: Ground, meet: int) -> None:
    """Alive: somebody writes to the last file just before its turn; nothing of the change stays."""
    ground.prepare(SEVERAL)
    ground._module = ("-m", "tests.crash.crashing")
    ground.start("--meddle", f"hash_rechecked:{meet}", "--path", str(ground.workspace / "short.txt"))
    try:
        async with ground.client(AGENT) as files:
            with pytest.raises(RemoteError) as refused:
                await SEVERAL.call(files, REQUEST)
        assert refused.value.code in ("changes_conflict", "search_not_found", "patch_invalid")
        assert ground.contents(SEVERAL) == {**SEVERAL.before, "short.txt": FOREIGN.decode()}
        (closing,) = outcomes(await ground.events())[-1:]
        assert (closing["kind"], closing["cause"]) == ("change_aborted", "stale")
    finally:
        assert ground.stop() == 0
    with ground.serving():
        await ground.agrees()


async def test_killed_while_rolling_back(ground: Ground) -> None:
    """What is done by then is completed; the file that did not fit keeps what somebody else wrote."""
    ground.prepare(SEVERAL)
    await ground.crash(SEVERAL, at="rolling_back", meddle="hash_rechecked:4", path=str(ground.workspace / "short.txt"))
    with ground.serving():
        assert content(ground.workspace / "short.txt") == FOREIGN.decode()
        assert content(ground.workspace / "notes.txt") == SEVERAL.after["notes.txt"]
        await ground.agrees()


@pytest.mark.parametrize("step", ["txn_open:change_applied", "txn_committed:change_applied"])
async def test_killed_again_while_the_rest_is_done(ground: Ground, step: str) -> None:
    ground.prepare(SEVERAL)
    await ground.crash(SEVERAL, at="swapped:1")
    ground._module = ("-m", "tests.crash.crashing")
    with pytest.raises(AssertionError, match="the daemon ended with -9"):
        ground.start("--at", step)
    with ground.serving():
        assert ground.contents(SEVERAL) == SEVERAL.after
        assert [item["kind"] for item in outcomes(await ground.events())] == ["change_applied"]
        await ground.agrees()
