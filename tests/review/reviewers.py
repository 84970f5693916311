"""Reviewers for tests, as the daemon makes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from anyio import to_thread
from model_reviewer.__main__ import parse, review

from orchestrator.core.policy.rules import ProgramSettings
from orchestrator.ports.reviewers import ReviewRequest
from orchestrator.review.checked import CheckedReviewer
from orchestrator.review.reviewer_pool import question_of
from tests.review.service import Form, base_url

KEY = "key-0123456789-of-the-operator"


class FixedClock:
    """Stands still."""

    def now_ms(self) -> int:
        return 1_800_000_000_000

    def ticks_us(self) -> int:
        return 0


def reviewer(
    url: str, form: Form, *argv: str, environment: Mapping[str, str] | None = None, **settings: Any
) -> CheckedReviewer:
    """The daemon's part and the program's, with nothing but the process between them left out."""
    given = ("--api", form, "--model", "large", "--base-url", base_url(url, form))
    keyed = () if "--api-key-file" in argv else ("--api-key-env", "KEY")
    parsed, variables = parse((*given, *keyed, *argv)), {"KEY": KEY} if environment is None else environment

    async def ask(request: ReviewRequest, timeout_s: float) -> bytes:
        question = json.loads(question_of(request))
        return json.dumps(await to_thread.run_sync(review, question, parsed, variables)).encode()

    return CheckedReviewer(ProgramSettings(name="m", argv=("-",), **settings), ask, clock=FixedClock())
