"""One ranking of several, by the places alone: their scores need not be of one scale."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)

SMOOTHING = 60
"""Source: Cormack, Clarke and Büttcher, Reciprocal Rank Fusion (SIGIR 2009): results hardly depend on it."""


def fused(*rankings: Sequence[K]) -> list[K]:
    """All that are in any ranking, the best first; of equals the one that is in an earlier ranking."""
    scores: dict[K, float] = {}
    for ranking in rankings:
        for place, item in enumerate(dict.fromkeys(ranking), 1):
            scores[item] = scores.get(item, 0.0) + 1 / (SMOOTHING + place)
    return sorted(scores, key=lambda item: -scores[item])
