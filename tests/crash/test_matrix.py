"""A daemon killed between any two steps of a change, started again: the disk, the journal and the caller agree."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from orchestrator.clients.python import RemoteError
from tests.crash.crashing import FOREIGN
from tests.crash.scenarios import (
    AGENT,
    CRASHING,
    CREATE,
    CREATE_BELOW,
    DELETE,
    EDIT,
    MOVE,
    OPERATIONS,
    REQUEST,
    REVERT,
    Ground,
    Operation,
    about_files,
    content,
    marks_of,
    nth,
    outcomes,
)

pytestmark = pytest.mark.anyio

INTENDED = "txn_committed:change_intended"


class Row(msgspec.Struct, frozen=True):
    """One row of the table: where it dies, and what is true after the restart."""

    number: str
    at: str
    outcome: str | None  # the event that closes the change; None: there is no change
    after: str | None = None  # dies only when this was reached as well
    needs_temp: bool = False
    half: int = 1


ROWS = (
    Row("1 inside transaction 1", "txn_open:change_intended", None),
    Row("1 the file written, transaction 1 not", "txn_open:change_intended", None, "temp_synced", needs_temp=True),
    Row("2 intent alone", INTENDED, "change_aborted"),
    Row("3 empty file", "temp_created", "change_aborted", INTENDED, needs_temp=True),
    Row("4 half a file", "temp_half_written", "change_aborted", INTENDED, needs_temp=True),
    Row("5 whole file, unsynced", "temp_half_written", "change_aborted", INTENDED, needs_temp=True, half=2),
    Row("5 whole file", "temp_synced", "change_aborted", INTENDED, needs_temp=True),
    Row("6 hash checked again", "hash_rechecked", "change_aborted"),
    Row("7 swapped", "swapped", "change_applied"),
    Row("8 directory synced", "directory_synced", "change_applied"),
    Row("8 landed", "written", "change_applied"),
    Row("9 inside transaction 2", "txn_open:change_applied", "change_applied"),
    Row("10 not answered", "txn_committed:change_applied", "change_applied"),
    Row("11 old content unlinked", "unlinked", "change_applied"),
)
RECOVERED = ("swapped", "directory_synced", "written", "txn_open:change_applied")
TWO = [
    pytest.param(row, op, id=f"{row.number}-{op.name}", marks=marks_of(op))
    for row in ROWS
    for op in OPERATIONS
    if op.writes_temp or not row.needs_temp
]


@pytest.fixture
def ground(base: Path) -> Ground:
    return Ground(base)


async def cut_off(ground: Ground, operation: Operation, row: Row) -> None:
    more = {"after": nth(row.after, operation)} if row.after else {}
    await ground.crash(operation, at=nth(row.at, operation, half=row.half), **more)


async def sent_again_is_done_once(ground: Ground, operation: Operation, applied_before: bool) -> None:
    """The same request once more, and once again: one change, one answer."""
    async with ground.client(AGENT) as files:
        again = await operation.call(files, REQUEST)
        once_more = await operation.call(files, REQUEST)
    assert again.status == "applied"
    assert (once_more.status, once_more.change) == ("applied", again.change)
    assert ground.contents(operation) == operation.after
    events = await ground.events()
    applied = [entry for entry in events if entry.kind == "change_applied"]
    assert len(applied) == operation.earlier + 1
    intents = [entry for entry in events if entry.kind == "change_intended"][operation.earlier :]
    assert again.change == (intents[0] if applied_before else intents[-1]).seq
    await ground.agrees()


@pytest.mark.parametrize(("row", "operation"), TWO)
async def test_killed_at(ground: Ground, row: Row, operation: Operation) -> None:
    ground.prepare(operation)
    await cut_off(ground, operation, row)
    happened = row.outcome == "change_applied"
    expected = operation.after if happened else operation.before
    with ground.serving():
        assert ground.contents(operation) == expected
        first = await ground.events()
        closing = outcomes(first)[:] if row.outcome is not None else outcomes(first)[operation.earlier :]
        if row.outcome is None:
            assert len([entry for entry in first if entry.kind == "change_intended"]) == operation.earlier
        else:
            assert [entry["kind"] for entry in closing] == [row.outcome]
            assert closing[0].get("cause") == (None if happened else "crash")
            open_still = row.at in RECOVERED or (row.at == "unlinked" and bool(operation.emptied))
            assert closing[0].get("recovered", False) == open_still
        await ground.agrees()
        if happened and operation.emptied:
            assert not (ground.workspace / operation.emptied).exists()
    with ground.serving():
        assert about_files(await ground.events()) == about_files(first)
        await sent_again_is_done_once(ground, operation, happened)


async def test_killed_before_the_intent(ground: Ground) -> None:
    """Row 0: the call was never begun."""
    ground.prepare(EDIT)
    await ground.crash(EDIT, at="txn_open:session_opened")
    with ground.serving():
        assert outcomes(await ground.events()) == []
        assert ground.contents(EDIT) == EDIT.before
        await sent_again_is_done_once(ground, EDIT, False)


@pytest.mark.parametrize("operation", [pytest.param(op, id=op.name, marks=marks_of(op)) for op in OPERATIONS])
async def test_recovery_reports_what_the_call_would_have_reported(base: Path, operation: Operation) -> None:
    reported = []
    for number, step in enumerate(("written", "txn_committed:change_applied")):
        folder = base / str(number)
        folder.mkdir()
        ground = Ground(folder)
        ground.prepare(operation)
        await ground.crash(operation, at=nth(step, operation))
        with ground.serving():
            events = await ground.events()
        (event,) = outcomes(events)
        # The first scan writes one event or several, before the call or beside it: numbers count them, kinds do not.
        kinds = {int(entry.seq.removeprefix("@")): entry.kind for entry in events}
        event["change"] = kinds[event["change"]]
        assert event.pop("recovered", False) == (step == "written")
        for changed in event["paths"]:
            assert (changed.pop("signature", None) is None) == (changed.get("after") is None)
            if "previous" in changed:
                changed["previous"] = kinds[changed["previous"]]
        reported.append(event)
    assert reported[0] == reported[1]


# --- rows 12 to 14: somebody else was there too -------------------------------------------


@pytest.mark.parametrize("operation", [EDIT, DELETE, REVERT], ids=lambda op: op.name)
async def test_killed_between_swap_and_swap_back(ground: Ground, operation: Operation) -> None:
    """Row 12: what came out was another program's; it goes back where it stood."""
    ground.prepare(operation)
    await ground.crash(
        operation,
        at="swapped_stale",
        meddle=nth("hash_rechecked", operation),
        path=str(ground.workspace / operation.main),
    )
    with ground.serving():
        assert content(ground.workspace / operation.main) == FOREIGN.decode()
        events = await ground.events()
        (closing,) = outcomes(events)
        assert (closing["kind"], closing["cause"]) == ("change_aborted", "stale")
        assert about_files(events)[-1].kind == "external_file_changed"
        await ground.agrees()
    with ground.serving():
        assert about_files(await ground.events()) == about_files(events)


