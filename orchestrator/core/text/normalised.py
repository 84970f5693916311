"""Compares a quoted line with a file's line except for typography, and keeps the file's own typography.

Free are blanks (the indentation, runs of blanks, blanks at the end), typographic quotes, dashes and ellipses for
plain ones, the kind of quotes, and one comma or semicolon at the end. Nothing else: what is merely alike is no match.
For a search that failed, `nearest` finds the most similar passages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypedDict

from rapidfuzz import process
from rapidfuzz.distance import Indel

from orchestrator.core.text.diff import diff
from orchestrator.core.text.indent import Uncertain
from orchestrator.core.text.long_lines import parts_that_differ

QUOTES: Final = "'\"\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f"
DASHES: Final = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_PLAIN: Final = str.maketrans({**dict.fromkeys(QUOTES, '"'), **dict.fromkeys(DASHES, "-"), "\u2026": "..."})
_TOKEN = re.compile(r"\w+|\s+|\.\.\.|.", re.DOTALL)
_ENDS = (",", ";")

LEAST = 0.5
_MOST = 3
_COMPARED_LINES = 40
_COMPARED_CHARS = 200
_PROBES = 4
_MOST_PLACES = 50
_SCORED = 40
_ROWS = 12
_MOST_CHARS = 120


def key_of(line: str) -> str:
    """What two lines have in common that are equal but for typography; "" for a blank line."""
    words = " ".join((line.replace("'", '"') if line.isascii() else line.translate(_PLAIN)).split())
    return words[:-1].rstrip() if len(words) > 1 and words.endswith(_ENDS) else words


def trailing(line: str) -> str:
    """The blanks at a line's end."""
    return line[len(line.rstrip()) :] if line.strip() else ""


def rewritten(quoted: str, present: str, new: str) -> str:
    """What becomes of a line of the file, without indentation, when quoted → new: its own typography stays.

    Raises Uncertain where the change adds or removes such characters as were quoted otherwise.
    """
    end = trailing(present) if trailing(quoted) == trailing(new) else trailing(new)
    if quoted.strip() == present.strip():
        return new.strip() + end
    (ours, our_mark), (theirs, mark), (wanted, new_mark) = map(_marked, (quoted, present, new))
    if our_mark == new_mark:
        new_mark = mark
    elif mark not in {our_mark, new_mark}:
        raise Uncertain("the end of a line was quoted differently")
    old, held, made = _TOKEN.findall(ours), _TOKEN.findall(theirs), _TOKEN.findall(wanted)
    if list(map(_kind, old)) != list(map(_kind, held)):
        raise Uncertain("a replaced line is different there")
    misquoted = {_kind(one) for one, other in zip(old, held, strict=True) if one != other}
    pieces: list[str] = []
    at = 0
    for hunk in diff(old, made):
        pieces += held[at : hunk.old_start]
        at = hunk.old_end
        touched = [*old[hunk.old_start : at], *made[hunk.new_start : hunk.new_end]]
        if misquoted - {" "} & set(map(_kind, touched)):
            raise Uncertain("the change touches characters that were quoted differently")
        pieces += made[hunk.new_start : hunk.new_end]
    return "".join((*pieces, *held[at:])) + new_mark + end


def check_new(new: Iterable[str], quoted: Sequence[str], present: Sequence[str]) -> None:
    """Raise Uncertain where lines that replace no single line hold what the lines around were quoted otherwise in."""
    misquoted: set[str] = set()
    for one, other in zip(quoted, present, strict=True):
        if one.strip() == other.strip():
            continue
        (ours, our_mark), (theirs, mark) = _marked(one), _marked(other)
        if our_mark != mark:
            raise Uncertain("a comma or semicolon was left out or added, so the end of new lines is uncertain")
        held, old = _TOKEN.findall(theirs), _TOKEN.findall(ours)
        misquoted |= {_kind(a) for a, b in zip(old, held, strict=False) if a != b}
    if misquoted - {" "} & {_kind(token) for line in new for token in _TOKEN.findall(line)}:
        raise Uncertain("the new lines hold characters that were quoted differently next to them")


def _marked(line: str) -> tuple[str, str]:
    """A line without indentation, and the comma or semicolon at its end."""
    text = line.strip()
    return (text[:-1].rstrip(), text[-1]) if len(text) > 1 and text.endswith(_ENDS) else (text, "")


def _kind(token: str) -> str:
    return " " if token.isspace() else token.translate(_PLAIN)


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
    wanted = [key[:_COMPARED_CHARS] for key in map(key_of, passage[:_COMPARED_LINES])]
    text = [key[:_COMPARED_CHARS] for key in keys or map(key_of, lines)]
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
        old, new = passage[hunk.old_start : hunk.old_end], there[hunk.new_start : hunk.new_end]
        rows += (f"-{line}" for line in parts_that_differ(old, new, _MOST_CHARS))
        rows += (f"+{line}" for line in parts_that_differ(new, old, _MOST_CHARS))
    more = len(rows) - _ROWS
    return "\n".join([*rows[:_ROWS], *([f"and {more} rows more"] if more > 0 else [])])
