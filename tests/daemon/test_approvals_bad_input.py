"""Answers to requests whose objects are gone, and two people who answer the same one."""

from __future__ import annotations

import hashlib

import anyio
import pytest

from orchestrator.clients.python import FileAccess, RemoteError
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.reviewer_servers import follow

pytestmark = pytest.mark.anyio


async def test_of_two_who_answer_one_wins_and_the_other_is_told_who(daemon: RunningDaemon) -> None:
    code = await daemon.make_approver()
    refused: list[RemoteError] = []
    done: list[str] = []

    async def answer(person: FileAccess, approval: str, say: str) -> None:
        try:
            if say == "yes":
                done.append((await person.approve(approval, approver=code, unseen=True)).status)
            else:
                done.append((await person.deny(approval, approver=code)).message)
        except RemoteError as error:
            refused.append(error)

    async with daemon.client("alice") as alice, daemon.client() as one, daemon.client() as other:
        asked = (await alice.write_file("Makefile", "all:\n", mode="create")).approval or ""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answer, one, asked, "yes")
            tasks.start_soon(answer, other, asked, "no")
        who = (await one.policy_explain("approve", "Makefile")).agent
        (error,) = refused
        assert len(done) == 1
        assert error.code == "approval_closed"
        assert f"{who} granted it" in error.message or f"{who} denied it" in error.message
        with pytest.raises(RemoteError) as again:
            await one.approve(asked, approver=code, unseen=True)
        assert who in again.value.message


async def test_what_is_to_be_deleted_is_gone_already(daemon: RunningDaemon) -> None:
    code = await daemon.make_approver()
    (daemon.workspace / "a.txt").write_text("a\n")
    (daemon.workspace / "b.txt").write_text("b\n")
    async with daemon.client("alice") as alice, daemon.client() as person:
        asked = (await alice.delete_file("a.txt")).approval or ""
        moving = (await alice.move_file("b.txt", "Makefile")).approval or ""
        for name in ("a.txt", "b.txt"):
            (daemon.workspace / name).unlink()
        gone = await person.approve(asked, approver=code, unseen=True)
        assert (gone.status, "a.txt is gone already" in gone.message) == ("dropped", True)
        assert not (await person.list_conflicts()).conflicts
        moved = await person.approve(moving, approver=code, unseen=True)
        assert (moved.status, "b.txt" in moved.message) == ("dropped", True)
        assert not (daemon.workspace / "Makefile").exists()


async def test_the_agent_that_asked_is_revoked(daemon: RunningDaemon) -> None:
    code = await daemon.make_approver()
    async with daemon.client("alice") as alice, daemon.client() as person:
        token = (await person.agent_add("eve", approver=code)).token
        async with daemon.client("eve", token=token) as eve:
            asked = (await eve.write_file("Makefile", "all:\n", mode="create")).approval or ""
        others = (await alice.write_file("GNUmakefile", "all:\n", mode="create")).approval
        await person.agent_revoke("eve", approver=code)
        assert [item.approval for item in (await person.approvals_list()).approvals] == [others]
        with pytest.raises(RemoteError) as late:
            await person.approve(asked, approver=code, unseen=True)
        assert late.value.code == "approval_closed"
        assert "eve was revoked after it had asked" in late.value.message
        (why,) = await follow(person, "approval_expired")
        assert (why["cause"], why["approval"]) == ("agent_revoked", int(asked[1:]))
    assert not (daemon.workspace / "Makefile").exists()


async def test_what_it_would_write_was_redacted(daemon: RunningDaemon) -> None:
    code = await daemon.make_approver()
    async with daemon.client("alice") as alice, daemon.client() as person:
        asked = (await alice.write_file("Makefile", "all:\n\techo secret\n", mode="create")).approval or ""
        digest = "sha256:" + hashlib.sha256(b"all:\n\techo secret\n").hexdigest()
        await person.journal_redact(blob=digest, approver=code)
        page = await person.approvals_show(asked)
        assert (page.shown_whole, page.unkept) == (False, ("Makefile",))
        assert "# the journal does not keep this content" in (page.diff or "")
        with pytest.raises(RemoteError) as unseen:
            await person.approve(asked, approver=code)
        assert unseen.value.code == "approval_unseen"
        late = await person.approve(asked, approver=code, unseen=True)
        assert late.status == "dropped"
