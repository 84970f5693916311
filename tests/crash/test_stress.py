"""Sixteen agents on the same three files: each edit is in the file, in a conflict, or was refused; none is lost."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from pathlib import Path

import msgspec
import pytest

from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.waiting import all_conflicts

pytestmark = pytest.mark.anyio

PROCESSES = 4
AGENTS_EACH = 4
FILES = ("one.txt", "two.txt", "three.txt")
AGENTS = tuple(f"agent{n:02}" for n in range(PROCESSES * AGENTS_EACH))
SHARED = "whose turn: {}\n"


def start_text(name: str) -> str:
    """A line of each agent's own, far enough from its neighbours', and one that all fight for."""
    own = "".join(f"{agent}: 0\n" + "".join(f"{agent} keep {n}\n" for n in range(4)) for agent in AGENTS)
    return f"{name}\n{SHARED.format('nobody 0')}\n\n\n{own}"


class Done(msgspec.Struct, frozen=True):
    """One edit, as its caller was answered. `marker` is the line that it wanted in place of `old`."""

    agent: str
    path: str
    old: str
    marker: str
    status: str
    conflict: str | None


async def edit_all(files: FileAccess, agent: str, edits: int) -> list[Done]:
    """Own lines are set one after the other; every tenth edit goes for the line of all, from a base that may be old."""
    chance = random.Random(agent)
    own = dict.fromkeys(FILES, f"{agent}: 0\n")
    bases: dict[str, str] = {}
    shared: dict[str, str] = {}
    done: list[Done] = []
    for number in range(1, edits + 1):
        path = chance.choice(FILES)
        fight = number % 10 == 0
        if path not in bases or (fight and chance.random() < 0.5):
            seen = await files.read_file(path, start=1, end=3, line_numbers=False)
            bases[path], shared[path] = seen.version_id, seen.text.split("\n")[1] + "\n"
        old = shared[path] if fight else own[path]
        marker = SHARED.format(f"{agent} {number}") if fight else f"{agent}: {number}\n"
        status, conflict = "refused", None
        try:
            answer = await files.edit_file(
                path, [Replacement(search=old, replace=marker)], base=bases[path] if fight else None
            )
            status, conflict = answer.status, answer.conflict
        except RemoteError as refused:
            status = f"refused: {refused.code}"
        done.append(Done(agent, path, old, marker, status, conflict))
        if status == "applied" and not fight:
            own[path] = marker
    return done


async def _agents(socket: str, workspace: str, edits: int, names: list[str]) -> None:
    async def one(name: str) -> list[Done]:
        async with FileAccess.connect(workspace, agent=name, socket=socket) as files:
            return await edit_all(files, name, edits)

    done = [item for items in await asyncio.gather(*map(one, names)) for item in items]
    sys.stdout.buffer.write(msgspec.json.encode(done))


@pytest.mark.parametrize("edits", [30, pytest.param(200, marks=pytest.mark.soak)])
async def test_no_edit_is_lost(daemon: RunningDaemon, edits: int) -> None:
    async with daemon.client("maker") as maker:
        for name in FILES:
            await maker.write_file(name, start_text(name), mode="create")
    processes = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.crash.test_stress", str(daemon.socket), str(daemon.workspace)),
            str(edits),
            *AGENTS[n * AGENTS_EACH : (n + 1) * AGENTS_EACH],
            env={**daemon.env, "PYTHONPATH": os.getcwd()},
            stdout=asyncio.subprocess.PIPE,
        )
        for n in range(PROCESSES)
    ]
    reported = [(await process.communicate())[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * PROCESSES
    done = [item for text in reported for item in msgspec.json.decode(text, type=list[Done])]
    assert len(done) == PROCESSES * AGENTS_EACH * edits

    applied = [item for item in done if item.status == "applied"]
    for name in FILES:
        assert_all_there(Path(daemon.workspace / name).read_text(), name, applied)
    await assert_conflicts_are_kept(daemon, [item for item in done if item.status == "conflict"])
    refused = [item for item in done if item.status not in ("applied", "conflict")]
    assert not [item for item in refused if not item.status.startswith("refused: ")]
    assert {item.status for item in refused} <= {"refused: changed_while_written", "refused: search_not_found"}
    own = [item for item in done if item.marker.startswith(item.agent)]
    assert {item.status for item in own} == {"applied"}
    assert any(item.status == "conflict" for item in done)

    async with daemon.client() as person:
        assert (await person.workspace_check()).ok
        assert (await person.journal_verify()).ok
        rebuilt = await person.journal_rebuild()
        assert rebuilt.ok, rebuilt.first_difference
    assert daemon.stop() == 0  # what goes on after an answer is done by then
    assert not list(daemon.workspace.glob(".orchestrator-*"))


def assert_all_there(text: str, name: str, applied: list[Done]) -> None:
    """Each agent's line holds its last applied edit, nothing else has moved, and the fought-for line somebody's."""
    lines = text.splitlines(keepends=True)
    expected = start_text(name).splitlines(keepends=True)
    for agent in AGENTS:
        mine = [item for item in applied if (item.agent, item.path) == (agent, name)]
        own = [item.marker for item in mine if item.marker.startswith(agent)]
        expected[expected.index(f"{agent}: 0\n")] = own[-1] if own else f"{agent}: 0\n"
    fought = [item for item in applied if item.path == name and item.marker.startswith("whose")]
    assert lines[1] in {item.marker for item in fought}
    # Each applied fight took away exactly what it says: old → marker is one chain from the first line to the last.
    follows = {item.old: item.marker for item in fought}
    assert len(follows) == len(fought)
    at, steps = SHARED.format("nobody 0"), 0
    while at in follows:
        at, steps = follows[at], steps + 1
    assert (at, steps) == (lines[1], len(fought))
    assert [*lines[:1], *lines[2:]] == [*expected[:1], *expected[2:]]


async def assert_conflicts_are_kept(daemon: RunningDaemon, conflicted: list[Done]) -> None:
    """Each is listed with the content it proposed, or was made moot by a later edit of the same agent."""
    listed: dict[str, tuple[str, str]] = {}
    for agent in AGENTS:
        async with daemon.client(agent) as files:
            waiting = await all_conflicts(files)
            listed |= {number: (info.path, info.proposed or "") for number, info in waiting.items()}
    superseded: set[str] = set()
    async with daemon.client() as person:
        cursor = None
        while True:
            page = await person.journal_query(kind="conflict_superseded", limit=200, cursor=cursor)
            superseded |= {f"@{entry.event['conflict']}" for entry in page.entries}
            cursor = page.cursor
            if cursor is None:
                break
    for edit in conflicted:
        assert edit.conflict is not None
        if edit.conflict in superseded:
            continue
        path, proposed = listed[edit.conflict]
        assert path == edit.path
        assert edit.marker in proposed.splitlines(keepends=True)


if __name__ == "__main__":
    asyncio.run(_agents(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]))
