"""Many agents on few files: nothing that was answered is lost, and most of it needs nobody.

The share merged without a person is printed (`pytest -s`); `make soak` runs the full number.
"""

from __future__ import annotations

import random
from collections import Counter

import anyio
import pytest

from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.waiting import all_conflicts

pytestmark = pytest.mark.anyio

AGENTS, FILES, LINES = 32, 5, 160
LOOKS_AGAIN_AFTER = 3
"""Edits that an agent makes on one look at a file."""


class Crowd:
    """What became of each edit, by the mark that it puts at the end of a line."""

    def __init__(self, edits: int) -> None:
        self.each = edits // AGENTS
        self.applied: dict[str, str] = {}  # mark → file
        self.waiting: dict[str, str] = {}  # mark → conflict
        self.refused: Counter[str] = Counter()
        self.rungs: Counter[str] = Counter()

    async def work(self, daemon: RunningDaemon, number: int) -> None:
        """One agent: line after line, on a look that gets older."""
        places = [(f"f{n}.txt", line) for n in range(FILES) for line in range(LINES)]
        dice = random.Random(number)
        dice.shuffle(places)
        async with daemon.client(f"agent{number}") as files:
            seen: dict[str, tuple[int, list[str]]] = {}
            for count, (path, line) in enumerate(places[: self.each]):
                age, lines = seen.get(path, (LOOKS_AGAIN_AFTER, []))
                if age >= LOOKS_AGAIN_AFTER:
                    age, lines = 0, (await files.read_file(path)).text.split("\n")
                seen[path] = (age + 1, lines)
                await self.edit(files, path, lines[line], f"<{number}.{count}>")

    async def edit(self, files: FileAccess, path: str, old: str, mark: str) -> None:
        try:
            answer = await files.edit_file(path, [Replacement(search=old + "\n", replace=f"{old} {mark}\n")])
        except RemoteError as error:
            self.refused[error.code] += 1
            return
        if answer.status == "applied":
            self.applied[mark] = path
            self.rungs[answer.rung or ""] += 1
        else:
            assert answer.status == "conflict", answer
            self.waiting[mark] = answer.conflict or ""


@pytest.mark.parametrize("edits", [pytest.param(320), pytest.param(2016, marks=pytest.mark.soak)])
async def test_a_crowd_loses_nothing(daemon: RunningDaemon, edits: int) -> None:
    start = "".join(f"line {n}:\n" for n in range(LINES))
    crowd = Crowd(edits)
    async with daemon.client("first") as first:
        for n in range(FILES):
            await first.write_file(f"f{n}.txt", start, mode="create")
    async with anyio.create_task_group() as tasks:
        for number in range(AGENTS):
            tasks.start_soon(crowd.work, daemon, number)

    async with daemon.client() as person:
        open_ones = await all_conflicts(person)
        texts = {f"f{n}.txt": (daemon.workspace / f"f{n}.txt").read_text() for n in range(FILES)}
        for mark, path in crowd.applied.items():
            assert texts[path].count(mark) == 1, f"{mark} was applied to {path} and stands there no more"
        for mark, conflict in crowd.waiting.items():
            if conflict in open_ones:
                assert mark in (open_ones[conflict].proposed or ""), f"{conflict} lost what it proposes"
                continue
            reported = await person.await_change(conflict)
            applied = reported.status == "applied" and any(mark in text for text in texts.values())
            assert applied or "superseded" in reported.message, reported
        known = {*crowd.applied, *crowd.waiting}
        strangers = [word for text in texts.values() for word in text.split() if word[0] == "<" and word not in known]
        assert strangers == []
        assert (await person.workspace_check()).ok
        assert (await person.journal_rebuild()).ok
    assert len(known) + sum(crowd.refused.values()) == edits
    share = len(crowd.applied) / len(known)
    print(f"{edits} edits: {share:.1%} without a person; {dict(crowd.rungs)}; refused: {dict(crowd.refused)}")
    assert share > 0.5
