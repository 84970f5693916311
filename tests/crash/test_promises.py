"""What a change promises, what is taken away to see whether it matters, and the check that then fails.

| promise | taken away | check |
|---|---|---|
| the new content is on the disk before its name | the sync of the file | power cuts |
| an answered change is on the disk | the sync of the directory | power cuts |
| so is the way to a file below new directories | the sync of what new parents are made in | power cuts |
| an answered move has left the place it came from | the sync of the source's directory | power cuts |
| nothing changes that the journal does not know of | the intent before the swap | power cuts |
| an answered change is closed | the outcome | answered is closed |
| a stale look is found out before any name changes | the hash check | no flicker |
| changes of one path follow one another | the lock of the path | nobody is taken back |
| what recovery calls applied is on the disk | the sync of the directory by recovery | recovered stays |

Those of one atomic write, where another program comes between (verification, the lease, the exclusive rename), are in
test_mutations.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestrator.clients.python import Replacement
from orchestrator.core.errors import OrchestratorError
from orchestrator.core.ids import Seq, WorkspacePath
from orchestrator.engine.changes.effects import Effects
from orchestrator.engine.changes.recovery import Recovery
from orchestrator.engine.changes.write_batch import WriteBatch
from orchestrator.engine.locks import PathLocks
from orchestrator.ports.workspace import FileStat
from orchestrator.workspace.atomic_write import LocalAtomicWrite
from orchestrator.workspace.disk import Rename
from tests.crash.dropped_fsyncs import ForgettingDisk
from tests.crash.inside import Inside, living
from tests.crash.power_cuts import Act, folder, scenario
from tests.crash.scenarios import AGENT

pytestmark = pytest.mark.anyio

Patch = pytest.MonkeyPatch
Check = Callable[[Path, Callable[[], ForgettingDisk]], Awaitable[None]]
Mutation = Callable[[Patch], Callable[[], ForgettingDisk]]

LUCKS = 600
"""Draws of where the power is cut and what survives; each mutation is found within the first hundred or so."""

ACTS = [[Act(kind, number)] for number, kind in enumerate(("patch", "create", "create", "move", "several"), 2)]
"""Among them a file below new directories, and a move from one directory to another."""


# --- what is taken away -----------------------------------------------------------------


class NoFileSync(ForgettingDisk):
    def sync(self, handle: int) -> None:
        if self._of(handle).is_directory:
            super().sync(handle)


class NoDirectorySync(ForgettingDisk):
    def sync(self, handle: int) -> None:
        if not self._of(handle).is_directory:
            super().sync(handle)


class NoSyncOfParents(ForgettingDisk):
    """What a directory was just made in is not synced."""

    _made_in: int | None = None

    def make_directory(self, directory: int, name: str) -> None:
        super().make_directory(directory, name)
        self._made_in = self._of(directory).number

    def sync(self, handle: int) -> None:
        made_in, self._made_in = self._made_in, None
        if self._of(handle).number != made_in:
            super().sync(handle)


class NoSyncOfSource(ForgettingDisk):
    """Of a rename between two directories only the one that it went to is synced."""

    _left: int | None = None

    def rename(self, from_dir: int, old: str, to_dir: int, new: str, how: Rename) -> None:
        super().rename(from_dir, old, to_dir, new, how)
        source = self._of(from_dir).number
        self._left = source if source != self._of(to_dir).number else None

    def sync(self, handle: int) -> None:
        if self._of(handle).number != self._left:
            super().sync(handle)


def disk(kind: type[ForgettingDisk]) -> Mutation:
    return lambda patch: kind


def no_intent_before(patch: Patch) -> type[ForgettingDisk]:
    """The names change while the intent is still on its way."""
    stage, commit = WriteBatch.stage, WriteBatch.commit
    stats: dict[int, dict[WorkspacePath, FileStat | None]] = {}

    async def both(self: WriteBatch) -> None:
        await stage(self)
        stats[id(self)] = await commit(self)

    async def committed(self: WriteBatch) -> dict[WorkspacePath, FileStat | None]:
        return stats.pop(id(self))

    patch.setattr(WriteBatch, "stage", both)
    patch.setattr(WriteBatch, "commit", committed)
    return ForgettingDisk


def no_outcome(patch: Patch) -> type[ForgettingDisk]:
    """The answer is given, and nothing written."""

    async def answered(self: Effects, plan: object, event: Any, *_: object) -> object:
        return await self._s.journal.event(Seq(event.change))

    patch.setattr(Effects, "_outcome", answered)
    return ForgettingDisk


def no_hash_check(patch: Patch) -> type[ForgettingDisk]:
    patch.setattr(LocalAtomicWrite, "_check_content", lambda *_: None)
    patch.setattr(LocalAtomicWrite, "_unmoved", lambda _: True)
    return ForgettingDisk


def no_lock(patch: Patch) -> type[ForgettingDisk]:
    @asynccontextmanager
    async def free(self: PathLocks, paths: object, *, shared: bool = False) -> AsyncIterator[None]:
        yield

    for name in ("alone", "hold"):
        patch.setattr(PathLocks, name, free)
    return ForgettingDisk


def no_sync_by_recovery(patch: Patch) -> type[ForgettingDisk]:
    async def unsynced(self: Recovery, item: object) -> None:
        """Nothing is synced."""

    patch.setattr(Recovery, "_sync_names", unsynced)
    return ForgettingDisk


# --- the checks -------------------------------------------------------------------------


async def power_cuts(base: Path, make: Callable[[], ForgettingDisk]) -> None:
    for luck in range(LUCKS):
        with folder() as here:
            await scenario(here, ACTS[luck % len(ACTS)], luck, make=make)


async def answered_is_closed(base: Path, make: Callable[[], ForgettingDisk]) -> None:
    made = make()
    async with living(base, base / "work", made) as life:
        files = await life.client(AGENT)
        assert (await files.write_file("new.txt", "new\n", mode="create")).status == "applied"
        await life.idle()
    async with living(base, base / "work", made) as life:
        assert (await life.person.status()).health.recovered == 0


async def no_flicker(base: Path, make: Callable[[], ForgettingDisk]) -> None:
    """Somebody else writes while the change is staged: no step changes a name before that is seen."""
    made, steps = make(), list[str]()
    made.put("a.txt", b"a\n")

    def step(name: str) -> None:
        steps.append(name)
        if name == "temp_synced" and steps.count(name) == 1:
            made.put("a.txt", b"theirs\n")

    async with living(base, base / "work", made, step=step) as life:
        files = await life.client(AGENT)
        await files.write_file("a.txt", "ours\n", mode="truncate", base=f"@{life.services.journal.head}")
        await life.idle()
    assert "swapped_stale" not in steps


async def nobody_is_taken_back(base: Path, make: Callable[[], ForgettingDisk]) -> None:
    """Several agents change lines of one file at once: none of the changes has to be begun twice."""
    made, agents = make(), [f"agent{number}" for number in range(4)]
    made.put("a.txt", "\n\n\n\n".join(f"{name}: 0" for name in agents).encode())
    async with living(base, base / "work", made) as life:
        async with anyio.create_task_group() as tasks:
            for name in agents:
                tasks.start_soon(_edits, life, name)
        kinds = {entry.kind for entry in await life.events()}
        assert "change_aborted" not in kinds
    text = made.tree()["a.txt"].decode()
    assert [f"{name}: {EDITS}" in text for name in agents] == [True] * len(agents)


class Killed(BaseException):
    """Nothing of the daemon's runs any more; the disk goes on."""


