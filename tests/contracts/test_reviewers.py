"""What every reviewer keeps, however it is reached: answers for the regions it was asked about, or a ReviewFailure."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import anyio
import pytest

from orchestrator.core.policy.rules import ProgramSettings
from orchestrator.machine import SystemClock
from orchestrator.ports.reviewers import RegionText, Reviewer, ReviewFailure
from orchestrator.review.reviewer_pool import program_reviewer
from tests.review.conflicts import conflict
from tests.review.reviewers import reviewer
from tests.review.service import Form, edited, message, serving

pytestmark = pytest.mark.anyio

KINDS = ("anthropic", "openai", "program")


@contextmanager
def answering(kind: str, answer: dict[str, Any]) -> Iterator[Reviewer]:
    """A reviewer of this kind, behind which something always says this."""
    said = json.dumps(answer)
    if kind == "program":
        argv = (sys.executable, "-I", "-c", f"import sys; sys.stdin.read(); print({said!r})")
        settings = ProgramSettings(name="p", argv=argv)
        yield program_reviewer(
            settings, clock=SystemClock(), environment=os.environ, variables_fd=None, workspace="/nowhere"
        )
    else:
        form = cast(Form, kind)
        with serving(message(form, answer)) as service:
            yield reviewer(service.url, form)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("side", ["current", "proposed", "reject"])
async def test_a_side_or_a_rejection(kind: str, side: str) -> None:
    answer = {"verdict": side, "regions": [], "reason": "because"}
    with answering(kind, answer) as asked:
        reply = await asked.review(conflict())
    assert (reply.verdict, reply.regions, reply.reason) == (side, (), "because")


async def test_lines_for_each_region(kind: str) -> None:
    with answering(kind, edited((1, ["é"]), (2, []))) as asked:
        reply = await asked.review(conflict())
    assert (reply.verdict, reply.regions) == ("content", (RegionText(1, ("é",)), RegionText(2, ())))


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(edited((1, ["a"]), (2, []), (3, ["evil"])), id="a region that is none"),
        pytest.param(edited((0, ["a"]), (1, []), (2, [])), id="before the first"),
        pytest.param(edited((1, ["a"])), id="not all"),
        pytest.param(edited((1, ["a"]), (1, ["b"]), (2, [])), id="twice"),
        pytest.param(edited((1, ["a\nb"]), (2, [])), id="a line end"),
        pytest.param({"verdict": "all of it", "regions": [], "reason": ""}, id="no verdict"),
        pytest.param({"verdict": "current", "regions": [{"region": 1, "lines": []}], "reason": ""}, id="both"),
    ],
)
async def test_anything_else_is_reply_invalid(kind: str, answer: dict[str, Any]) -> None:
    with answering(kind, answer) as asked, pytest.raises(ReviewFailure) as caught:
        await asked.review(conflict())
    assert caught.value.code == "review_reply_invalid"


async def test_it_may_be_asked_several_times_at_once(kind: str) -> None:
    verdicts = []

    async def ask(asked: Reviewer) -> None:
        verdicts.append((await asked.review(conflict())).verdict)

    answer = {"verdict": "proposed", "regions": [], "reason": ""}
    with answering(kind, answer) as asked:
        await ask(asked)
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(ask, asked)
    assert verdicts == ["proposed"] * 5
