"""The places most like a passage that does not stand in a text, for whoever looked for it, and what differs there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypedDict

from rapidfuzz.distance import Indel

from orchestrator.core.text.fuzzy import Text, likely, text_of
from orchestrator.core.text.pairing import Pairing, pair, squeezed

_LEAST = 0.5
_FAR = 0.95  # so few lines are looked for that a refusal costs about what a landing costs
_COMPARED_LINES = 40
_MOST_TOLD = 5
_MOST_CHARS = 60
_WORD = re.compile(r"\w+|[^\w\s]")


class Near(TypedDict):
    """Lines, 1-based and inclusive, and how like they are, 0.0–1.0."""

    line: int
    end_line: int
    score: float


def nearest(lines: Sequence[str], passage: Sequence[str], *, most: int = 3) -> list[Near]:
    """The `most` places most like a passage of lines, best first; of equal ones the upper first.

    A score is the likeness of the lines that pair, blanks left aside, weighed by their length;
    nothing under 0.5 is given, and no two places overlap. Bounded: of a long passage the first 40
    lines count. Cost: O(lines), about 20 ms for 20,000.
    """
    text = text_of(lines)
    short = tuple(map(squeezed, passage[:_COMPARED_LINES]))
    return near_of(likely(text, short).places, most=most) or far(text, short, most=most)


def far(text: Text, passage: Sequence[str], *, most: int = 3) -> list[Near]:
    """Where the few longest lines of a squeezed passage have something like them, when nothing liker was found."""
    return near_of(likely(text, passage[:_COMPARED_LINES], floor=_FAR, least=_LEAST).places, most=most)


def near_of(places: Iterable[Pairing], *, most: int = 3) -> list[Near]:
    """The best of some places, which come best first."""
    near: list[Near] = []
    for place in places:
        if place.score < _LEAST or len(near) == most:
            break
        line, end = place.start + 1, place.stop
        if all(end < other["line"] or line > other["end_line"] for other in near):
            near.append(Near(line=line, end_line=end, score=round(place.score, 3)))
    return near


def differences(lines: Sequence[str], passage: Sequence[str], near: Near) -> str:
    """In words, what lines of the text have that a passage has not, and the reverse; five things at most.

    It quotes both, so it goes only where the lines themselves go.
    """
    first, last = near["line"] - 1, near["end_line"]
    there = [squeezed(line) for line in lines[first:last]]
    short = [squeezed(line) for line in passage[: 4 * _COMPARED_LINES]]
    place = pair(short, there, 0, min(8, 2 + abs(len(there) - len(short)) + len(short) // 4))
    if place is None:
        return "nothing is alike"
    told = [
        f"line {first + j + 1}: {_words(passage[i], lines[first + j])}" for i, j in place.pairs if short[i] != there[j]
    ]
    paired = {i for i, _ in place.pairs}
    missing = [i + 1 for i in range(len(short)) if i not in paired and short[i]]
    if missing:
        told.append(f"{_ranges(missing)} of the search not there")
    taken = {j for _, j in place.pairs}
    extra = [first + j + 1 for j in range(place.start, place.stop) if j not in taken and there[j]]
    if extra:
        told.append(f"{_ranges(extra)} of the file not in the search")
    if not told:
        return _blanks(lines, passage, first, place)
    more = len(told) - _MOST_TOLD
    return "; ".join(told[:_MOST_TOLD]) + (f"; and {more} more" if more > 0 else "")


def _blanks(lines: Sequence[str], passage: Sequence[str], first: int, place: Pairing) -> str:
    other = [(passage[i], lines[first + j]) for i, j in place.pairs if passage[i] != lines[first + j]]
    if not other:
        return "only blank lines differ" if len(passage) != place.stop - place.start else "nothing differs"
    if all(a.strip() == b.strip() for a, b in other):
        tabs = any("\t" in b[: len(b) - len(b.lstrip())] for _, b in other)
        return "only indentation differs" + (" (the file has tabs)" if tabs else "")
    return "only blanks differ"


def _words(quoted: str, present: str) -> str:
    """The first words in which two lines differ: what was looked for ≠ what stands there."""
    ours, theirs = _WORD.findall(quoted), _WORD.findall(present)
    for step in Indel.opcodes(ours, theirs):
        if step.tag != "equal":
            start, new = step.src_start, step.dest_start
            break
    else:
        return "other blanks"
    end, new_end = len(ours), len(theirs)
    while end > start and new_end > new and ours[end - 1] == theirs[new_end - 1]:
        end, new_end = end - 1, new_end - 1
    return f"{_quoted(ours[start:end])} ≠ {_quoted(theirs[new:new_end])}"


def _quoted(words: Sequence[str]) -> str:
    text = " ".join(words)
    return f"'{text if len(text) <= _MOST_CHARS else text[:_MOST_CHARS] + '…'}'" if words else "nothing"


def _ranges(numbers: Sequence[int]) -> str:
    """`line 3 is`, `lines 3–4, 7 are`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], number]
        else:
            runs.append([number])
    shown = ", ".join("–".join(map(str, run)) for run in runs[:4]) + (" …" if len(runs) > 4 else "")
    return f"line {shown} is" if len(numbers) == 1 else f"lines {shown} are"
