"""Conflicts that go to reviewers, through the real daemon."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from orchestrator.clients.python import RemoteError, Replacement
from tests.daemon.reviewer_servers import (
    BOTH,
    SETTLED,
    START,
    Reviewed,
    answered,
    conflict,
    final,
    follow,
    one,
    overdue,
    reviewed,
    route,
)

pytestmark = pytest.mark.anyio


async def test_a_proposal_is_applied_as_the_reviewers_change(base: Path) -> None:
    with reviewed(base, route("quick"), {"quick": [BOTH]}) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            number = await conflict(alice, bob)
            assert (await final(bob, number)).status == "applied"
            assert (daemon.workspace / "a.txt").read_text() == SETTLED
            blamed = (await person.blame("a.txt", start=2, end=2)).ranges[0]
            assert (blamed.agent, blamed.approver) == ("reviewer:quick", None)
            (said,) = await follow(person, "review_answered")
            assert (said["verdict"], said["usage"]["model"], said["usage"]["input_tokens"]) == (
                "content",
                "scripted-1",
                9,
            )
            (asked,) = daemon.asked()
            (region,) = asked["regions"]
            assert (region["base"], region["current"], region["proposed"]) == (["two"], ["two, alice"], ["two, bob"])
            assert (asked["proposer"]["agent"], asked["proposer"]["reason"]) == ("bob", "bob's reason")
            assert [(h["agent"], h["reason"]) for h in asked["holders"]] == [("alice", "alice's reason")]
            assert (await person.journal_rebuild()).ok


async def test_a_person_accepts_what_a_reviewer_proposes(base: Path) -> None:
    with reviewed(base, route("quick", accept="person"), {"quick": [BOTH]}) as daemon:
        code = await daemon.make_approver()
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            number = await conflict(alice, bob)
            await follow(person, "review_answered")
            info = await one(person)
            assert (info.state, info.reviewer, info.route) == ("answered", "quick", "route 1")
            assert "+two, alice and bob" in (info.review_diff or "")
            resolved = await person.resolve_conflict(number, "review", review=await answered(person), approver=code)
            assert resolved.status == "applied"
            assert (daemon.workspace / "a.txt").read_text() == SETTLED
            blamed = (await person.blame("a.txt", start=2, end=2)).ranges[0]
            assert blamed.agent == "reviewer:quick"
            assert (blamed.approver or "").startswith("person:")


@pytest.mark.parametrize(
    ("first", "why"),
    [
        pytest.param({"verdict": "reject", "reason": "not mine to say"}, None, id="rejects"),
        pytest.param({"fails": "no such model"}, "review_failed", id="fails"),
        pytest.param({"verdict": "content", "lines": {"2": ["x"]}}, "review_reply_invalid", id="another region"),
        pytest.param({"verdict": "content"}, "review_reply_invalid", id="nothing"),
        pytest.param({"verdict": "content", "lines": {"1": ["a\nb"]}}, "review_reply_invalid", id="a line end"),
        pytest.param({"verdict": "content", "lines": {"1": ["<<<<<<< mine"]}}, "markers_left", id="a marker"),
        pytest.param({"hangs": True}, "reviewer_timeout", id="too late"),
    ],
)
async def test_a_reviewer_that_comes_to_nothing_hands_on(base: Path, first: dict[str, Any], why: str | None) -> None:
    with reviewed(base, route("quick", "careful"), {"quick": [first], "careful": [BOTH]}) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            number = await conflict(alice, bob)
            if first.get("hangs"):
                await follow(person, "review_requested")
                await overdue(daemon, alice)
            assert (await final(bob, number)).status == "applied"
            assert (daemon.workspace / "a.txt").read_text() == SETTLED
            assert [item["reviewer"] for item in daemon.asked()] == ["quick", "careful"]
            if why is not None:
                assert (await follow(person, "review_failed"))[0]["code"] == why
            else:
                assert (await follow(person, "review_rejected"))[0]["by"] == "quick"


async def test_after_the_chain_a_person_resolves_it_and_other_files_go_on(base: Path) -> None:
    with reviewed(base, route("nobody", "quick"), {"quick": [{"verdict": "reject"}]}) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            await conflict(alice, bob)
            await follow(person, "review_rejected")
            info = await one(person)
            assert info.state == "found"
            assert [(item.reviewer, item.state, item.code) for item in info.reviews] == [
                ("nobody", "failed", "unknown_reviewer"),
                ("quick", "rejected", ""),
            ]
            assert (await bob.write_file("b.txt", "x\n", mode="create")).status == "applied"


async def test_a_late_answer_is_noted_and_ignored(base: Path) -> None:
    pipe = base / "late"
    os.mkfifo(pipe)
    late = {"verdict": "proposed", "after": str(pipe)}
    with reviewed(base, route("slow", "quick"), {"slow": [late], "quick": [BOTH]}) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            number = await conflict(alice, bob)
            await follow(person, "review_requested")
            await overdue(daemon, alice)
            assert (await follow(person, "review_failed"))[0]["code"] == "reviewer_timeout"
            await to_thread.run_sync(pipe.write_bytes, b"now")
            assert (await final(bob, number)).status == "applied"
            answers = await follow(person, "review_answered", 2)
            assert {(item["reviewer"], bool(item.get("ignored"))) for item in answers} == {
                ("slow", True),
                ("quick", False),
            }
            assert (daemon.workspace / "a.txt").read_text() == SETTLED


# --- files that move on -----------------------------------------------------------------------


async def test_a_newer_change_elsewhere_keeps_the_review(base: Path) -> None:
    pipe = base / "go"
    os.mkfifo(pipe)
    with reviewed(base, route("quick"), {"quick": [{**BOTH, "after": str(pipe)}]}) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            number = await conflict(alice, bob)
            await alice.edit_file("a.txt", [Replacement(search="one", replace="zero\none")])
            await follow(person, "conflict_rebased")
            info = await one(person)
            assert info.regions[0].current[0] == 3
            await to_thread.run_sync(pipe.write_bytes, b"now")
            assert (await final(bob, number)).status == "applied"
            assert (daemon.workspace / "a.txt").read_text() == "zero\n" + SETTLED
            assert len(daemon.asked()) == 1


async def test_a_newer_change_of_the_same_lines_asks_anew(base: Path) -> None:
    acts: list[dict[str, Any]] = [{"hangs": True}, BOTH]
    with reviewed(base, route("quick"), {"quick": acts}) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            number = await conflict(alice, bob)
            await follow(person, "review_requested")
            await alice.edit_file("a.txt", [Replacement(search="two, alice", replace="two, alice again")])
            assert (await final(bob, number)).status == "applied"
            assert (await follow(person, "review_failed"))[0]["code"] == "conflict_moved"
            assert [item["regions"][0]["current"] for item in daemon.asked()] == [["two, alice"], ["two, alice again"]]


async def test_what_conflicted_by_no_line_does_not_fit_because_lines_go_together(base: Path) -> None:
    """Together they do not parse; that the file moves on elsewhere changes nothing of that."""
    numbers = "x = [\n" + "".join(f"    {n},\n" for n in range(1, 31)) + "]\n"
    with reviewed(base, "", {}) as daemon:
        (daemon.workspace / "n.py").write_text(numbers)
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            seen = await bob.read_file("n.py")
            await alice.read_file("n.py")
            rounds = [Replacement(search=" 1,", replace=" (1,"), Replacement(search=" 7,", replace=" 7),")]
            assert (await alice.edit_file("n.py", rounds)).status == "applied"
            squares = [Replacement(search=" 4,", replace=" [4,"), Replacement(search=" 10,", replace=" 10],")]
            met = await bob.edit_file("n.py", squares, base=seen.version_id)
            assert met.status == "conflict"
            await alice.edit_file("n.py", [Replacement(search=" 25,", replace=" 26,")])
            (moved,) = await follow(person, "conflict_rebased")
            assert (moved.get("fits", False), len(moved["sides"].get("regions", ()))) == (False, 1)
            assert (await one(person)).conflict == met.conflict
            assert "[4," not in (daemon.workspace / "n.py").read_text()


async def test_a_change_that_fits_again_is_reported(base: Path) -> None:
    with reviewed(base, "", {}) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            await conflict(alice, bob)
            await alice.edit_file("a.txt", [Replacement(search="two, alice", replace="two")])
            await follow(person, "conflict_rebased")
            assert (await one(person)).fits
            assert (daemon.workspace / "a.txt").read_text() == START


async def test_a_conflict_is_expired_when_the_file_holds_what_was_proposed(base: Path) -> None:
    with reviewed(base, "", {}) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            number = await conflict(alice, bob)
            await alice.edit_file("a.txt", [Replacement(search="two, alice", replace="two, bob")])
            assert (await final(bob, number)).status == "dropped"
            assert (await follow(person, "conflict_expired"))[0]["cause"] == "already_applied"


async def test_nobody_resolved_it_in_time(base: Path) -> None:
    with reviewed(base, "[conflicts]\nexpire_after_s = 1\n", {}) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob:
            number = await conflict(alice, bob)
            answer = await final(bob, number)
            assert (answer.status, "in time" in answer.message) == ("dropped", True)


async def test_a_restart_asks_once_more(base: Path) -> None:
    daemon = Reviewed(base)
    daemon.write(route("quick"), {"quick": [{"hangs": True}]})
    daemon.start()
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        number = await conflict(alice, bob)
        await follow(person, "review_requested")
    daemon.kill()
    daemon.write(route("quick"), {"quick": [BOTH]})
    daemon.start()
    async with daemon.client("bob") as bob, daemon.client() as person:
        assert (await final(bob, number)).status == "applied"
        failed = (await follow(person, "review_failed"))[0]
        assert (failed["code"], "asked once more" in failed["hint"]) == ("daemon_restarted", True)
        assert [item["reviewer"] for item in await follow(person, "review_requested", 2)] == ["quick", "quick"]
        assert (await person.journal_rebuild()).ok
    assert daemon.stop() == 0


@pytest.mark.parametrize("accept", ["auto", "person"])
async def test_an_answer_outlives_the_daemon_that_took_it(base: Path, accept: str) -> None:
    """Killed between answer and acceptance, it asks nobody again."""
    daemon = Reviewed(base)
    daemon.write(route("quick", accept="person"), {"quick": [BOTH]})
    daemon.start()
    code = await daemon.make_approver()
    async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
        number = await conflict(alice, bob)
        await follow(person, "review_answered")
    daemon.kill()
    daemon.write(route("quick", accept=accept), {"quick": [{"fails": "asked again"}]})
    daemon.start()
    async with daemon.client("bob") as bob, daemon.client() as person:
        if accept == "person":
            assert (await one(person)).state == "answered"
            assert (
                await person.resolve_conflict(number, "review", review=await answered(person), approver=code)
            ).status == "applied"
        assert (await final(bob, number)).status == "applied"
        assert (daemon.workspace / "a.txt").read_text() == SETTLED
        assert len(await follow(person, "review_requested")) == 1
        assert (await person.journal_rebuild()).ok
    assert len(daemon.asked()) == 1
    assert daemon.stop() == 0


# --- checks -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "says"),
    [
        pytest.param('["grep", "-q", "and bob", "a.txt"]', None, id="passes"),
        pytest.param('["grep", "-q", "other", "src/other.txt"]', None, id="sees the tree"),
        pytest.param('["sh", "-c", "test -e src/other.txt && test ! -e hidden.txt"]', None, id="sees no secret"),
        pytest.param('["sh", "-c", "echo too bad; exit 3"]', "too bad", id="exit code"),
        pytest.param('["sh", "-c", "sleep 600 & sleep 600"]', "not done in 1 s", id="too slow"),
        pytest.param('["/no/such/program"]', "can't be started", id="no program"),
        pytest.param('["sh", "-c", "yes | head -c 9000000; exit 1"]', "exit code 1", id="says much"),
    ],
)
async def test_the_check_command_decides(base: Path, command: str, says: str | None) -> None:
    timeout_s = 1 if says and "not done" in says else 600
    policy = route("quick") + f"[checks]\ncommand = {command}\ntimeout_s = {timeout_s}\n"
    hidden = '[[rule]]\nname = "h"\nagents = ["*"]\nactions = ["read"]\npaths = ["hidden.txt"]\n'
    hidden += 'verdict = "deny"\nreason = "secret"\n'
    with reviewed(base, hidden + policy, {"quick": [BOTH]}) as daemon:
        (daemon.workspace / "src").mkdir()
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            await alice.write_file("src/other.txt", "other\n", mode="create")
            await alice.write_file("hidden.txt", "secret\n", mode="create")
            number = await conflict(alice, bob)
            if says is None:
                assert (await final(bob, number)).status == "applied"
                return
            (failed,) = await follow(person, "review_failed")
            assert failed["code"] == "check_failed"
            assert says in failed["message"]
            assert (daemon.workspace / "a.txt").read_text() == START.replace("two", "two, alice")
            assert list((daemon.state_dir / "checks").iterdir()) == []


# --- who may see and say what -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "refused"),
    [
        pytest.param(SETTLED, None, id="its region"),
        pytest.param(SETTLED.replace("six", "SIX"), "outside_regions", id="another line"),
        pytest.param(SETTLED.replace("four\n", ""), "outside_regions", id="a line less"),
        pytest.param("", "outside_regions", id="everything"),
    ],
)
async def test_a_reviewer_that_calls_by_itself_is_held_to_the_regions(
    base: Path, content: str, refused: str | None
) -> None:
    with reviewed(base, "", {}) as daemon:
        code = await daemon.make_approver()
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            number = await conflict(alice, bob)
            token = (await person.agent_add("rev", agent_class="review", approver=code)).token
            seen = (await one(person)).current_version
            async with daemon.client("rev", token=token) as rev:
                if refused is None:
                    assert (await rev.resolve_conflict(number, "content", content=content, on=seen)).status == "applied"
                    assert (daemon.workspace / "a.txt").read_text() == SETTLED
                    return
                with pytest.raises(RemoteError) as error:
                    await rev.resolve_conflict(number, "content", content=content, on=seen)
                assert (error.value.code, error.value.details["why"]) == ("proposal_refused", refused)
            assert (daemon.workspace / "a.txt").read_text() == START.replace("two", "two, alice")


async def test_a_file_that_reviewers_may_not_read_is_not_sent(base: Path) -> None:
    hidden = (
        '[[rule]]\nname = "hide"\nagents = ["class:review"]\nactions = ["read"]\npaths = ["a.txt"]\nverdict = "deny"\n'
    )
    with reviewed(base, hidden + route("quick"), {"quick": [BOTH]}) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            await conflict(alice, bob)
            assert (await follow(person, "review_failed"))[0]["code"] == "denied"
            assert daemon.asked() == []


async def test_a_path_that_asks_for_its_agent_is_accepted_by_a_person(base: Path) -> None:
    asks = '[[rule]]\nname = "look"\nagents = ["bob"]\nactions = ["write"]\npaths = ["a.txt"]\nverdict = "ask"\n'
    with reviewed(base, asks + route("quick"), {"quick": [BOTH]}) as daemon:
        code = await daemon.make_approver()
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            number = await conflict(alice, bob)
            await follow(person, "review_answered")
            assert (await one(person)).state == "answered"
            assert (daemon.workspace / "a.txt").read_text() == START.replace("two", "two, alice")
            resolved = await person.resolve_conflict(
                number, "review", review=await answered(person), reason="it keeps both", approver=code
            )
            assert resolved.status == "applied"
            accepted = [(item["by"].split(":")[0], item["reason"]) for item in await follow(person, "review_accepted")]
            assert accepted == [("person", "it keeps both")]
