"""Reviewers, who answer for the regions of a conflict; and the check command that a proposal must pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Protocol

import msgspec

from orchestrator.api.conflicts import Party
from orchestrator.core.content import ThreeWay
from orchestrator.core.errors import OrchestratorError
from orchestrator.core.events.conflicts import ReviewUsage, Verdict
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.rules import Checks
from orchestrator.core.text.secrets import Secret

Lines = tuple[str, ...]


class KeyLines(ThreeWay[tuple[Secret, ...]], frozen=True, kw_only=True):
    """Lines of private keys in one region, 0-based in each part: found in the whole texts, of which it is cut."""

    before: tuple[Secret, ...] = ()
    after: tuple[Secret, ...] = ()


class ReviewRegion(ThreeWay[Lines], frozen=True, kw_only=True):
    """One place of a conflict, as each side has it, and the lines around it."""

    number: int  # from 1
    before: Lines = ()
    after: Lines = ()
    keys: KeyLines | msgspec.UnsetType = msgspec.UNSET  # for redacting them; not in what a reviewer is sent


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """The reviewer's own answer to the same request, and why it could not be used."""

    answer: str
    problem: str


class ReviewLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What this review may still take; None: the policy sets no limit."""

    max_tokens: int | None = None  # of the question and the answer together
    max_cost_usd: float | None = None


class ReviewRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A conflict, as far as a reviewer is shown it."""

    conflict: str  # "@N"
    path: WorkspacePath
    regions: tuple[ReviewRegion, ...]
    proposer: Party
    why: str = ""  # if not because both sides changed the same lines
    language: str = ""
    holders: tuple[Party, ...] = ()  # who made the current lines
    limits: ReviewLimits = ReviewLimits()
    repair: Repair | None = None  # at the second try


class RegionText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a reviewer wants in one region."""

    region: Annotated[int, msgspec.Meta(ge=0, le=10**6)]  # from 1
    lines: Lines


class ReviewReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reviewer's answer."""

    verdict: Verdict
    regions: tuple[RegionText, ...] = ()
    reason: str = ""
    usage: ReviewUsage = ReviewUsage()


class ReviewFailure(
    OrchestratorError, code="review_failed", hint="If it was unforeseen, the daemon's log has the trace."
):
    """A reviewer gave nothing that counts; `code` says in which way, `usage` what it took all the same."""

    usage: ReviewUsage = ReviewUsage()


class ReviewerUnusable(
    ReviewFailure, code="reviewer_unusable", hint="Mend its [[reviewer]] table in policy.toml, or what that points to."
):
    """The operator's settings do not let it be asked: no key, or one open to others; no such program."""


class ReviewerUnreachable(
    ReviewFailure, code="reviewer_unreachable", hint="Look whether the service runs, and at its url in policy.toml."
):
    """Nobody listens, or the connection broke."""


class ReviewerBusy(
    ReviewFailure,
    code="reviewer_busy",
    hint="It was not waited for: the next reviewer of the route is asked. Raise timeout_s, or ask less at once.",
):
    """It asks us to come back later than this review can wait."""


class ReviewerRefused(
    ReviewFailure, code="reviewer_refused", hint="The message says why; mend its [[reviewer]] table in policy.toml."
):
    """It answers that it will not: a bad key, an unknown model, a request it cannot take, a program that failed."""


class ReviewerTimeout(ReviewFailure, code="reviewer_timeout", hint="Raise its timeout_s, or take a faster one."):
    """It was given up on."""


class OverBudget(ReviewFailure, code="over_budget", hint="The caps are in its [[reviewer]] table in policy.toml."):
    """It would cost more than policy allows it."""


class ReviewReplyInvalid(
    ReviewFailure,
    code="review_reply_invalid",
    hint="Nothing of it was taken. The next reviewer of the route is asked; after the last, a person resolves it.",
):
    """Its reply is no answer to this conflict."""


_FAILURES: Final[tuple[type[ReviewFailure], ...]] = (ReviewFailure, *ReviewFailure.__subclasses__())
FAILURES: Final = {failure.code: failure for failure in _FAILURES}
"""By code."""


class Reviewer(Protocol):
    """One reviewer that the policy can name."""

    def asked(self, request: ReviewRequest) -> ReviewUsage:
        """What the record of a request says before it is answered: the model, and the hash of what is sent."""

    async def review(self, request: ReviewRequest) -> ReviewReply:
        """Ask. Raises ReviewFailure, whatever went wrong; may be cancelled."""


class CheckReport(msgspec.Struct, frozen=True):
    """How it ended; the message has the last lines that it printed."""

    passed: bool
    message: str


class Checker(Protocol):
    """Runs checks in scratch copies."""

    async def check(
        self, checks: Checks, path: WorkspacePath, data: bytes, others: Sequence[WorkspacePath]
    ) -> CheckReport:
        """Run the command with `data` as the content of `path`, and with scope "tree" copies of the others.

        A command that can't be started, is too slow, or whose tree is too large to copy does not pass.
        May be cancelled; the command ends with it, and with all that it started.
        """
