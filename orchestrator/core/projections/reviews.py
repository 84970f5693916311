"""Reviews of one conflict: who was asked, until when, and what came of it."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from orchestrator.core.events.reviews import (
    ReviewAccepted,
    ReviewAnswered,
    ReviewFailed,
    ReviewRejected,
    ReviewRequested,
    Verdict,
)
from orchestrator.core.ids import Digest, Seq

FOLDED: Final = (ReviewRequested, ReviewAnswered, ReviewFailed, ReviewAccepted, ReviewRejected)

AnyReviewEvent = ReviewRequested | ReviewAnswered | ReviewFailed | ReviewAccepted | ReviewRejected

ReviewState = Literal["requested", "answered", "failed", "accepted", "rejected"]


class Review(msgspec.Struct, frozen=True, omit_defaults=True):
    """One reviewer, asked once about one conflict."""

    seq: Seq
    reviewer: str
    route: str
    deadline: int  # ms since the epoch
    current: Digest | None = None  # the content that the proposal was made for
    state: ReviewState = "requested"
    verdict: Verdict | None = None
    proposal: Digest | None = None
    code: str = ""  # why it failed


def turned(reviews: tuple[Review, ...], seq: Seq, event: AnyReviewEvent) -> tuple[Review, ...]:
    """The reviews after one more event about them."""
    changes: dict[str, object]
    match event:
        case ReviewRequested():
            return (*reviews, Review(seq, event.reviewer, event.route, event.deadline))
        case ReviewAnswered(ignored=""):
            changes = {"verdict": event.verdict, "proposal": event.proposal, "current": event.current}
            changes["state"] = "answered"
        case ReviewAnswered():
            return reviews
        case ReviewFailed(code=code):
            changes = {"state": "failed", "code": code}
        case ReviewAccepted():
            changes = {"state": "accepted"}
        case ReviewRejected():
            changes = {"state": "rejected"}
    return tuple(msgspec.structs.replace(item, **changes) if item.seq == event.review else item for item in reviews)
