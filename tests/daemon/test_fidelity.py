"""The matrix of byte fidelity through a real daemon: outside what was changed, not one byte is another."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from orchestrator.api.results import ChangeAnswer
from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from tests.crash.scenarios import POLICY
from tests.daemon.daemon_process import RunningDaemon, running
from tests.daemon.fidelity import CODECS, ENDS, EXCLUDED, MODES, OPERATIONS, Cell, Text, attributes, cells

pytestmark = pytest.mark.anyio

NOTE = b"kept \xff"


@pytest.fixture
def open_daemon(base: Path) -> Iterator[RunningDaemon]:
    """Under a policy that lets everything through."""
    daemon = RunningDaemon(base)
    (daemon.state_dir / "policy.toml").write_text(POLICY)
    with running(base) as started:
        yield started


class Checked:
    """What came out otherwise than it must, and how many cells were looked at."""

    def __init__(self, workspace: Path, *, xattrs: bool) -> None:
        self._workspace, self._xattrs = workspace, xattrs
        self.seen: set[tuple[str, str]] = set()
        self.wrong: list[str] = []

    def holds(self, cell: Cell, operation: str, expected: bytes, answer: ChangeAnswer) -> None:
        """Compare bytes, mode and attributes with what they must be."""
        self.seen.add((cell.id, operation))
        file = self._workspace / cell.path
        found, mode = file.read_bytes(), stat.S_IMODE(file.stat().st_mode)
        where = f"{cell.id} {operation}"
        if answer.status != "applied":
            self.wrong.append(f"{where}: {answer.status} {answer.message}")
        if found != expected:
            self.wrong.append(f"{where}:\n  found    {found!r}\n  expected {expected!r}")
        if mode != cell.mode:
            self.wrong.append(f"{where}: mode {mode:o}")
        if self._xattrs and attributes(file) != {"user.note": NOTE}:
            self.wrong.append(f"{where}: attributes {attributes(file)}")


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.soak)])
async def test_the_matrix(open_daemon: RunningDaemon, whole: bool) -> None:
    """Every encoding, line end and end of file with each operation; the whole matrix has each with every mode too."""
    work = open_daemon.workspace
    columns = [
        [cell for at, cell in enumerate(cells(encoding), number) if whole or at % len(MODES) == 0]
        for number, encoding in enumerate(CODECS)
    ]
    every = [cell for column in columns for cell in column]
    for cell in every:
        cell.write(work)
    xattrs = _annotated(work, every)
    checked = Checked(work, xattrs=xattrs)
    for prefix, reason in EXCLUDED.items():
        print(f"left out: {prefix}: {reason}")
    async with (
        open_daemon.client("alice") as alice,
        open_daemon.client("bob") as bob,
        anyio.create_task_group() as tasks,
    ):
        for column in columns:
            tasks.start_soon(_column, alice, bob, column, checked)
    assert not checked.wrong, f"{len(checked.wrong)} wrong:\n" + "\n".join(checked.wrong[:6])
    assert checked.seen == {(cell.id, operation) for cell in every for operation in OPERATIONS}
    modes = len(MODES) if whole else 1
    assert EXCLUDED or len(checked.seen) == len(CODECS) * len(ENDS) * 2 * modes * len(OPERATIONS)
    async with open_daemon.client() as person:
        assert (await person.replay_check()).differences == ()
        assert (await person.journal_rebuild()).first_difference is None


def _annotated(work: Path, every: list[Cell]) -> bool:
    try:
        for cell in every:
            os.setxattr(work / cell.path, "user.note", NOTE)
    except OSError as error:
        print(f"left out: extended attributes: {error.strerror} here")
        return False
    return True


async def _column(alice: FileAccess, bob: FileAccess, column: list[Cell], checked: Checked) -> None:
    for cell in column:
        try:
            await _through_all(alice, bob, cell, checked)
        except RemoteError as error:
            checked.wrong.append(f"{cell.id}: {error.code}: {error}")


async def _through_all(alice: FileAccess, bob: FileAccess, cell: Cell, checked: Checked) -> None:
    """Each operation on the same file, one after the other."""
    original = text = cell.start()
    facts = await alice.file_info(cell.path)
    if (facts.encoding, facts.eol, facts.line_count) != (cell.encoding, cell.eol, len(text.lines)):
        checked.wrong.append(f"{cell.id}: file_info says {facts.encoding}, {facts.eol}, {facts.line_count} lines")
    read = await alice.read_file(cell.path, line_numbers=False, max_tokens=100_000)
    if (read.text, read.encoding, read.eol) != (text.shown, cell.encoding, cell.eol):
        checked.wrong.append(f"{cell.id}: read {read.encoding} {read.eol} {read.text!r}")

    _, mine, theirs = cell.words
    new_3, new_last = f"line 3: {mine}", f"the end: {theirs}"
    edits = [
        Replacement(search=f"{text.line(2)}\n{text.line(3)}\n", replace=f"{text.line(2)}\n{new_3}\n"),
        Replacement(search=text.line(-1), replace=new_last),
    ]
    text = text.with_line(3, new_3).with_line(-1, new_last)
    edited = await alice.edit_file(cell.path, edits)
    checked.holds(cell, "edit", text.bytes, edited)

    patched = text.with_line(6, f"six: {mine}").with_line_after(6, f"six and a half: {theirs}")
    answer = await alice.apply_patch(_patch(text, patched), path=cell.path)
    text = patched
    checked.holds(cell, "patch", text.bytes, answer)

    text = text.with_line(9, f"nine: {mine}")
    answer = await alice.write_file(cell.path, text.shown, "truncate")
    checked.holds(cell, "write", text.bytes, answer)

    before = text
    text = text.with_line(1, f"one: {theirs}")
    await bob.read_file(cell.path)
    await bob.edit_file(cell.path, [Replacement(search=before.line(1), replace=text.line(1))])
    stale = before.with_line(12, f"twelve: {mine}")
    text = text.with_line(12, stale.line(12))
    answer = await alice.write_file(cell.path, stale.shown, "truncate", base=answer.version_id)
    checked.holds(cell, "merge", text.bytes, answer)
    if answer.rung != "merged":
        checked.wrong.append(f"{cell.id} merge: rung {answer.rung}")

    text = text.with_line(3, original.line(3)).with_line(-1, original.line(-1))
    answer = await alice.revert(edited.change or "")
    checked.holds(cell, "revert", text.bytes, answer)

    rolled = await alice.rollback(agent="alice", globs=(cell.path,))
    checked.holds(cell, "rollback", original.with_line(1, text.line(1)).bytes, rolled)
    rolled = await alice.rollback(agent="bob", globs=(cell.path,))
    checked.holds(cell, "rollback", original.bytes, rolled)


def _patch(old: Text, new: Text) -> str:
    """Line 6 becomes two, with a line of context on each side."""
    rows = [f" {old.line(5)}", f"-{old.line(6)}", f"+{new.line(6)}", f"+{new.line(7)}", f" {old.line(7)}"]
    return "@@ -5,3 +5,4 @@\n" + "\n".join(rows) + "\n"
