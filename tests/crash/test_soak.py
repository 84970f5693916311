"""Killed again and again at random steps, start-up and recovery among them, while agents go on with their work."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from orchestrator.api.results import ChangeAnswer
from orchestrator.clients.python import FileAccess, Replacement
from orchestrator.core.errors import DaemonRestarted, DaemonUnreachable
from tests.crash.scenarios import CRASHING, EDIT, Ground

pytestmark = pytest.mark.anyio

AGENTS = ("ann", "ben", "cyd")
ROUNDS = 14
SOAK_S = float(os.environ.get("SOAK_S", "60"))
MOST_STEPS = 160


STEPS = 9
"""Of a worker's turn."""


class Worker:
    """Edits its line; makes, moves and deletes files and folders of its own; what is not answered is sent again.

    Beside it another hand writes a file that only the watcher or the next start's scan can see.
    """

    def __init__(self, agent: str) -> None:
        self.agent = agent
        self.done = 0
        self.outside = 0  # what the other hand wrote last

    async def work(self, ground: Ground) -> None:
        """Until the daemon dies."""
        try:
            async with ground.client(self.agent) as files:
                while True:
                    answer = await self._next(files, f"{self.agent}-{self.done}")
                    assert answer.status == "applied", answer
                    self.done += 1
                    (ground.workspace / self.outside_name).write_text(f"{self.done}\n")
                    self.outside = self.done
        except (DaemonRestarted, DaemonUnreachable):
            return

    async def _next(self, files: FileAccess, request_id: str) -> ChangeAnswer:
        turn, kind = divmod(self.done, STEPS)
        made, moved = f"{self.agent}-{turn}.txt", f"{self.agent}/{turn}.txt"
        folder, other = f"{self.agent}-{turn}", f"{self.agent}/{turn}"
        match kind:
            case 0 | 1:
                old, new = self._line(2 * turn + kind), self._line(2 * turn + kind + 1)
                return await files.edit_file("all.txt", [Replacement(search=old, replace=new)], request_id=request_id)
            case 2:
                return await files.write_file(made, f"{turn}\n", mode="create", request_id=request_id)
            case 3:
                return await files.move_file(made, moved, request_id=request_id)
            case 4:
                return await files.delete_file(moved, request_id=request_id)
            case 5:
                return await files.apply_patch(_two_files(folder), request_id=request_id)
            case 6:
                return await files.move_file(folder, other, request_id=request_id)
            case 7:
                done = await files.move_file(folder, other, request_id=f"{self.agent}-{self.done - 1}")  # as answered
                return await files.revert(done.change or "", request_id=request_id)
            case _:
                return await files.delete_file(folder, request_id=request_id)

    def _line(self, number: int) -> str:
        return f"{self.agent}: {number}\n"

    @property
    def outside_name(self) -> str:
        return f"{self.agent}-outside.txt"

    def expected(self) -> tuple[str, dict[str, str]]:
        """The agent's line, and the files beside it, after what was answered."""
        turn, kind = divmod(self.done, STEPS)
        folder = {6: f"{self.agent}-{turn}", 7: f"{self.agent}/{turn}", 8: f"{self.agent}-{turn}"}.get(kind)
        files = {3: {f"{self.agent}-{turn}.txt": f"{turn}\n"}, 4: {f"{self.agent}/{turn}.txt": f"{turn}\n"}}.get(
            kind, {}
        )
        if folder is not None:
            files = {f"{folder}/{name}": f"{name}\n" for name in "ab"}
        return self._line(2 * turn + min(kind, 2)), files


def _two_files(folder: str) -> str:
    return "".join(f"--- /dev/null\n+++ b/{folder}/{name}\n@@ -0,0 +1 @@\n+{name}\n" for name in "ab")


async def die_and_recover(base: Path, chance: random.Random, rounds: Iterator[object]) -> None:
    ground = Ground(base)
    ground.prepare(EDIT)
    workers = [Worker(agent) for agent in AGENTS]
    spaced = "".join(f"{worker._line(0)}\n\n\n" for worker in workers)
    (ground.workspace / "all.txt").write_text(spaced)
    for _ in rounds:
        ground._module = CRASHING
        try:
            ground.start("--at", f"any:{chance.randint(1, MOST_STEPS)}")
        except AssertionError as died:
            assert "ended with -9" in str(died)  # noqa: PT017  # dying while it starts is part of it
            continue
        async with anyio.create_task_group() as tasks:
            for worker in workers:
                tasks.start_soon(worker.work, ground)
        assert ground.wait() == -9, ground.log[-2000:]
    with ground.serving():
        for worker in workers:
            async with ground.client(worker.agent) as files:
                answer = await worker._next(files, f"{worker.agent}-{worker.done}")
                assert answer.status == "applied"
                worker.done += 1
        text = (ground.workspace / "all.txt").read_text()
        assert text == "".join(f"{worker.expected()[0]}\n\n\n" for worker in workers)
        own = {"all.txt": text, "notes.txt": EDIT.on_disk["notes.txt"]}
        for worker in workers:
            own |= worker.expected()[1]
            if worker.outside:
                own[worker.outside_name] = f"{worker.outside}\n"
        await ground.agrees()
        applied = [entry for entry in await ground.events() if entry.kind == "change_applied"]
        assert len(applied) == sum(worker.done for worker in workers)
        assert sum(worker.done for worker in workers) > len(workers)
    # Now that it has ended: what was swapped out is unlinked after the answer.
    found = {str(path.relative_to(ground.workspace)): path for path in ground.workspace.rglob("*") if path.is_file()}
    assert {name: path.read_text() for name, path in found.items()} == own


async def test_killed_at_random_steps(base: Path) -> None:
    await die_and_recover(base, random.Random(1), iter(range(ROUNDS)))


@pytest.mark.soak
async def test_killed_at_random_steps_for_minutes(base: Path) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")  # shown when it fails
    end = time.monotonic() + SOAK_S
    await die_and_recover(base, random.Random(seed), iter(lambda: time.monotonic() < end, False))