async def test_killed_between_move_and_move_back(ground: Ground) -> None:
    """Row 12 for a move: which of the two names the content had is not known any more; it is kept."""
    ground.prepare(MOVE)
    await ground.crash(MOVE, at="swapped_stale", meddle="hash_rechecked", path=str(ground.workspace / "notes.txt"))
    with ground.serving():
        assert ground.contents(MOVE) == {"notes.txt": None, "moved.txt": FOREIGN.decode()}
        (closing,) = outcomes(await ground.events())
        assert closing["kind"] == "change_diverged"
        await ground.agrees()


OUTSIDE = [
    pytest.param(CREATE, "swapped", id="create-swapped"),
    pytest.param(CREATE, INTENDED, id="create-intended"),
    pytest.param(CREATE_BELOW, "temp_synced", id="create_below-synced"),
    pytest.param(EDIT, INTENDED, id="edit-intended"),
    pytest.param(EDIT, "temp_synced", id="edit-synced"),
    pytest.param(EDIT, "swapped", id="edit-swapped"),
    pytest.param(DELETE, INTENDED, id="delete-intended"),
    pytest.param(DELETE, "swapped", id="delete-swapped"),
    pytest.param(MOVE, INTENDED, id="move-intended"),
    pytest.param(MOVE, "swapped", id="move-swapped"),
    pytest.param(REVERT, "temp_synced", id="revert-synced"),
    pytest.param(REVERT, "swapped", id="revert-swapped"),
]


