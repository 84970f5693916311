"""The most similar passages of a text for a search that failed, and how they differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypedDict

from rapidfuzz import process
from rapidfuzz.distance import Indel

from orchestrator.core.text.diff import diff
from orchestrator.core.text.normalised import keys_of

LEAST = 0.5
_MOST = 3
_COMPARED_LINES = 40
_COMPARED_CHARS = 200
_PROBES = 4
_MOST_PLACES = 50
_SCORED = 40
_ROWS = 12
_MOST_CHARS = 120


class Near(TypedDict):
    """Lines, 1-based and inclusive, and how like they are, 0.0–1.0."""

    line: int
    end_line: int
    score: float


def nearest(lines: Sequence[str], passage: Sequence[str], *, keys: Sequence[str] | None = None) -> list[Near]:
    """The three places most like a passage of lines, best first; of equal ones the upper first.

    A score is how many of the characters are equal, blanks and typography left aside; nothing under 0.5 is given,
    and no two places overlap. Bounded: of a long passage the first 40 lines count, and its four longest are looked
    for, by likeness where they are not exactly. `keys` are those of the lines, where they are known.
    Cost: O(lines), about 10 ms for 20,000 with the keys.
    """
    wanted = [key[:_COMPARED_CHARS] for key in keys_of(passage[:_COMPARED_LINES])]
    text = [key[:_COMPARED_CHARS] for key in keys or keys_of(lines)]
    whole = _squeezed(wanted)
    scored = [(Indel.normalized_similarity(_squeezed(text[a:b]), whole), a, b) for a, b in _windows(text, wanted)]
    near: list[Near] = []
    for score, start, end in sorted(scored, key=lambda item: (-item[0], item[1])):
        if score < LEAST or len(near) == _MOST:
            break
        if all(end < other["line"] or start >= other["end_line"] for other in near):
            near.append(Near(line=start + 1, end_line=end, score=round(score, 3)))
    return near


def _windows(text: Sequence[str], wanted: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where the passage may be, going by its longest lines."""
    places: dict[str, list[int]] = {}
    for at, line in enumerate(text):
        places.setdefault(line, []).append(at)
    votes: dict[int, float] = {}
    probes = sorted((at for at, line in enumerate(wanted) if line), key=lambda at: -len(wanted[at]))[:_PROBES]
    for probe in probes:
        likest = [(wanted[probe], 1.0, 0)]
        if len(probes) == 1 or wanted[probe] not in places:
            likest = process.extract(
                wanted[probe], list(places), scorer=Indel.normalized_similarity, score_cutoff=LEAST, limit=_MOST_PLACES
            )
        for kind, like, _ in likest:
            for at in places[kind][:_MOST_PLACES] if kind else ():
                votes[at - probe] = votes.get(at - probe, 0.0) + like * len(kind)
    for start in sorted(votes, key=lambda at: (-votes[at], at))[:_SCORED]:
        first, last = max(0, start), min(len(text), start + len(wanted))
        while first < last and not text[first]:
            first += 1
        while last > first and not text[last - 1]:
            last -= 1
        yield first, last


def _squeezed(lines: Sequence[str]) -> str:
    return "".join("".join(lines).split())


def differences(lines: Sequence[str], passage: Sequence[str], near: Near) -> str:
    """A small diff from the passage (-) to what is there (+), of twelve rows at most.

    It quotes both, so it goes only where the lines themselves go.
    """
    there = lines[near["line"] - 1 : near["end_line"]]
    rows: list[str] = []
    for hunk in diff(passage[: 4 * _COMPARED_LINES], there):
        rows += (f"-{_cut(line)}" for line in passage[hunk.old_start : hunk.old_end])
        rows += (f"+{_cut(line)}" for line in there[hunk.new_start : hunk.new_end])
    more = len(rows) - _ROWS
    return "\n".join([*rows[:_ROWS], *([f"and {more} rows more"] if more > 0 else [])])


def _cut(line: str) -> str:
    return line if len(line) <= _MOST_CHARS else f"{line[:_MOST_CHARS]}…"
