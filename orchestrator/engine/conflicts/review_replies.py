"""What comes back of a review, as the journal has it: an answer, or a failure and what to do about it."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Final

from orchestrator.core.errors import OrchestratorError, escaped
from orchestrator.core.events.reviews import Ignored, ReviewAnswered, ReviewFailed, Usage
from orchestrator.core.ids import Digest, Seq
from orchestrator.core.projections.pending import Conflict
from orchestrator.core.projections.reviews import Review
from orchestrator.ports.reviewers import ReviewFailure, ReviewReply, ReviewReplyInvalid

MOST_MESSAGE: Final = 2000

HINTS: Final[Mapping[str, str]] = {
    "conflict_moved": "It is asked again, about what stands there now.",
    "daemon_restarted": "It is asked once more.",
    "denied": 'Let agents of class "review" read the file in policy.toml, or settle it yourself.',
    "not_text": "Settle it yourself: choose a side, or give the content.",
    "review_reply_invalid": ReviewReplyInvalid.hint,
    "reviewer_timeout": "Raise the route's deadline_s, or put a faster reviewer before it.",
    "unknown_reviewer": "Add its [[reviewer]] table to policy.toml, or take it out of the route.",
}
"""For what fails by our doing; a reviewer's own failures bring theirs."""

NOT_APPLIED: Final = "Nothing is applied. The next reviewer of the route is asked; after the last, a person settles it."


def ignored_as(conflict: Conflict | None, review: Review | None) -> Ignored:
    """Why an answer counts for nothing; empty where it counts."""
    if conflict is None or conflict.state != "open":
        return "closed"
    if review is None:
        return "unknown"
    match review.state:
        case "requested":
            return ""
        case "failed":
            return "late"
        case "answered" | "accepted" | "rejected":
            return "double"


def answered(
    conflict: Conflict, number: Seq, reviewer: str, reply: ReviewReply, proposal: Digest | None, ignored: Ignored
) -> ReviewAnswered:
    """The event."""
    usage = reply.usage
    return ReviewAnswered(
        review=number,
        conflict=conflict.seq,
        reviewer=reviewer,
        verdict=reply.verdict,
        proposal=proposal,
        current=conflict.found.current,
        model=usage.model,
        prompt_hash=usage.prompt_hash,
        usage=Usage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost_microusd=usage.cost_microusd,
            took_ms=usage.took_ms,
        ),
        reason=escaped(reply.reason[:MOST_MESSAGE])[:MOST_MESSAGE],
        ignored=ignored,
    )


def failed(conflict: Conflict, review: Review, code: str, message: str, hint: str = "") -> ReviewFailed:
    """The event."""
    return ReviewFailed(
        review=review.seq,
        conflict=conflict.seq,
        code=code,
        message=escaped(message[:MOST_MESSAGE])[:MOST_MESSAGE],
        hint=hint or HINTS.get(code, NOT_APPLIED),
    )


def failure_of(error: Exception) -> tuple[str, str, str]:
    """Code, message and hint of what ended a review, whatever it was.

    Of an error that nobody foresaw only the kind is told: its words may hold content, or a key.
    """
    if isinstance(error, OrchestratorError):
        return error.code, error.message, error.hint
    return ReviewFailure.code, f"an unforeseen {type(error).__name__} ended it", ReviewFailure.hint


def trace_of(error: BaseException) -> str:
    """Where it was raised, for the log: places and kinds, without the words."""
    return f"{''.join(traceback.format_tb(error.__traceback__))}{type(error).__qualname__}"
