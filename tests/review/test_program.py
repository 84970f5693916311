"""Program reviewers: real processes that answer well, badly, too much, and not at all."""

from __future__ import annotations

import json
import os
import select
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from orchestrator.core.policy.rules import ProgramSettings
from orchestrator.ports.reviewers import (
    FAILURES,
    OverBudget,
    ReviewerRefused,
    ReviewerTimeout,
    ReviewerUnusable,
    ReviewFailure,
    ReviewReply,
    ReviewReplyInvalid,
    ReviewRequest,
)
from orchestrator.review.checked import CheckedReviewer
from orchestrator.review.reviewer_pool import HumanReviewer, program_reviewer
from tests.docs.documents import ROOT, blocks
from tests.review.conflicts import SECRET, conflict
from tests.review.reviewers import FixedClock
from tests.review.service import edited

pytestmark = pytest.mark.anyio

GOOD = edited((1, ["limit = 3"]), (2, ["    a()", "    b()"]))
GUIDE = ROOT / "docs" / "plugins.md"
ENVIRONMENT = {"PATH": os.environ["PATH"], "ORCHESTRATOR_TOKEN": "t0ken", "OTHER": "no"}


def program(script: str, *, variables_fd: int | None = None, **settings: Any) -> CheckedReviewer:
    argv = (sys.executable, "-I", "-c", f"import json, os, sys\n{script}")
    given = {"argv": argv, "timeout_s": 30.0, **settings}
    return program_reviewer(
        ProgramSettings(name="p", **given),
        clock=FixedClock(),
        environment=ENVIRONMENT,
        variables_fd=variables_fd,
        workspace="/work",
    )


def saying(answer: object) -> str:
    return f"sys.stdin.read(); print({json.dumps(answer)!r})"