async def bytes_are_kept(ground: Ground, path: str, wanted: str) -> None:
    """Some version of the path has this content, and it can be read."""
    async with ground.client() as person:
        for version in (await person.file_history(path)).versions:
            text = await person.read_file(path, at=version.version_id, line_numbers=False)
            if text.text == wanted:
                return
    raise AssertionError(f"no version of {path} holds {wanted!r}")


async def is_usable(ground: Ground, path: str) -> None:
    async with ground.client("bob") as bob:
        if (ground.workspace / path).exists():
            await bob.read_file(path)
            answer = await bob.write_file(path, "usable\n", mode="truncate")
        else:
            answer = await bob.write_file(path, "usable\n", mode="create")
        assert answer.status == "applied"
    assert content(ground.workspace / path) == "usable\n"
    await ground.agrees()


@pytest.mark.parametrize(("operation", "step"), OUTSIDE)
async def test_written_from_outside_before_the_restart(ground: Ground, operation: Operation, step: str) -> None:
    """Row 13: nothing is overwritten, all bytes are kept, and the path stays usable."""
    ground.prepare(operation)
    await ground.crash(
        operation, at=nth(step, operation), **({"after": nth(INTENDED, operation)} if step == "temp_synced" else {})
    )
    path = ground.workspace / operation.main
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(FOREIGN)
    with ground.serving():
        assert path.read_bytes() == FOREIGN
        events = await ground.events()
        (closing,) = outcomes(events)
        assert closing["kind"] == "change_diverged"
        await bytes_are_kept(ground, operation.main, FOREIGN.decode())
        await ground.agrees()
        async with ground.client() as person:
            status = await person.status()
        assert len(status.health.diverged) == 1
    with ground.serving():
        assert about_files(await ground.events()) == about_files(events)
        async with ground.client(AGENT) as files:
            answer = await operation.call(files, REQUEST)
        assert answer.status == "diverged"
        await is_usable(ground, operation.main)


@pytest.mark.parametrize(
    ("operation", "step"),
    [
        pytest.param(EDIT, INTENDED, id="edit-intended"),
        pytest.param(EDIT, "temp_synced", id="edit-synced"),
        pytest.param(EDIT, "swapped", id="edit-swapped"),
        pytest.param(REVERT, "swapped", id="revert-swapped"),
        pytest.param(MOVE, "swapped", id="move-swapped"),
    ],
)
async def test_deleted_from_outside_before_the_restart(ground: Ground, operation: Operation, step: str) -> None:
    """Row 14: it is not made again."""
    ground.prepare(operation)
    await ground.crash(
        operation, at=nth(step, operation), **({"after": nth(INTENDED, operation)} if step == "temp_synced" else {})
    )
    path = ground.workspace / operation.main
    path.unlink()
    with ground.serving():
        assert not path.exists()
        events = await ground.events()
        (closing,) = outcomes(events)
        assert closing["kind"] == "change_diverged"
        await ground.agrees()
    with ground.serving():
        assert about_files(await ground.events()) == about_files(events)
        await is_usable(ground, operation.main)


async def test_a_new_file_that_was_deleted_before_the_restart(ground: Ground) -> None:
    """Row 14 for a creation: an absent file is what was there before."""
    ground.prepare(CREATE)
    await ground.crash(CREATE, at="swapped")
    (ground.workspace / "new.txt").unlink()
    with ground.serving():
        (closing,) = outcomes(await ground.events())
        assert (closing["kind"], closing["cause"]) == ("change_aborted", "crash")
        await sent_again_is_done_once(ground, CREATE, False)


# --- row 11b: an editor that still has the file open --------------------------------------