async def recovered_stays(base: Path, make: Callable[[], ForgettingDisk]) -> None:
    """Killed between the new name and its sync; then the power goes after a start that called it applied."""
    made = make()

    def step(name: str) -> None:
        if name == "swapped":
            raise Killed

    leave = partial(shutil.copytree, base / "state", base / "killed")
    try:
        async with living(base / "state", base / "work", made, step=step, leave=leave) as life:
            await (await life.client(AGENT)).write_file("d/new.txt", "new\n", mode="create")
    except* Killed:
        pass
    async with living(base / "killed", base / "work", made) as life:
        assert (await life.person.status()).health.recovered == 1
        assert [event.kind for event in await life.events()].count("change_applied") == 1
    for luck in range(20):
        assert made.after_the_cut(random.Random(luck)).tree() == {"d/new.txt": b"new\n"}


EDITS = 4


async def _edits(life: Inside, name: str) -> None:
    files = await life.client(name)
    for number in range(EDITS):
        change = Replacement(search=f"{name}: {number}", replace=f"{name}: {number + 1}")
        try:
            await files.edit_file("a.txt", [change])
        except OrchestratorError as error:
            raise AssertionError("an edit of a line of its own was not taken") from error


PROMISES: tuple[tuple[str, Mutation, Check], ...] = (
    ("the sync of the file", disk(NoFileSync), power_cuts),
    ("the sync of the directory", disk(NoDirectorySync), power_cuts),
    ("the sync of new parents", disk(NoSyncOfParents), power_cuts),
    ("the sync of a move's source", disk(NoSyncOfSource), power_cuts),
    ("the intent before the swap", no_intent_before, power_cuts),
    ("the outcome", no_outcome, answered_is_closed),
    ("the hash check", no_hash_check, no_flicker),
    ("the lock of the path", no_lock, nobody_is_taken_back),
    ("the sync by recovery", no_sync_by_recovery, recovered_stays),
)


@pytest.mark.soak
@pytest.mark.parametrize(("mutation", "check"), [pytest.param(m, c, id=name) for name, m, c in PROMISES])
async def test_without(base: Path, mutation: Mutation, check: Check, monkeypatch: Patch) -> None:
    make = mutation(monkeypatch)
    with pytest.raises((AssertionError, BaseExceptionGroup)) as failed:
        await check(base, make)
    assert failed.group_contains(AssertionError) if isinstance(failed.value, BaseExceptionGroup) else True


@pytest.mark.parametrize("check", [answered_is_closed, no_flicker, nobody_is_taken_back, recovered_stays])
async def test_with_all_of_them(base: Path, check: Check) -> None:
    """Of power cuts, test_power_cuts is this."""
    await check(base, ForgettingDisk)
