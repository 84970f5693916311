"""The places most like a passage that does not stand in a text, for whoever looked for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from rapidfuzz import fuzz, process

_PROBES = 3
_CANDIDATES = 15
_COMPARED_LINES = 40
_COMPARED_CHARS = 200
_LEAST = 0.5


class Near(TypedDict):
    """Lines, 1-based and inclusive, and how like they are, 0.0–1.0."""

    line: int
    end_line: int
    score: float


def nearest(lines: Sequence[str], passage: Sequence[str], *, most: int = 3) -> list[Near]:
    """The `most` places most like a passage of lines, best first; of equal ones the upper first.

    A score is the mean normalised similarity of the lines in turn; nothing under 0.5 is given, and
    no two places overlap. Bounded: the longest lines of the passage are looked for everywhere, and
    only where one is nearly found are the others compared, 40 lines and 200 characters of each at
    most. Cost: O(lines), about 20 ms for 20,000.
    """
    passage = [line[:_COMPARED_CHARS] for line in passage]
    near: list[Near] = []
    scored = sorted((-_score(lines, passage, at), at) for at in _candidates(lines, passage))
    for score, at in scored:
        line, end = max(at, 0) + 1, min(at + len(passage), len(lines))
        if -score < _LEAST or len(near) == most:
            break
        if all(end < other["line"] or line > other["end_line"] for other in near):
            near.append(Near(line=line, end_line=end, score=round(-score, 3)))
    return near


def _candidates(lines: Sequence[str], passage: Sequence[str]) -> set[int]:
    """Where the passage may begin, 0-based, going by its longest lines; negative for above the text."""
    short = [line[:_COMPARED_CHARS] for line in lines]
    probes = sorted(range(len(passage)), key=lambda at: -len(passage[at].strip()))[:_PROBES]
    found: set[int] = set()
    for probe in probes:
        if passage[probe].strip():
            likest = process.extract(
                passage[probe], short, scorer=fuzz.ratio, score_cutoff=100 * _LEAST, limit=_CANDIDATES
            )
            found |= {at - probe for _, _, at in likest}
    return found


def _score(lines: Sequence[str], passage: Sequence[str], at: int) -> float:
    inside = passage[max(-at, 0) : _COMPARED_LINES]  # a passage may begin above the first line
    pairs = zip(inside, lines[max(at, 0) : max(at, 0) + len(inside)], strict=False)
    total = sum(fuzz.ratio(wanted, line[:_COMPARED_CHARS]) for wanted, line in pairs)
    return total / 100 / min(len(passage), _COMPARED_LINES)
