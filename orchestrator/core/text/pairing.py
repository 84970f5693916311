"""How lines that somebody quotes pair with lines that stand in a file, and how like the two are."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rapidfuzz.distance import Indel

COMPARED_CHARS = 400
"""Of one line; what lies beyond counts as equal if it is, else the whole line as unlike."""
LEAST = 0.5
"""Lines that are less like are not paired."""

_SKIP_PASSAGE, _SKIP_TEXT, _PAIRED = range(3)


class Pairing(msgspec.Struct, frozen=True):
    """Pairs of a passage's line and a text's line, both 0-based and ascending, and their likeness, 0.0–1.0."""

    pairs: tuple[tuple[int, int], ...]
    score: float

    @property
    def start(self) -> int:
        return self.pairs[0][1]

    @property
    def stop(self) -> int:
        """The line after the last one that is paired."""
        return self.pairs[-1][1] + 1


def squeezed(line: str) -> str:
    """A line without blanks: equal for two lines that differ in blanks only."""
    return "".join(line.split())


def weight(line: str) -> int:
    """What a squeezed line counts for: its characters, and one for being there."""
    return min(len(line), COMPARED_CHARS) + 1


def likeness(one: str, other: str, *, least: float = LEAST) -> float:
    """Of two squeezed lines, by the characters that they share in order; 0.0 under `least`."""
    if one == other:
        return 1.0
    if not one or not other or one[COMPARED_CHARS:] != other[COMPARED_CHARS:]:
        return 0.0
    return Indel.normalized_similarity(one[:COMPARED_CHARS], other[:COMPARED_CHARS], score_cutoff=least)


def pair(passage: Sequence[str], text: Sequence[str], at: int, slack: int) -> Pairing | None:
    """The best pairing of a passage with lines around 0-based `at`; both squeezed.

    Lines keep their order, and a line pairs with one that stands at most `slack` lines away from
    where it would if none were missing or added. The score is the likeness of all pairs, each weighed
    by its length; lines without partner, in the passage or between paired ones, count as unlike.
    None where nothing pairs. Cost: O(len(passage) × slack).
    """
    ways, best = _ways(passage, text, at, slack)
    pairs: list[tuple[int, int]] = []
    i, d = len(passage) - 1, 2 * slack
    while i >= 0 and d >= 0:
        way = ways[i][d]
        if way == _PAIRED:
            pairs.append((i, at + i + d - slack))
        if way == _SKIP_TEXT:
            d -= 1
        else:
            d = min(d + (way == _SKIP_PASSAGE), 2 * slack)
            i -= 1
    if not pairs:
        return None
    pairs.reverse()
    span = text[pairs[0][1] : pairs[-1][1] + 1]
    return Pairing(tuple(pairs), best / (sum(map(weight, passage)) + sum(map(weight, span))))


def _ways(passage: Sequence[str], text: Sequence[str], at: int, slack: int) -> tuple[list[bytearray], float]:
    """For each line of the passage and each diagonal, how the best pairing up to there ends; and what the last sums to.

    Diagonal d of line i is the text's line `at + i + d - slack`.
    """
    last = 2 * slack
    above = [0.0] * (last + 1)
    ways: list[bytearray] = []
    for i, line in enumerate(passage):
        own = weight(line)
        row, way = [0.0] * (last + 1), bytearray(last + 1)
        left = 0.0
        for d in range(last + 1):
            value, how = above[min(d + 1, last)], _SKIP_PASSAGE
            if d and left > value:
                value, how = left, _SKIP_TEXT
            j = at + i + d - slack
            if 0 <= j < len(text):
                other = text[j]
                like = 1.0 if line == other else likeness(line, other)
                if like and (paired := above[d] + like * (own + weight(other))) > value:
                    value, how = paired, _PAIRED
            row[d] = left = value
            way[d] = how
        above = row
        ways.append(way)
    return ways, above[last]