@pytest.mark.parametrize("operation", [EDIT, DELETE, REVERT], ids=lambda op: op.name)
async def test_an_editor_has_the_file_open(ground: Ground, operation: Operation) -> None:
    ground.prepare(operation)
    path = ground.workspace / operation.main
    with ground.serving():
        async with ground.client(AGENT) as files:
            if operation.prepare is not None:
                await operation.prepare(files)
            with path.open("r+") as editor:
                with pytest.raises(RemoteError) as refused:
                    await operation.call(files, REQUEST)
                editor.seek(0)
                editor.write("LINE")
        assert refused.value.code == "file_busy"
        assert content(path) == "LINE" + (operation.before[operation.main] or "")[4:]
        async with ground.client(AGENT) as files:
            await files.read_file(operation.main)
        await ground.agrees()


@pytest.mark.parametrize("operation", [EDIT, DELETE, REVERT], ids=lambda op: op.name)
async def test_an_editor_has_the_file_open_when_the_daemon_dies(ground: Ground, operation: Operation) -> None:
    """Rows 7 and 11b at once: what the editor writes after the restart goes to the file, not to nowhere."""
    ground.prepare(operation)
    path = ground.workspace / operation.main
    crashed = False
    editor = -1
    if operation.prepare is not None:  # the file that is open must be the one that the call swaps out
        ground.prepare(operation)
        with ground.serving():
            async with ground.client(AGENT) as files:
                await operation.prepare(files)
        operation = msgspec.structs.replace(operation, prepare=None, earlier=0)
    editor = os.open(path, os.O_RDWR)
    try:
        await ground.crash(operation, at="swapped")
        crashed = True
        with ground.serving():
            os.pwrite(editor, b"LINE", 0)
            assert content(path) == "LINE" + (operation.before[operation.main] or "")[4:]
            (closing,) = outcomes(await ground.events())
            assert (closing["kind"], closing["cause"]) == ("change_aborted", "file_busy")
    finally:
        os.close(editor)
    assert crashed
    with ground.serving():
        await ground.agrees()


# --- row 16: killed while recovering ------------------------------------------------------


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda op: op.name)
@pytest.mark.parametrize(
    ("step", "dies_again"),
    [
        pytest.param("temp_half_written", "txn_open:change_aborted", id="before aborted"),
        pytest.param("temp_half_written", "txn_committed:change_aborted", id="after aborted"),
        pytest.param("swapped", "txn_open:change_applied", id="before applied"),
        pytest.param("swapped", "txn_committed:change_applied", id="after applied"),
    ],
)
async def test_killed_while_recovering(ground: Ground, operation: Operation, step: str, dies_again: str) -> None:
    ground.prepare(operation)
    more = {}
    if step == "temp_half_written":
        more = {"after": nth(INTENDED, operation)}
        if not operation.writes_temp:
            step, more = INTENDED, {}
    await ground.crash(operation, at=nth(step, operation), **more)
    ground._module = CRASHING
    with pytest.raises(AssertionError, match="the daemon ended with -9"):
        ground.start("--at", dies_again)
    happened = step == "swapped"
    with ground.serving():
        assert ground.contents(operation) == (operation.after if happened else operation.before)
        events = await ground.events()
        (closing,) = outcomes(events)
        assert closing["kind"] == ("change_applied" if happened else "change_aborted")
        assert "orphan_content_kept" not in {entry.kind for entry in events}
        await sent_again_is_done_once(ground, operation, happened)


# --- row 23: two daemons ------------------------------------------------------------------


@pytest.mark.parametrize("other_state", [False, True])
async def test_a_second_daemon(base: Path, ground: Ground, other_state: bool) -> None:
    ground.prepare(EDIT)
    with ground.serving():
        second = Ground(base)
        second.socket = second.runtime / "other"
        if other_state:
            second.state_dir = base / "other-state"
        said = second.start()
        assert second.wait() == 1
        assert "workspace_held" in str(said)
        async with ground.client(AGENT) as files:
            assert (await EDIT.call(files, REQUEST)).status == "applied"
        await ground.agrees()
