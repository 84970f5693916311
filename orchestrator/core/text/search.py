"""Searches the lines of a file: for a text here, by what a `Matcher` says for all ways to match."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import Literal, NamedTuple, Protocol

import msgspec

from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.text.charsets import holds
from orchestrator.core.text.sweep_expressions import literal_expression

MOST_SUBMATCHES = 100
"""Of one line that are reported: a line may be the whole file."""
Spans = tuple[tuple[int, int], ...]

_I = re.compile("[iI\u0130\u0131]")
"""One letter to `re.IGNORECASE`; by simple case folding three."""

_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")


MatchType = Literal["exact", "regex", "fuzzy", "semantic"]


class Match(msgspec.Struct, frozen=True):
    """A line with the pattern in it, or the lines over which it goes; with `invert`, a line without.

    `line` is 1-based; `text` has its lines joined by newlines; `submatches` are (start, end) in characters of `text`,
    0-based, half-open, ascending; `before` and `after` are the neighbouring lines, whether they match or not.
    """

    line: int
    text: str
    submatches: Spans
    before: tuple[str, ...]
    after: tuple[str, ...]
    rows: int = 1  # lines of `text`
    score: float = 1.0
    context: str | None = None  # the symbols around it
    before_text: int | None = 0  # characters of the line that were left out before `text`; None: not counted

    @property
    def last(self) -> int:
        """The last of its lines, 1-based."""
        return self.line + self.rows - 1


class Found(msgspec.Struct, frozen=True):
    """The first hits, ascending, and how many there are in all."""

    hits: tuple[Match, ...]
    total: int
    lines: int  # of the text
    partial: bool = False  # not all places were looked at
    best: float = 0.0  # of a fuzzy search, the best score
    reason: str | None = None  # why it is partial, where that is told


class NotAll(Exception):
    """More may match than what came: there are too many places to look at."""


TOO_MANY = "a part of the pattern is at too many places to compare all: send a longer pattern, or fewer max_edits"
TOO_COSTLY = "it takes too long to match: send a simpler pattern, or search fewer files"
"""Why not all of a text was searched."""


class Spot(NamedTuple):
    """Where a text matches: 0-based line, how many lines, and what of them, in characters of these lines joined."""

    line: int
    rows: int
    spans: Spans
    score: float = 1.0


class Matcher(Protocol):
    """One way to match. It can be packed and sent to a worker."""

    kind: MatchType
    multiline: bool

    @property
    def looks_beside(self) -> bool:
        """Whether it may depend on what is beside a text whether that matches."""

    @property
    def cheap(self) -> bool:
        """Whether a short text is looked through in no time, whatever it holds."""

    @property
    def sweep(self) -> tuple[str, ...] | None:
        """Expressions for ripgrep, one of which fits in every file with a match; None: there are none."""

    def maybe(self, data: bytes) -> bool:
        """Whether a file of these bytes can match; False is certain, and saves decoding."""

    def spots(self, lines: Sequence[str], *, spans: bool = True) -> Iterator[Spot]:
        """The matches, ascending by line; at most one begins on a line. Raises NotAll behind the last of some.

        Without `spans` they need not say where in their lines they are, which takes longer than to find them.
        """


class Pattern:
    """A text to look for, within a line, exactly as it is written.

    Without `case_sensitive` letters are compared by Unicode's simple case folding, as RE2 and
    ripgrep do, character by character, so that positions are those of the text; `ß` finds `ẞ`,
    but not `SS`, and `i` neither `ı` nor `İ`. With `word` neither neighbour may be a letter,
    digit or underscore of any script.
    Raises ParameterInvalid for an empty text or one of several lines.
    """

    kind: MatchType = "exact"
    multiline = False
    cheap = True

    def __init__(self, text: str, *, case_sensitive: bool = True, word: bool = False) -> None:
        if not text:
            raise ParameterInvalid("pattern", "it is empty")
        if "\n" in text or "\r" in text:
            hint = "Search for one of its lines; or send mode='regex' with multiline=true, or mode='fuzzy'."
            raise ParameterInvalid("pattern", "it contains a line break", hint=hint)
        self.text, self.case_sensitive, self.word = text, case_sensitive, word
        source = re.escape(text) if case_sensitive else _I.sub(_own_case, re.escape(text))
        if word:
            source = rf"(?<!\w){source}(?!\w)"
        self.expression = re.compile(source, re.NOFLAG if case_sensitive else re.IGNORECASE)
        self._needle = text.encode("utf-8", "surrogatepass")
        self._folded = text.lower().encode("ascii", "replace")

    @property
    def looks_beside(self) -> bool:
        return self.word

    @property
    def plain(self) -> bool:
        """Whether every place where it is written is a match, and no other."""
        return self.case_sensitive and not self.word

    @property
    def sweep(self) -> tuple[str, ...]:
        return (literal_expression(self.text, case_sensitive=self.case_sensitive),)

    def maybe(self, data: bytes) -> bool:
        """Whether a file of these bytes can hold the pattern, in any encoding that we read.

        False is certain and saves decoding; True is not. Never False for UTF-16. Without
        `case_sensitive` only an ASCII file can be ruled out; with it, text beyond ASCII rules out
        UTF-8 and no more. Of no use for an inverted search. Cost: O(len(data)), in C.
        """
        if data.startswith(_WIDE_MARKS):
            return True
        if self.case_sensitive:
            return self._needle in data or not (
                self.text.isascii() or data.isascii() or holds(data, "utf-8") is not None
            )
        if not data.isascii() or not self.text.isascii():
            return True
        return self._folded in data.lower()

    def spots(self, lines: Sequence[str], *, spans: bool = True) -> Iterator[Spot]:
        text = "\n".join(lines)
        if self.case_sensitive and self.text not in text:
            return
        if not spans:
            yield from self._lines(text)
            return
        starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
        at = 0
        while (match := self.expression.search(text, at)) is not None:
            line = bisect_right(starts, match.start()) - 1
            found = islice(self.expression.finditer(lines[line]), MOST_SUBMATCHES)
            yield Spot(line, 1, tuple(match.span() for match in found))
            at = starts[line + 1]

    def _lines(self, text: str) -> Iterator[Spot]:
        """Each line that matches."""
        line = at = 0
        plain, find, found = self.plain, self.expression.search, -1
        while True:
            if plain:
                found = text.find(self.text, at)
            elif (match := find(text, at)) is not None:
                found = match.start()
            else:
                return
            if found < 0:
                return
            line += text.count("\n", at, found)
            yield Spot(line, 1, ())
            end = text.find("\n", found)
            if end < 0:
                return
            line, at = line + 1, end + 1


def _own_case(found: re.Match[str]) -> str:
    return "(?-i:[iI])" if found[0] in "iI" else f"(?-i:{found[0]})"


def search(
    lines: Sequence[str],
    pattern: Matcher,
    *,
    context_lines: int = 2,
    invert: bool = False,
    max_hits: int = 20,
    beyond: int = 0,
) -> Found:
    """The lines with the pattern in them, or without it if `invert`; the first `max_hits` beyond line `beyond` in full.

    Cost: one pass of the matcher over the text, then O(hits).
    """
    found: Iterable[Spot] = _without(lines, pattern) if invert else pattern.spots(lines, spans=max_hits > 0)
    hits: list[Match] = []
    total, reason, best = 0, None, 0.0
    try:
        for spot in found:
            total, best = total + 1, max(best, spot.score)
            if spot.line >= beyond and len(hits) < max_hits:
                hits.append(_match(lines, spot, context_lines))
    except NotAll:
        reason = TOO_MANY
    best = best if pattern.kind == "fuzzy" else 0.0
    return Found(tuple(hits), total, len(lines), reason is not None, best, reason)


def _match(lines: Sequence[str], spot: Spot, context_lines: int) -> Match:
    end = spot.line + spot.rows
    before, after = lines[max(spot.line - context_lines, 0) : spot.line], lines[end : end + context_lines]
    text = lines[spot.line] if spot.rows == 1 else "\n".join(lines[spot.line : end])
    return Match(spot.line + 1, text, spot.spans, tuple(before), tuple(after), spot.rows, spot.score)


def _without(lines: Sequence[str], pattern: Matcher) -> Iterator[Spot]:
    matching = {at for spot in pattern.spots(lines, spans=False) for at in range(spot.line, spot.line + spot.rows)}
    return (Spot(at, 1, ()) for at in range(len(lines)) if at not in matching)
