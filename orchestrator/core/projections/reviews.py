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
    place: int  # in the route's chain, from 0
    attempt: int  # of this reviewer, from 1
    deadline: int  # ms since the epoch
    current: Digest | None = None  # what the file held as it was asked
    state: ReviewState = "requested"
    verdict: Verdict | None = None
    proposal: Digest | None = None
    code: str = ""  # why it failed


def turned(reviews: tuple[Review, ...], seq: Seq, event: AnyReviewEvent) -> tuple[Review, ...]:
    """The reviews after one more event about them."""
    match event:
        case ReviewRequested():
            asked = Review(
                seq, event.reviewer, event.route, event.place, event.attempt, event.deadline, current=event.current
            )
            return (*reviews, asked)
        case ReviewAnswered(ignored=""):
            return _replaced(
                reviews,
                event.review,
                {
                    "state": "answered",
                    "verdict": event.verdict,
                    "proposal": event.proposal,
                    "current": event.current,
                },
            )
        case ReviewAnswered():
            return reviews
        case ReviewFailed(review=review, code=code):
            return _replaced(reviews, review, {"state": "failed", "code": code})
        case ReviewAccepted(review=review):
            return _replaced(reviews, review, {"state": "accepted"})
        case ReviewRejected(review=review):
            return _replaced(reviews, review, {"state": "rejected"})


def _replaced(reviews: tuple[Review, ...], seq: Seq, changes: dict[str, object]) -> tuple[Review, ...]:
    return tuple(msgspec.structs.replace(item, **changes) if item.seq == seq else item for item in reviews)
