"""Services and plugins that would end the daemon, spoil its journal, spend without end, or give its key away."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.daemon.backed import LINES, backed, kept, model, program
from tests.daemon.reviewer_servers import BOTH, PATIENCE_S, SETTLED, Reviewed, conflict, final, follow, one, route
from tests.extensions.packages import put
from tests.review.reviewers import KEY
from tests.review.service import FORMS, Act, Form, edited, message, serving

pytestmark = pytest.mark.anyio

GOOD = edited((1, LINES))


def altered(form: Form, answer: object, **changes: Any) -> Act:
    """A message with other values at its top; None takes one out."""
    body = {**json.loads(message(form, answer).body), **changes}
    return Act(json.dumps({name: value for name, value in body.items() if value is not None}).encode())


def usage(form: Form, count: object) -> dict[str, Any]:
    named = ("input_tokens", "output_tokens") if form == "anthropic" else ("prompt_tokens", "completion_tokens")
    return dict.fromkeys(named, count)


FAR_OFF = {"retry-after": "Mon, 01 Jan 99999999999 00:00:00 GMT"}
HUGE = 10**400
BAD: dict[str, tuple[Callable[[Form], Act], str]] = {
    "far": (lambda form: Act(status=429, headers=FAR_OFF), "reviewer_busy"),
    "counts": (lambda form: altered(form, GOOD, usage=usage(form, HUGE)), "review_reply_invalid"),
    "more": (lambda form: altered(form, GOOD, usage=usage(form, 2**63 - 1)), "review_reply_invalid"),
    "less": (lambda form: altered(form, GOOD, usage=usage(form, -5)), "review_reply_invalid"),
    "region": (lambda form: message(form, edited((HUGE, ["x"]))), "review_reply_invalid"),
    "digits": (lambda form: message(form, {**GOOD, "n": HUGE}), "review_reply_invalid"),
    "deep": (lambda form: message(form, '{"a":' * 50_000), "review_reply_invalid"),
}


@pytest.mark.soak
async def test_a_service_that_says_what_overflows_hands_on_to_the_next(base: Path) -> None:
    """By the quicker one of the two programs to start; tests/review has both forms."""
    with ExitStack() as stack:
        urls = {name: stack.enter_context(serving(act("openai"))).url for name, (act, _) in BAD.items()}
        policy = route(*BAD, "clerk") + "".join(model(name, url, "openai") for name, url in urls.items())
        with backed(base, policy + program("clerk")) as daemon:
            async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
                number = await conflict(alice, bob)
                assert (await final(bob, number)).status == "applied"
                failed = await follow(person, "review_failed", seen=len(BAD))
                assert [event["code"] for event in failed] == [code for _, code in BAD.values()]
                assert (daemon.workspace / "a.txt").read_text() == SETTLED


# --- the fence around the queue -----------------------------------------------------------


async def test_an_error_that_nobody_foresaw_costs_one_review(base: Path) -> None:
    daemon = Reviewed(base)
    script: dict[str, list[dict[str, Any]]] = {
        "broken": [{"breaks": "with content in it"}],
        "odd": [{**BOTH, "odd_usage": True}],
        "quick": [BOTH],
    }
    daemon.write(route("broken", "odd", "quick"), script)
    daemon.start()
    try:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            number = await conflict(alice, bob)
            assert (await final(bob, number)).status == "applied"
            failed = await follow(person, "review_failed", seen=2)
            assert [event["code"] for event in failed] == ["review_failed", "event_not_serializable"]
            assert "ZeroDivisionError" in failed[0]["message"]
            assert (daemon.workspace / "a.txt").read_text() == SETTLED
            assert (await person.journal_rebuild()).ok
    finally:
        assert daemon.stop() == 0, daemon.log[-4000:]
    (line,) = [line for line in daemon.log.splitlines() if "a review failed unforeseen" in line]
    assert '"level": "error"' in line
    assert "in review" in line  # the trace
    assert "with content in it" not in daemon.log
    daemon.start()
    assert daemon.stop() == 0


# --- plugins -------------------------------------------------------------------------------

EVIL = (
    "import asyncio\n"
    "from orchestrator.extensions.hookspecs import hook\n"
    "class Base(BaseException): pass\n"
    "class Mute(Exception):\n    def __str__(self): raise KeyboardInterrupt()\n"
)


def enabled(*names: str) -> str:
    return f"[plugins]\nenabled = {json.dumps(list(names))}\n"


HOOKS = {
    "keyboard": ("raise KeyboardInterrupt()", "KeyboardInterrupt"),
    "generator": ("raise GeneratorExit()", "GeneratorExit"),
    "cancelled": ("raise asyncio.CancelledError()", "CancelledError"),
    "own": ("raise Base('x')", "Base: x"),
    "mute": ("raise Mute()", "Mute: (can't be shown)"),
    "group": ("raise BaseExceptionGroup('g', [KeyboardInterrupt()])", "BaseExceptionGroup"),
}


async def test_whatever_a_change_hook_raises_it_alone_is_switched_off(base: Path) -> None:
    hook = EVIL + "@hook\ndef orchestrator_change_applied(change):\n    {}\n"
    for name, (body, _) in HOOKS.items():
        put(base / "site", f"evil_{name}", hook.format(body))
    put(base / "site", "good", hook.format(f"open({str(base / 'heard')!r}, 'a').write(change.operation + '\\n')"))
    with backed(base, enabled(*(f"evil_{name}" for name in HOOKS), "good")) as daemon:
        async with daemon.client("alice") as alice, daemon.client() as person:
            for number in range(4):
                await alice.write_file(f"{number}.txt", "x\n", mode="create")
            with anyio.fail_after(PATIENCE_S):
                while not (base / "heard").exists() or (base / "heard").read_text().count("\n") < 4:
                    await anyio.lowlevel.checkpoint()
            notes = "\n".join((await person.status()).health.notes)
            for name, (_, says) in HOOKS.items():
                assert f"plugin evil_{name}: switched off, 3 failures in a row; {says}" in notes
            assert "plugin good: loaded" in notes


# --- the key -------------------------------------------------------------------------------

SAID = {
    "plain": KEY,
    "bearer": f"Bearer {KEY}",
    "loud": KEY.upper(),
    "base64": base64.b64encode(f"user:{KEY}\n".encode()).decode(),
}


@pytest.mark.soak
async def test_a_key_that_the_service_says_again_is_struck_out(base: Path) -> None:
    forms: dict[str, Form] = dict(zip(SAID, itertools.cycle(FORMS), strict=False))
    with ExitStack() as stack:
        policy = route(*SAID)
        for name, said in SAID.items():
            answer = altered(
                forms[name], {"verdict": "reject", "regions": [], "reason": f"you sent {said}"}, model=said
            )
            policy += model(name, stack.enter_context(serving(answer)).url, forms[name])
        daemon = stack.enter_context(backed(base, policy))
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            await conflict(alice, bob)
            events = await follow(person, "review_answered", seen=len(SAID))
            assert all("[redacted:key]" in event["reason"] for event in events)
            assert all("[redacted:key]" in event["usage"]["model"] for event in events)
            shown = repr(await bob.list_conflicts())
            assert KEY.casefold() not in shown.casefold()
            assert not [said for said in SAID.values() if said in shown]
        assert daemon.stop() == 0
        assert not [said for said in SAID.values() if said.encode() in kept(daemon)]


async def test_an_answer_with_the_key_in_its_lines_is_refused(base: Path) -> None:
    with serving(message("openai", edited((1, [f"two = '{KEY}'"])))) as service:
        policy = route("quick", "clerk") + model("quick", service.url, "openai") + program("clerk")
        with backed(base, policy) as daemon:
            async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
                number = await conflict(alice, bob)
                assert (await final(bob, number)).status == "applied"
                (failed,) = await follow(person, "review_failed")
                assert failed["code"] == "review_reply_invalid"
                assert "holds the key" in failed["message"]
                assert (daemon.workspace / "a.txt").read_text() == SETTLED
        assert KEY.encode() not in kept(daemon)


# --- caps, and what to do ------------------------------------------------------------------


async def test_a_service_that_names_no_usage_is_held_by_the_caps(base: Path) -> None:
    no = altered("openai", {"verdict": "reject", "regions": [], "reason": "no"}, usage=None)
    prices, caps = ("--usd-per-mtok-input", "1", "--usd-per-mtok-output", "3"), "max_tokens = 6000"
    with serving(no) as service:
        reviewers = model("quick", service.url, "openai", *prices, more=f"{caps}\nmax_tokens_per_hour = 6000")
        with backed(base, route("quick") + reviewers) as daemon:
            async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
                await conflict(alice, bob)
                (said,) = await follow(person, "review_answered")
                assert said["usage"]["cost_microusd"] > 4096 * 3
                await conflict(alice, bob, "b.txt")
                (failed,) = await follow(person, "review_failed")
                assert failed["code"] == "over_budget"
        assert len(service.asked) == 1


async def test_a_failure_says_what_happened_and_what_to_do(base: Path) -> None:
    policy = route("quick") + model("quick", "http://127.0.0.1:9", "openai").replace("REVIEW_KEY", "NO_SUCH_KEY")
    with backed(base, policy) as daemon:
        async with daemon.client("alice") as alice, daemon.client("bob") as bob, daemon.client() as person:
            await conflict(alice, bob)
            await follow(person, "review_failed")
            (line,) = (await one(person)).reviews
            assert line.code == "reviewer_unusable"
            assert "NO_SUCH_KEY is not set" in line.message
            assert "[[reviewer]] table" in line.hint
