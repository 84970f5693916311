"""The main job, end to end: two agents on one file, through the real daemon."""

from __future__ import annotations

import pytest

from orchestrator.clients.python import RemoteError, Replacement
from tests.daemon.daemon_process import RunningDaemon

pytestmark = pytest.mark.anyio

LINES = "".join(f"line {n}\n" for n in range(1, 31))


async def test_two_agents_on_one_file(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice, daemon.client("bob") as bob:
        await alice.write_file("notes.txt", LINES, mode="create")
        await alice.read_file("notes.txt")
        seen = await bob.read_file("notes.txt")

        first = await alice.edit_file("notes.txt", [Replacement(search="line 3\n", replace="line 3, alice\nmore\n")])
        assert (first.status, first.rung) == ("applied", "current")

        second = await bob.edit_file("notes.txt", [Replacement(search="line 20", replace="line 20, bob")])
        assert (second.status, second.rung, second.base) == ("applied", "shifted", seen.version_id)

        third = await bob.edit_file(
            "notes.txt", [Replacement(search="line 3\n", replace="line three\n")], base=seen.version_id
        )
        assert third.status == "conflict"
        assert third.shown is not None
        assert "line 3, alice" in third.shown

        expected = LINES.replace("line 3\n", "line 3, alice\nmore\n").replace("line 20", "line 20, bob")
        assert (daemon.workspace / "notes.txt").read_text() == expected

        back = await alice.revert(first.change or "")
        assert back.status == "applied"
        assert (daemon.workspace / "notes.txt").read_text() == LINES.replace("line 20", "line 20, bob")


async def test_a_protected_file_waits_for_a_person(daemon: RunningDaemon) -> None:
    code = await daemon.make_approver()
    async with daemon.client("bob") as bob, daemon.client() as person:
        waiting = await bob.write_file("Makefile", "all:\n", mode="create")
        assert waiting.status == "waiting"
        assert not (daemon.workspace / "Makefile").exists()

        with pytest.raises(RemoteError) as refused:
            await person.approve(waiting.approval or "", approver="aaaaa-aaaaa-aaaaa-aaaaa-aaaaa")
        assert refused.value.code == "approver_code_needed"

        granted = await person.approve(waiting.approval or "", approver=code, unseen=True)
        assert granted.status == "applied"
        assert (daemon.workspace / "Makefile").read_text() == "all:\n"
        assert (await bob.await_change(waiting.approval or "")).status == "applied"

        with pytest.raises(RemoteError) as again:
            await person.approve(waiting.approval or "", approver=code, unseen=True)
        assert again.value.code == "approval_closed"


async def test_records_agree_after_all(daemon: RunningDaemon) -> None:
    async with daemon.client("alice") as alice, daemon.client() as person:
        await alice.write_file("a/b/c.txt", "one\n", mode="create")
        await alice.edit_file("a/b/c.txt", [Replacement(search="one", replace="two")])
        assert (await person.journal_verify()).ok
        rebuilt = await person.journal_rebuild()
        assert rebuilt.ok, rebuilt.first_difference
        assert (await person.workspace_check()).ok
