"""A change of many paths, several at a time, that was cut off or met another program's content."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.api.results import ChangeAnswer
from orchestrator.clients.python import FileAccess, RemoteError
from orchestrator.engine.changes.write_batch import MANY
from tests.crash.crashing import FOREIGN
from tests.crash.scenarios import AGENT, REQUEST, Ground, Operation, outcomes

pytestmark = pytest.mark.anyio

EDITED = [f"d{number % 4}/edited{number:02}.txt" for number in range(15)]
DELETED = [f"gone/deleted{number:02}.txt" for number in range(10)]
MOVED = [(f"d{number % 4}/moved{number:02}.txt", f"moved/moved{number:02}.txt") for number in range(5)]
CREATED = [f"new{number % 3}/deep/created{number}.txt" for number in range(9)]


def _patch() -> str:
    edited = (f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{path}\n+{path} edited\n" for path in EDITED)
    deleted = (f"--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-{path}\n" for path in DELETED)
    moved = (
        f"diff --git a/{old} b/{new}\nsimilarity index 100%\nrename from {old}\nrename to {new}\n" for old, new in MOVED
    )
    created = (f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{path}\n" for path in CREATED)
    return "".join((*moved, *edited, *deleted, *created))


async def _change(files: FileAccess, request_id: str) -> ChangeAnswer:
    return await files.apply_patch(_patch(), base="@3", request_id=request_id)


OLD = {path: f"{path}\n" for path in (*EDITED, *DELETED, *(old for old, _ in MOVED))}
BEFORE = {**OLD, **dict.fromkeys((*CREATED, *(new for _, new in MOVED)))}
AFTER = {
    **{path: f"{path} edited\n" for path in EDITED},
    **{path: f"{path}\n" for path in CREATED},
    **dict.fromkeys((*DELETED, *(old for old, _ in MOVED))),
    **{new: f"{old}\n" for old, new in MOVED},
}
CHANGE = Operation("many", BEFORE, AFTER, _change, EDITED[0], on_disk=OLD)
PATHS = len(EDITED) + len(DELETED) + len(MOVED) + len(CREATED)
assert PATHS > MANY


@pytest.fixture
def ground(base: Path) -> Ground:
    ground = Ground(base)
    ground.prepare(CHANGE)
    return ground


@pytest.mark.parametrize(
    ("step", "happened"),
    [
        ("temp_half_written:20", False),
        ("hash_rechecked:1", False),
        ("swapped:3", True),
        ("swapped:20", True),
        (f"directory_synced:{PATHS}", True),
        ("txn_open:change_applied", True),
    ],
)
async def test_cut_off(ground: Ground, step: str, happened: bool) -> None:
    await ground.crash(CHANGE, at=step)
    with ground.serving():
        assert ground.contents(CHANGE) == (AFTER if happened else BEFORE)
        assert happened or not any((ground.workspace / path).parent.exists() for path in CREATED)
        (closing,) = outcomes(await ground.events())
        assert closing["kind"] == ("change_applied" if happened else "change_aborted")
        async with ground.client(AGENT) as files:
            assert (await CHANGE.call(files, REQUEST)).status == "applied"
        assert ground.contents(CHANGE) == AFTER
        await ground.agrees()


@pytest.mark.parametrize("theirs", [EDITED[0], EDITED[-1], DELETED[-1]])
async def test_one_that_does_not_fit_takes_the_others_back(ground: Ground, theirs: str) -> None:
    """Somebody writes to one of them when all temporary files are there."""
    ground._module = ("-m", "tests.crash.crashing")
    ground.start("--meddle", "hash_rechecked:1", "--path", str(ground.workspace / theirs))
    try:
        async with ground.client(AGENT) as files:
            with pytest.raises(RemoteError) as refused:
                await CHANGE.call(files, REQUEST)
        assert refused.value.code in ("changes_conflict", "search_not_found", "patch_invalid")
        assert ground.contents(CHANGE) == {**BEFORE, theirs: FOREIGN.decode()}
        assert not any((ground.workspace / path).parent.exists() for path in CREATED)
        (closing,) = outcomes(await ground.events())[-1:]
        assert (closing["kind"], closing["cause"]) == ("change_aborted", "stale")
    finally:
        assert ground.stop() == 0
    with ground.serving():
        await ground.agrees()
