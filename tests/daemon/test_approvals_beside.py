"""Several requests for one file, and a reviewer's proposal that a person accepts: who asked, and who said yes."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.clients.python import FileAccess, Replacement
from tests.daemon.daemon_process import RunningDaemon
from tests.daemon.reviewer_servers import BOTH, answered, conflict, follow, reviewed, route

pytestmark = pytest.mark.anyio

TEXT = "".join(f"step {n}\n" for n in range(20))


async def edit(files: FileAccess, search: str, replace: str) -> str:
    await files.read_file("Makefile")
    answer = await files.edit_file("Makefile", [Replacement(search=search, replace=replace)])
    assert answer.approval is not None, answer
    return answer.approval


async def test_a_yes_to_one_has_the_others_asked_anew(daemon: RunningDaemon) -> None:
    (daemon.workspace / "Makefile").write_text(TEXT)
    code = await daemon.make_approver()
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        first = await edit(alice, "step 2\n", "step two\n")
        apart, same = await edit(bob, "step 15\n", "step fifteen\n"), await edit(bob, "step 2\n", "step zwei\n")
        listed = {item.approval: item.beside for item in (await person.approvals_list()).approvals}
        assert listed == {first: (apart, same), apart: (first, same), same: (first, apart)}
        assert (await person.approve(first, approver=code, unseen=True)).status == "applied"
        assert ((await person.approvals_show(first)).by or "").startswith("person:")
        (anew,) = (await person.approvals_list()).approvals
        assert (anew.agent, anew.beside) == ("bob", ())
        assert anew.approval not in (apart, same)
        assert (await bob.await_change(apart, timeout_s=0)).approval == anew.approval
        (other,) = (await person.list_conflicts()).conflicts  # nobody's change is lost
        assert (other.agent, (await bob.await_change(same, timeout_s=0)).conflict) == ("bob", other.conflict)
        assert (await person.approve(anew.approval, approver=code, unseen=True)).status == "applied"
    expected = TEXT.replace("step 2\n", "step two\n").replace("step 15\n", "step fifteen\n")
    assert (daemon.workspace / "Makefile").read_text() == expected


@pytest.mark.parametrize("verdict", ["content", "proposed"])
async def test_an_accepted_proposal_names_both(base: Path, verdict: str) -> None:
    says = BOTH if verdict == "content" else {"verdict": "proposed", "reason": "bob is right"}
    with reviewed(base, route("quick", accept="person"), {"quick": [says]}) as daemon:
        code = await daemon.make_approver()
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            number = await conflict(alice, bob)
            await follow(person, "review_answered")
            done = await person.resolve_conflict(number, "review", review=await answered(person), approver=code)
            assert done.status == "applied", done
            (accepted,) = await follow(person, "review_accepted")
            who = accepted["by"]
            assert who.startswith("person:")
            assert f"as a reviewer proposed and {who} accepted" in done.message
            newest = (await alice.file_history("a.txt")).versions[0]
            assert (newest.agent, newest.approver) == ("reviewer:quick", who)
            line = next(part for part in (await alice.blame("a.txt")).ranges if part.start <= 2 <= part.end)
            named = f"{line.agent} {line.approver}"
            assert "reviewer:quick" in named
            assert who in named
            applied = [event["provenance"] for event in await follow(person, "change_applied", 3)]
            assert [why["accepted_by"] for why in applied if "accepted_by" in why] == [who]
