"""Conflicts that real reviewers settle, through the real daemon: models over HTTP, programs, plugins."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import anyio
import pytest

from tests.daemon.backed import LINES, SHOWN, backed, kept, model, program
from tests.daemon.reviewer_servers import OPEN, PATIENCE_S, SETTLED, conflict, final, follow, overdue, route
from tests.extensions.packages import PLUGINS, put, put_shipped
from tests.review.conflicts import SECRET
from tests.review.reviewers import KEY
from tests.review.service import FORMS, Act, Form, edited, message, serving

pytestmark = pytest.mark.anyio


HUMAN = '[[reviewer]]\nname = "ada"\nkind = "human"\n'


async def test_a_person_in_the_chain_resolves_it_in_time(base: Path) -> None:
    with backed(base, HUMAN + route("ada")) as daemon:
        code = await daemon.make_approver()
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            number = await conflict(alice, bob)
            await follow(person, "review_requested")
            (info,) = (await person.list_conflicts()).conflicts
            assert (info.state, info.reviewer) == ("requested", "ada")
            resolved = await person.resolve_conflict(number, "proposed", approver=code)
            assert resolved.status == "applied"
            assert (await final(bob, number)).status == "applied"
            assert (daemon.workspace / "a.txt").read_text() == SETTLED.replace("alice and ", "")


async def test_a_person_who_does_not_come_is_not_waited_for(base: Path) -> None:
    with backed(base, HUMAN + program("clerk") + route("ada", "clerk")) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            number = await conflict(alice, bob)
            await follow(person, "review_requested")
            await overdue(daemon, alice)
            assert (await final(bob, number)).status == "applied"
            assert (await follow(person, "review_failed"))[0]["code"] == "reviewer_timeout"
            assert (daemon.workspace / "a.txt").read_text() == SETTLED


def memory(pid: int) -> Iterator[bytes]:
    """All that a process can read of its own memory, and its environment."""
    yield Path(f"/proc/{pid}/environ").read_bytes()
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            span, mode, *_, name = [*line.split(maxsplit=5), ""][:6]
            start, end = (int(part, 16) for part in span.split("-"))
            if "r" in mode and name not in ("[vvar]", "[vvar_vclock]", "[vsyscall]"):
                file.seek(start)
                yield file.read(end - start)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the memory of a process")
async def test_the_daemon_never_holds_the_key(base: Path) -> None:
    held = b"a text that the daemon does hold"
    with serving(message("openai", edited((1, [held.decode()])))) as service:
        with backed(base, route("quick") + model("quick", service.url, "openai")) as daemon:
            async with daemon.client("alice") as alice, daemon.client("bob") as bob:
                assert (await final(bob, await conflict(alice, bob))).status == "applied"
                assert daemon.process is not None
                pieces = list(memory(daemon.process.pid))
    assert service.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert any(held in piece for piece in pieces)
    assert not any(KEY.encode() in piece for piece in pieces)


@pytest.mark.parametrize("form", FORMS)
async def test_a_model_resolves_a_conflict(base: Path, form: Form) -> None:
    with serving(message(form, edited((1, LINES)))) as service:
        prices = ("--usd-per-mtok-input", "3", "--usd-per-mtok-output", "15")
        reviewers = model("quick", service.url, form, *prices, more="max_cost_usd = 1.0")
        with backed(base, route("quick") + reviewers) as daemon:
            async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
                number = await conflict(alice, bob)
                assert (await final(bob, number)).status == "applied"
                assert (daemon.workspace / "a.txt").read_text() == SETTLED
                (said,) = await follow(person, "review_answered")
                assert (said["usage"]["model"], said["usage"]["cost_microusd"]) == ("scripted-large-1", 3750)
                assert len(said["usage"]["prompt_hash"]) == 64
                assert (await person.journal_rebuild()).ok  # a replay asks nobody
        assert len(service.asked) == 1
        assert KEY.encode() not in kept(daemon)


FAILS: dict[str, tuple[Form, Act, str]] = {
    "rubbish": ("openai", message("openai", "no idea"), "review_reply_invalid"),
    "region": ("anthropic", message("anthropic", edited((1, LINES), (2, ["import evil"]))), "review_reply_invalid"),
    "path": ("openai", message("openai", {**edited((1, LINES)), "path": "b.txt"}), "review_reply_invalid"),
    "refuses": ("anthropic", Act(KEY.encode(), status=401), "reviewer_refused"),
    "hangs": ("openai", Act(hangs=True), "reviewer_timeout"),
}


@pytest.mark.soak
async def test_a_model_that_fails_hands_on_to_the_next(base: Path) -> None:
    with ExitStack() as stack:
        policy = route(*FAILS, "good")
        for name, (form, act, _) in {**FAILS, "good": ("openai", message("openai", edited((1, LINES))), "")}.items():
            url = stack.enter_context(serving(act)).url
            policy += model(name, url, form, more="timeout_s = 5" if name == "hangs" else "")
        daemon = stack.enter_context(backed(base, policy))
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            number = await conflict(alice, bob)
            assert (await final(bob, number)).status == "applied"
            failed = await follow(person, "review_failed", seen=len(FAILS))
            assert [event["code"] for event in failed] == [code for _, _, code in FAILS.values()]
            assert (daemon.workspace / "a.txt").read_text() == SETTLED
            assert sorted(path.name for path in daemon.workspace.iterdir()) == ["a.txt"]
    assert KEY.encode() not in kept(daemon)


async def test_a_secret_in_the_conflict_never_leaves_and_is_kept(base: Path) -> None:
    answer = edited((1, ["two = '[redacted:github-token#1]' # both"]))
    with serving(message("openai", answer)) as service:
        with backed(base, route("quick") + model("quick", service.url, "openai") + SHOWN) as daemon:
            async with daemon.client("alice") as alice, daemon.client("bob") as bob:
                await alice.write_file("a.txt", f"one\ntwo = '{SECRET}'\nthree\n", mode="create")
                await bob.read_file("a.txt")
                await alice.write_file("a.txt", f"one\ntwo = '{SECRET}' # alice\nthree\n", mode="truncate")
                late = await bob.write_file("a.txt", f"one\ntwo = '{SECRET}' # bob\nthree\n", mode="truncate")
                assert late.conflict is not None, late
                assert (await final(bob, late.conflict)).status == "applied"
                assert (daemon.workspace / "a.txt").read_text() == f"one\ntwo = '{SECRET}' # both\nthree\n"
    assert SECRET not in service.asked[0].text


async def test_a_program_resolves_a_conflict(base: Path) -> None:
    with backed(base, route("script") + program("script")) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob:
            assert (await final(bob, await conflict(alice, bob))).status == "applied"
            assert (daemon.workspace / "a.txt").read_text() == SETTLED


async def test_a_failure_carries_what_it_took_and_what_it_was_asked(base: Path) -> None:
    spent = {"model": "large-1", "input_tokens": 900, "output_tokens": 40}
    bad = json.dumps({"verdict": "no such word", "usage": spent})
    with backed(
        base, route("bad", "silent") + program("bad", bad) + program("silent", "") + 'model = "named"\n'
    ) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            await conflict(alice, bob)
            told, silent = await follow(person, "review_failed", seen=2)
            requests = await follow(person, "review_requested", seen=2)
    assert told["code"] == "review_reply_invalid"
    used = told["usage"]
    assert (used["model"], used["input_tokens"], used["output_tokens"]) == ("large-1", 1800, 80)  # asked once more
    assert len(used["prompt_hash"]) == len(silent["usage"]["prompt_hash"]) == 64
    assert silent["usage"]["model"] == "named"
    asked = [request["asked"] for request in requests]
    assert [said["prompt_hash"] for said in asked] == [used["prompt_hash"], silent["usage"]["prompt_hash"]]
    assert [said.get("model") for said in asked] == [None, "named"]


async def test_the_shipped_plugins_resolve_additions_and_log_changes(base: Path) -> None:
    put_shipped(base / "site", "change_log")
    put(base / "site", "broken", "raise ValueError('not today')")
    argv = [sys.executable, "-I", str(PLUGINS / "union_reviewer" / "union_reviewer.py")]
    policy = (
        route("union")
        + f'[[reviewer]]\nname = "union"\nkind = "program"\nargv = {json.dumps(argv)}\n'
        + '[plugins]\nenabled = ["change_log", "broken"]\n'
    )
    with backed(base, policy) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            notes = "\n".join((await person.status()).health.notes)
            assert "plugin change_log: loaded" in notes
            assert "plugin broken: failed, ValueError: not today" in notes
            await alice.write_file("a.txt", "one\n", mode="create")
            await bob.read_file("a.txt")
            await alice.write_file("a.txt", "one\nalice\n", mode="truncate")
            late = await bob.write_file("a.txt", "one\nbob\n", mode="truncate")
            assert late.conflict is not None, late
            assert (await final(bob, late.conflict)).status == "applied"
            assert (daemon.workspace / "a.txt").read_text() == "one\nalice\nbob\n"
            log = base / "changes.jsonl"
            with anyio.fail_after(PATIENCE_S):
                while not log.exists() or len(log.read_bytes().splitlines()) < 3:
                    await anyio.lowlevel.checkpoint()
            lines = [json.loads(line) for line in log.read_bytes().splitlines()]
            assert [(line["agent"], line["operation"]) for line in lines[:2]] == [("alice", "write_file")] * 2
            assert lines[2]["agent"] == "reviewer:union"
            assert (log.stat().st_mode & 0o777) == 0o600


async def test_a_reloaded_policy_brings_its_reviewers(base: Path) -> None:
    with serving(message("openai", edited((1, LINES)))) as service, backed(base, "") as daemon:
        code = await daemon.make_approver()
        policy = (
            OPEN + route("quick") + model("quick", service.url, "openai").replace(', "--api-key-env", "REVIEW_KEY"', "")
        )
        (daemon.state_dir / "policy.toml").write_text(policy, encoding="utf-8")
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            await person.policy_reload(approver=code)
            assert (await final(bob, await conflict(alice, bob))).status == "applied"