async def test_the_request_goes_in_and_the_answer_comes_out(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    script = f"open({str(seen)!r}, 'w').write(sys.stdin.read()); print({json.dumps(GOOD)!r})"
    reply = await program(script).review(conflict(secret=True))
    assert reply.regions[1].lines == ("    a()", "    b()")
    asked = json.loads(seen.read_text(encoding="utf-8"))
    assert (asked["conflict"], asked["path"]) == ("@7", "src/app.py")
    assert asked["regions"][0]["proposed"] == ["limit = 3"]
    assert asked["answer_schema"]["properties"]["verdict"]
    assert SECRET not in seen.read_text(encoding="utf-8")


async def test_it_may_say_what_its_model_took() -> None:
    usage = {"model": "big", "input_tokens": 9, "output_tokens": 3, "cost_microusd": 70}
    reply = await program(saying({**GOOD, "usage": usage})).review(conflict())
    assert (reply.usage.model, reply.usage.input_tokens, reply.usage.cost_microusd) == ("big", 9, 70)


async def test_the_guide_shows_a_request_and_its_answer(tmp_path: Path) -> None:
    asked, answer = (json.loads(block.text) for block in blocks(GUIDE.read_text(encoding="utf-8"), "json"))
    schema = asked.pop("answer_schema")
    seen = tmp_path / "seen"
    script = f"open({str(seen)!r}, 'w').write(sys.stdin.read()); print({json.dumps(answer)!r})"
    limits = asked["limits"]
    reply = await program(script, **limits).review(msgspec.convert(asked, ReviewRequest))
    sent = json.loads(seen.read_text(encoding="utf-8"))
    assert sent.pop("answer_schema").items() >= schema.items()
    assert sent == asked, "nothing is left out, and nothing is there that is not sent"
    assert (reply.verdict, reply.regions[0].lines, reply.usage.model) == ("content", ("limit = 3",), "big")


async def test_a_hidden_secret_comes_back() -> None:
    answer = edited((1, ["t = '[redacted:github-token#1]'"]), (2, []))
    assert (await program(saying(answer)).review(conflict(secret=True))).regions[0].lines == (f"t = '{SECRET}'",)


async def test_its_environment_is_the_least_and_what_is_named(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    look = "[dict(os.environ), os.getcwd(), os.listdir('/dev/fd')]"
    script = f"found = json.dumps({look}); open({str(seen)!r}, 'w').write(found)"
    with (tmp_path / "variables").open("w+b") as variables:
        variables.write("NAMED=yes = é\0UNNAMED=no\0".encode())
        variables.flush()
        asked = program(f"{script}; {saying(GOOD)}", env=("NAMED", "ABSENT"), variables_fd=variables.fileno())
        for _ in range(2):  # each process reads it from its beginning
            await asked.review(conflict())
            environment, cwd, files = json.loads(seen.read_text(encoding="utf-8"))
            assert environment["NAMED"] == "yes = é"
            assert environment["ORCHESTRATOR_WORKSPACE"] == "/work"
            assert not {"ORCHESTRATOR_TOKEN", "OTHER", "UNNAMED", "ABSENT"} & set(environment)
            assert cwd == "/"
            assert str(variables.fileno()) not in files


@pytest.mark.parametrize(
    ("script", "says"),
    [
        pytest.param("print('hello')", "no JSON", id="rubbish"),
        pytest.param("pass", "empty", id="nothing"),
        pytest.param("sys.stdout.buffer.write(b'{\\xff}')", "UTF-8", id="no UTF-8"),
        pytest.param('print(\'{"verdict": "edi\')', "JSON", id="truncated"),
        pytest.param(saying(edited((1, []), (9, []))), "the answer has \\[1, 9\\]", id="wrong region"),
        pytest.param(saying({**GOOD, "path": "other"}), "unknown field `path`", id="another path"),
        pytest.param(saying({**GOOD, "usage": "much"}), "usage", id="usage"),
        pytest.param(saying({**GOOD, "usage": {"cost_microusd": 10**400}}), "usage", id="a cost past all numbers"),
        pytest.param(saying({**GOOD, "usage": {"input_tokens": 10**13}}), "usage", id="more tokens than there are"),
        pytest.param(saying({**GOOD, "usage": {"output_tokens": -1}}), "usage", id="tokens given back"),
        pytest.param(saying(edited((10**4000, ["x"]))), "JSON|form", id="a region of 4000 digits"),
        pytest.param("\nwhile True: sys.stdout.write('x' * 65536)", "4 MB", id="endless"),
    ],
)
async def test_a_bad_answer_is_none(script: str, says: str) -> None:
    with pytest.raises(ReviewReplyInvalid, match=says):
        await program(script).review(conflict())


async def test_a_failure_of_no_known_form_is_one() -> None:
    with pytest.raises(ReviewFailure, match="did not say why") as caught:
        await program(saying({"verdict": "failed", "code": [], "reason": 5})).review(conflict())
    assert caught.value.code == "review_failed"


@pytest.mark.parametrize(("code", "kind"), FAILURES.items())
async def test_a_program_says_how_it_failed(code: str, kind: type[ReviewFailure]) -> None:
    failed = {"verdict": "failed", "code": code, "reason": f"no {SECRET} today"}
    with pytest.raises(kind, match=r"no .* today") as caught:
        await program(saying(failed)).review(conflict())
    assert type(caught.value) is kind
    assert SECRET not in caught.value.message


async def test_a_bad_answer_is_repaired_once(tmp_path: Path) -> None:
    """The second request holds the first answer, and what was wrong with it; the usage is that of both."""
    usage = {"input_tokens": 9, "output_tokens": 3, "cost_microusd": 70}
    bad, good = ({**answer, "usage": usage} for answer in (edited((1, ["x"]), reason=SECRET), GOOD))
    seen = tmp_path / "seen"
    script = (
        f"asked = json.load(sys.stdin); open({str(seen)!r}, 'w').write(json.dumps(asked)); "
        f"print(json.dumps({good!r} if asked['repair'] else {bad!r}))"
    )
    reply = await program(script, max_tokens=100, max_cost_usd=1.0).review(conflict())
    assert (reply.verdict, reply.usage.input_tokens, reply.usage.cost_microusd) == ("content", 18, 140)
    asked = json.loads(seen.read_text(encoding="utf-8"))
    assert "needs each region once: [1, 2]" in asked["repair"]["problem"]
    assert json.loads(asked["repair"]["answer"])["regions"] == [{"region": 1, "lines": ["x"]}]
    assert SECRET not in asked["repair"]["answer"]
    assert asked["limits"] == {"max_tokens": 88, "max_cost_usd": 1 - 70e-6}


@pytest.mark.parametrize(
    ("usage", "spent"),
    [
        pytest.param({"input_tokens": 60, "output_tokens": 41}, "101 tokens", id="tokens"),
        pytest.param({"cost_microusd": 500_000}, "USD", id="cost"),
    ],
)
async def test_nothing_is_repaired_over_the_limits(usage: dict[str, int], spent: str) -> None:
    asked = program(saying({**edited((1, ["x"])), "usage": usage}), max_tokens=100, max_cost_usd=0.5)
    with pytest.raises(OverBudget, match=spent):
        await asked.review(conflict())


@pytest.mark.parametrize("script", ["sys.exit(1)", saying(GOOD)], ids=["no answer", "no usage"])
async def test_who_does_not_say_what_it_took_is_counted_at_the_most(script: str) -> None:
    asked = program(script, max_tokens=100, max_tokens_per_hour=199)
    with suppress(ReviewerRefused):
        await asked.review(conflict())
    with pytest.raises(OverBudget, match="200 tokens within an hour"):
        await asked.review(conflict())


@pytest.mark.parametrize("repaired", ["sys.exit(1)", f"print({json.dumps(GOOD)!r})"], ids=["no answer", "no usage"])
async def test_a_repair_that_does_not_say_what_it_took_is_counted_at_the_most(repaired: str) -> None:
    bad = {**edited((1, ["x"])), "usage": {"input_tokens": 1, "output_tokens": 1}}
    script = f"if json.load(sys.stdin)['repair']: {repaired}\nelse: print({json.dumps(bad)!r})"
    asked = program(script, max_tokens=100, max_tokens_per_hour=199)
    with suppress(ReviewerRefused):
        await asked.review(conflict())
    with pytest.raises(OverBudget, match="200 tokens within an hour"):
        await asked.review(conflict())


async def test_reviews_at_the_same_time_share_the_hour() -> None:
    under_way, answered = anyio.Event(), anyio.Event()

    async def ask(request: ReviewRequest, timeout_s: float) -> bytes:
        under_way.set()
        await answered.wait()
        return json.dumps({**GOOD, "usage": {"input_tokens": 1, "output_tokens": 1}}).encode()

    settings = ProgramSettings(name="p", argv=("-",), max_tokens=100, max_tokens_per_hour=199)
    asked = CheckedReviewer(settings, ask, clock=FixedClock())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(asked.review, conflict())
        await under_way.wait()
        with pytest.raises(OverBudget):
            await asked.review(conflict())
        answered.set()
    assert (await asked.review(conflict())).verdict == "content"


async def test_an_exit_code_is_a_failure_and_its_last_words_are_reported_without_secrets() -> None:
    script = f"sys.stderr.write('x' * 5000 + ' quota {SECRET} gone'); sys.exit(3)"
    with pytest.raises(ReviewerRefused, match="exit code 3") as caught:
        await program(script).review(conflict())
    assert caught.value.message.endswith("gone")
    assert SECRET not in caught.value.message
    assert len(caught.value.message) < 2500


async def test_what_can_t_be_started() -> None:
    with pytest.raises(ReviewerUnusable, match="/no/such"):
        await program("", argv=("/no/such/program",)).review(conflict())


async def test_too_late_ends_it_and_all_that_it_started(tmp_path: Path) -> None:
    """The grandchild holds a pipe open for writing: when that hangs up, it has ended."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    stubborn = tmp_path / "stubborn.py"
    stubborn.write_text(
        "import os, signal, sys\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "os.write(os.open(sys.argv[1], os.O_WRONLY), b'up')\n"
        "while True: signal.pause()\n",
        encoding="utf-8",
    )
    script = (
        "import signal, subprocess\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"subprocess.Popen([sys.executable, '-I', {str(stubborn)!r}, {str(pipe)!r}]).wait()"
    )
    try:
        for timeout_s in (2.0, 20.0, 200.0):  # the first is enough unless the machine is slow
            with pytest.raises(ReviewerTimeout, match=f"{timeout_s:g} s"):
                await program(script, timeout_s=timeout_s).review(conflict())
            if up := os.read(reading, 10):
                break
        assert up == b"up"
        ended = select.poll()
        ended.register(reading, 0)  # hang-up alone
        assert ended.poll(60_000) == [(reading, select.POLLHUP)]
    finally:
        os.close(reading)


async def test_a_program_that_reads_nothing_may_answer() -> None:
    assert (await program(f"print({json.dumps(GOOD)!r})").review(conflict())).verdict == "content"


async def test_a_person_is_waited_for() -> None:
    replies: list[ReviewReply] = []

    async def ask() -> None:
        replies.append(await HumanReviewer().review(conflict()))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert replies == []
