"""A daemon whose policy routes conflicts to scripted reviewers, and a conflict for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec

from orchestrator.api.conflicts import ConflictInfo
from orchestrator.api.results import ChangeAnswer
from orchestrator.clients.python import FileAccess, Replacement
from tests.daemon.clocked import passes
from tests.daemon.daemon_process import RunningDaemon

PATIENCE_S = 30.0
ENOUGH_S = 240.0
"""For a whole chain of reviewers, each a program that takes seconds to start on a busy machine."""
LONG_S = 3600
"""The deadline of every review: longer than any machine is slow. `overdue` puts the clock past it."""
OPEN = 'name = "open"\ndefault = "allow"\n'


def route(*reviewers: str, accept: str = "auto") -> str:
    named = ", ".join(f'"{name}"' for name in reviewers)
    return f'[[route]]\nreviewers = [{named}]\naccept = "{accept}"\ndeadline_s = {LONG_S}\n'


class Reviewed(RunningDaemon):
    """A daemon whose reviewers are scripted."""

    def __init__(self, base: Path) -> None:
        self.script = base / "script.json"
        super().__init__(base, module=("-m", "tests.daemon.reviewed", str(self.script)))

    def write(self, policy: str, script: dict[str, list[dict[str, Any]]]) -> None:
        (self.state_dir / "policy.toml").write_text(OPEN + policy)
        self.script.write_bytes(msgspec.json.encode(script))

    def asked(self) -> list[dict[str, Any]]:
        place = self.script.with_suffix(".asked")
        return [msgspec.json.decode(line) for line in place.read_bytes().splitlines()] if place.exists() else []


@contextmanager
def reviewed(base: Path, policy: str, script: dict[str, list[dict[str, Any]]]) -> Iterator[Reviewed]:
    daemon = Reviewed(base)
    daemon.write(policy, script)
    daemon.start()
    try:
        yield daemon
    finally:
        assert daemon.stop() == 0, daemon.log[-4000:]
        assert '"level": "error"' not in daemon.log, daemon.log[-4000:]
        assert "Traceback" not in daemon.log, daemon.log[-4000:]


START = "one\ntwo\nthree\nfour\nfive\nsix\n"


async def conflict(alice: FileAccess, bob: FileAccess, path: str = "a.txt") -> str:
    """Alice and bob change the same line; bob's change waits."""
    await alice.write_file(path, START, mode="create")
    await bob.read_file(path)
    await alice.edit_file(path, [Replacement(search="two", replace="two, alice")], reason="alice's reason")
    late = await bob.edit_file(path, [Replacement(search="two", replace="two, bob")], reason="bob's reason")
    assert late.status == "conflict", late
    assert late.conflict is not None
    return late.conflict


async def follow(person: FileAccess, kind: str, seen: int = 1) -> list[dict[str, Any]]:
    """The events of a kind, once there are that many."""
    found: list[dict[str, Any]] = []
    with anyio.fail_after(ENOUGH_S):
        async with person.subscribe(after="@0", kinds=(kind,)) as feed:
            async for event in feed:
                found.append(event.event)
                if len(found) >= seen:
                    return found
    raise AssertionError


async def overdue(daemon: RunningDaemon, alice: FileAccess) -> None:
    """Whoever was asked by now is late."""
    passes(daemon.base, LONG_S)
    assert (await alice.write_file("later.txt", "later\n", mode="create")).status == "applied"


async def one(person: FileAccess) -> ConflictInfo:
    (info,) = (await person.list_conflicts()).conflicts
    return info


async def answered(person: FileAccess) -> str:
    """The name of the review whose proposal is shown."""
    info = await one(person)
    assert info.state == "answered", info
    return info.reviews[-1].review


async def final(bob: FileAccess, conflict: str) -> ChangeAnswer:
    with anyio.fail_after(ENOUGH_S):
        while (answer := await bob.await_change(conflict, timeout_s=PATIENCE_S)).status == "still_waiting":
            pass
    return answer


BOTH = {"verdict": "content", "lines": {"1": ["two, alice and bob"]}, "reason": "both are needed"}
SETTLED = START.replace("two", "two, alice and bob")
