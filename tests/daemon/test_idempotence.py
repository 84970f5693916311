"""The same request again gets the first answer and does nothing twice; after a crash too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from orchestrator.api.history import RollbackAnswer
from orchestrator.api.operations import OPERATIONS
from orchestrator.api.results import ChangeAnswer, Result
from orchestrator.clients.python import FileAccess, RemoteError, Replacement
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

TEXT = "".join(f"line {n}\n" for n in range(1, 21))
PATCH = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-line 1\n+line one\n line 2\n"

Given = Callable[[RunningDaemon, FileAccess, FileAccess], Awaitable[dict[str, Any]]]


async def reading(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> dict[str, Any]:
    await alice.read_file("a.txt")
    return {}


async def nothing(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> dict[str, Any]:
    return {}


async def a_change(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> dict[str, Any]:
    await alice.read_file("a.txt")
    made = await alice.edit_file("a.txt", [Replacement(search="line 3\n", replace="three\n")])
    return {"change": made.change}


async def changes_of_one_task(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> dict[str, Any]:
    task = await alice.begin_task("to be undone")
    await a_change(daemon, alice, bob)
    return {"task": task.task}


async def a_task(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> dict[str, Any]:
    return {"task": (await alice.begin_task("sweep")).task}


async def a_lease(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> dict[str, Any]:
    return {"lease": (await alice.reserve_paths(["docs/**"])).lease}


async def a_conflict(daemon: RunningDaemon, alice: FileAccess, bob: FileAccess) -> dict[str, Any]:
    seen = await alice.read_file("a.txt")
    await bob.read_file("a.txt")
    await bob.edit_file("a.txt", [Replacement(search="line 5\n", replace="five\n")])
    lost = await alice.edit_file("a.txt", [Replacement(search="line 5\n", replace="FIVE\n")], base=seen.version_id)
    assert lost.status == "conflict", lost
    return {"conflict": lost.conflict}


OPEN = """
name = "open"
default = "allow"

[[rule]]
name = "runs"
agents = ["*"]
actions = ["run"]
paths = ["**"]
commands = ["true", "false"]
verdict = "allow"
"""

WRITES: dict[str, tuple[Given, dict[str, Any], dict[str, Any]]] = {
    "edit_file": (
        reading,
        {"path": "a.txt", "changes": [Replacement(search="line 1\n", replace="one\n")]},
        {"reason": "another"},
    ),
    "apply_patch": (reading, {"patch": PATCH}, {"reason": "another"}),
    "write_file": (nothing, {"path": "a.txt", "content": "more\n", "mode": "append"}, {"content": "else\n"}),
    "move_file": (reading, {"source": "a.txt", "destination": "b.txt"}, {"destination": "c.txt"}),
    "delete_file": (reading, {"path": "a.txt"}, {"reason": "another"}),
    "create_directory": (nothing, {"path": "new"}, {"path": "newer"}),
    "revert": (a_change, {}, {"reason": "another"}),
    "rollback": (changes_of_one_task, {}, {"reason": "another"}),
    "begin_task": (nothing, {"title": "sweep"}, {"title": "mop"}),
    "tag_file": (nothing, {"path": "a.txt", "tags": ["mine"]}, {"tags": ["yours"]}),
    "end_task": (a_task, {"outcome": "done"}, {"outcome": "left"}),
    "reserve_paths": (nothing, {"globs": ["src/**"]}, {"ttl_s": 60}),
    "release_paths": (a_lease, {}, {"lease": "@1"}),
    "run_command": (nothing, {"argv": ["true"]}, {"argv": ["false"]}),
    "resolve_conflict": (a_conflict, {"choice": "current"}, {"choice": "proposed"}),
}


ENDED_ONCE = {"stop_command", "close_worktree"}
"""What has ended does not end again: the second call has the answer of the first without an id."""


def test_every_write_that_is_not_a_persons_alone_takes_a_request_id() -> None:
    writes = {operation.name for operation in OPERATIONS if operation.writes and not operation.operator_only}
    writes -= ENDED_ONCE
    assert writes == WRITES.keys()
    taking = {op.name for op in OPERATIONS if "request_id" in op.struct.__struct_fields__}
    assert writes <= taking


@pytest.mark.parametrize("name", [*WRITES, "resolve_conflict with a change"])
async def test_the_same_again_is_the_first_answer(daemon: RunningDaemon, name: str) -> None:
    given, params, otherwise = WRITES[name.split(maxsplit=1)[0]]
    if "with" in name:
        params = {"choice": "proposed"}
        otherwise = {"choice": "current"}
    (daemon.workspace / "a.txt").write_text(TEXT)
    (daemon.state_dir / "policy.toml").write_text(OPEN)
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        approver = await daemon.make_approver()
        await person.policy_reload(approver=approver)
        params = {**await given(daemon, alice, bob), **params}
        resolves = name.startswith("resolve_conflict")
        if resolves:
            params["approver"] = approver
        caller = person if resolves else alice
        call = getattr(caller, name.split(maxsplit=1)[0])
        first = await call(**params, request_id="r-1")
        files = _names(daemon), _text(daemon)
        assert _reported(await call(**params, request_id="r-1")) == _reported(first)
        with pytest.raises(RemoteError) as refused:
            await call(**{**params, **otherwise}, request_id="r-1")
        assert refused.value.code == "request_id_reused"
    daemon.kill()
    daemon.start()
    async with daemon.client(None if resolves else "alice") as caller:
        again = await getattr(caller, name.split(maxsplit=1)[0])(**params, request_id="r-1")
        assert _reported(again) == _reported(first)
    assert (_names(daemon), _text(daemon)) == files


async def test_a_repeated_refusal_has_its_details_and_the_journal_no_line_of_the_file(daemon: RunningDaemon) -> None:
    (daemon.workspace / "a.txt").write_text("def a():\n    value = compute(one, two)\n    return value\n")
    change = Replacement(search="    value = compute(uno, dos, three)\n", replace="x")
    said: list[RemoteError] = []
    async with daemon.client("alice") as alice, daemon.client() as person:
        await alice.read_file("a.txt")
        for request in ("rr", "rr", "new"):
            with pytest.raises(RemoteError) as refused:
                await alice.edit_file("a.txt", [change], request_id=request)
            said.append(refused.value)
        first, again, new = said
        assert (again.code, again.details) == (first.code, first.details) != (first.code, {})
        assert first.shown is not None
        assert again.shown is None
        assert "new request_id" in (again.hint or "")
        assert new.shown == first.shown
        page = await person.journal_query(kind="change_refused", agent="alice")
        assert "compute(one, two)" not in repr([entry.event for entry in page.entries])


def _text(daemon: RunningDaemon) -> str | None:
    file = daemon.workspace / "a.txt"
    return file.read_text() if file.exists() else None


def _names(daemon: RunningDaemon) -> list[str]:
    """Without what a change swapped out, which goes a moment later."""
    return sorted(path.name for path in daemon.workspace.iterdir() if not path.name.startswith(".orchestrator-"))


def _reported(answer: Result) -> dict[str, Any]:
    """All of it; of a rollback what every change answers: its files' own diffs are in no event."""
    reported: dict[str, Any] = msgspec.to_builtins(answer)
    if isinstance(answer, RollbackAnswer):
        return {name: reported[name] for name in ChangeAnswer.__struct_fields__ if name in reported}
    return reported
