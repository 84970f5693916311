"""Passages like a text: with at most so many characters added, left out or exchanged, wherever they begin.

Who cuts a text into one piece more than there may be edits finds one of the pieces as it is in every passage like it
(pigeonhole). So the pieces are found first, as fast as any text, and only what is around them is compared.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.text.search import MOST_SUBMATCHES, MatchType, NotAll, Pattern, Spans, Spot
from orchestrator.core.text.sweep_expressions import literal_expression

MOST_EDITS = 5

MOST_PLACES = 50_000
"""Places of pieces in one text that are looked at; that takes half a second. Of more, the first."""

CHARACTERS_OF_EDIT = 3
"""By default there is one edit, up to two, for so many characters."""


class Piece(NamedTuple):
    """A part of a text that is looked for, and where in it that is."""

    at: int
    text: str


class Near(NamedTuple):
    """A passage of a text like the one that is looked for."""

    edits: int
    start: int
    end: int


class FuzzyPattern:
    """A text, or several lines of it, that may be misspelt in `max_edits` places.

    A text of one line is sought within lines; in one of several lines, line ends may be added or left out, too.
    Raises ParameterInvalid where so many edits would make anything of it.
    """

    kind: MatchType = "fuzzy"
    cheap = False
    looks_beside = True

    def __init__(self, text: str, *, max_edits: int | None = None, case_sensitive: bool = True) -> None:
        self.text = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
        if not self.text:
            raise ParameterInvalid("pattern", "it is empty")
        allowed = min(2, len(self.text) // CHARACTERS_OF_EDIT)
        self.max_edits = allowed if max_edits is None else max_edits
        self.case_sensitive = case_sensitive
        self.multiline = "\n" in self.text
        self._wanted = self.text if case_sensitive else folded(self.text)
        found = pieces(self._wanted, self.max_edits + 1)
        if found is None:
            why = f"{self.max_edits} edits make anything of {len(self.text)} characters"
            raise ParameterInvalid("max_edits", why, hint="Send fewer edits, or a longer pattern.")
        self._pieces = found

    def __reduce__(self) -> tuple[Callable[..., FuzzyPattern], tuple[object, ...]]:
        return _unpacked, (self.text, self.max_edits, self.case_sensitive)

    @property
    def sweep(self) -> tuple[str, ...]:
        return tuple(literal_expression(piece.text, case_sensitive=self.case_sensitive) for piece in self._pieces)

    @cached_property
    def _exact(self) -> tuple[Pattern, ...]:
        return tuple(Pattern(piece.text, case_sensitive=self.case_sensitive) for piece in self._pieces)

    def maybe(self, data: bytes) -> bool:
        return any(piece.maybe(data) for piece in self._exact)

    def spots(self, lines: Sequence[str], *, spans: bool = True) -> Iterator[Spot]:
        text = "\n".join(lines)
        places = self._places(text if self.case_sensitive else folded(text))
        line = start = 0
        chosen = _apart(places)
        while chosen:
            line += text.count("\n", start, chosen[0].start)
            start = text.rfind("\n", 0, chosen[0].start) + 1
            end, here = _line_end(text, chosen[0].end), list[Near]()
            while chosen and chosen[0].start <= end:
                end = _line_end(text, max(end, chosen[0].end))
                here.append(chosen.popleft())
            within: Spans = tuple((near.start - start, near.end - start) for near in here[:MOST_SUBMATCHES])
            edits = min(near.edits for near in here)
            yield Spot(line, text.count("\n", start, end) + 1, within, round(1 - edits / len(self.text), 3))
        if places.cut:
            raise NotAll

    def _places(self, text: str) -> _Places:
        """All passages like it that hold one of the pieces as it is, each with the fewest edits."""
        found, looked = _Places(), 0
        for piece in self._pieces:
            at = text.find(piece.text)
            while at >= 0:
                looked += 1
                if looked > MOST_PLACES:
                    found.cut = True
                    return found
                near = self._around(text, piece, at)
                if near is not None:
                    found.append(near)
                at = text.find(piece.text, at + 1)
        return found

    def _around(self, text: str, piece: Piece, at: int) -> Near | None:
        """The passage in which the piece is at this place, if there is one."""
        wanted, most, end = self._wanted, self.max_edits, at + len(piece.text)
        head, tail = wanted[: piece.at], wanted[piece.at + len(piece.text) :]
        first, last = max(0, at - len(head) - most), min(len(text), end + len(tail) + most)
        if not self.multiline:
            first = max(first, text.rfind("\n", first, at) + 1)
            stop = text.find("\n", end, last)
            last = stop if stop >= 0 else last
        before, left = _nearest(head[::-1], text[first:at][::-1], most)
        if before > most:
            return None
        after, right = _nearest(tail, text[end:last], most - before)
        if before + after > most:
            return None
        return Near(before + after, at - left, end + right)


class _Places(list[Near]):
    """`cut`: there are more."""

    cut = False


def _nearest(wanted: str, text: str, most: int) -> tuple[int, int]:
    """The fewest edits between a text and the beginning of another, up to `most`, and how long that beginning is."""
    from rapidfuzz.distance import Levenshtein  # in the workers alone

    if text.startswith(wanted):
        return 0, len(wanted)
    best, length = most + 1, 0
    shortest, longest = max(0, len(wanted) - most), min(len(text), len(wanted) + most)
    for size in sorted(range(shortest, longest + 1), key=lambda size: abs(size - len(wanted))):
        edits = Levenshtein.distance(wanted, text[:size], score_cutoff=best - 1)
        if edits < best:
            best, length = edits, size
            if not best:
                break
    if text[:length].endswith("\n") and Levenshtein.distance(wanted, text[: length - 1]) == best:
        length -= 1  # a line end that does not matter
    return best, length


def pieces(text: str, count: int) -> tuple[Piece, ...] | None:
    """So many parts of a text, apart from each other and each within a line, as long as can be.

    None if it is too short. The shortest is what takes longest to look for, so none is shorter than it must be.
    """
    lines, at = list[tuple[int, int]](), 0
    for line in text.split("\n"):
        lines.append((at, len(line)))
        at += len(line) + 1
    size = next((size for size in range(len(text) // count, 0, -1) if sum(n // size for _, n in lines) >= count), 0)
    if not size:
        return None
    found = list[Piece]()
    for start, length in sorted(lines, key=lambda line: -line[1]):
        parts = min(length // size, count - len(found))
        for part in range(parts):
            first, last = start + part * length // parts, start + (part + 1) * length // parts
            found.append(Piece(first, text[first:last]))
    return tuple(found)


def folded(text: str) -> str:
    """The text in small letters, character by character."""
    small = text.lower()
    if len(small) != len(text):
        small = "".join(low if len(low := char.lower()) == 1 else char for char in text)
    return small.replace("ς", "σ")  # which of them a capital becomes depends on what is around it


def _apart(places: list[Near]) -> deque[Near]:
    """Those with the fewest edits of which none lies over another, in their order."""
    chosen = list[Near]()
    for near in sorted(set(places), key=lambda near: (near.edits, near.start - near.end, near.start)):
        at = bisect_left(chosen, near.start, key=lambda other: other.start)
        if (at and chosen[at - 1].end > near.start) or (at < len(chosen) and chosen[at].start < near.end):
            continue
        chosen.insert(at, near)
    return deque(chosen)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _unpacked(text: str, max_edits: int, case_sensitive: bool) -> FuzzyPattern:
    return FuzzyPattern(text, max_edits=max_edits, case_sensitive=case_sensitive)
