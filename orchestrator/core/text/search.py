"""Searches the lines of a file for a text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice

import msgspec

from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.text.charsets import holds

MOST_SUBMATCHES = 100
"""Of one line that are reported: a line may be the whole file."""
Spans = tuple[tuple[int, int], ...]

_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")


class Match(msgspec.Struct, frozen=True):
    """A line with the pattern in it; with `invert`, a line without.

    `line` is 1-based; `submatches` are (start, end) in characters of `text`, 0-based, half-open,
    ascending; `before` and `after` are the neighbouring lines, whether they match or not.
    """

    line: int
    text: str
    submatches: Spans
    before: tuple[str, ...]
    after: tuple[str, ...]


class Found(msgspec.Struct, frozen=True):
    """The first hits, ascending, and how many lines hit in all."""

    hits: tuple[Match, ...]
    total: int
    lines: int  # of the text


class Pattern:
    """A text to look for, within a line, exactly as it is written.

    Without `case_sensitive` letters are compared as by `re.IGNORECASE` on Unicode: simple case
    folding, character by character, so that positions are those of the text; `ß` finds `ẞ`, but
    not `SS`. With `word` neither neighbour may be a letter, digit or underscore of any script.
    Raises ParameterInvalid for an empty text or one of several lines.
    """

    def __init__(self, text: str, *, case_sensitive: bool = True, word: bool = False) -> None:
        if not text:
            raise ParameterInvalid("pattern", "it is empty")
        if "\n" in text or "\r" in text:
            raise ParameterInvalid("pattern", "it contains a line break", hint="Search for one of its lines.")
        self.text, self.case_sensitive, self.word = text, case_sensitive, word
        source = rf"(?<!\w){re.escape(text)}(?!\w)" if word else re.escape(text)
        self.expression = re.compile(source, re.NOFLAG if case_sensitive else re.IGNORECASE)
        self._needle = text.encode("utf-8", "surrogatepass")
        self._folded = text.lower().encode("ascii", "replace")

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


def search(
    lines: Sequence[str],
    pattern: Pattern,
    *,
    context_lines: int = 2,
    invert: bool = False,
    max_hits: int = 20,
    beyond: int = 0,
) -> Found:
    """The lines with the pattern in them, or without it if `invert`; the first `max_hits` beyond line `beyond` in full.

    Cost: one pass of the expression over the text, then O(hits).
    """
    without = ((at, ()) for at, line in enumerate(lines) if not pattern.expression.search(line))
    spans: Iterable[tuple[int, Spans]] = without if invert else _straight(lines, pattern)
    hits: list[Match] = []
    total = 0
    for at, submatches in spans:
        total += 1
        if at >= beyond and len(hits) < max_hits:
            before = tuple(lines[max(at - context_lines, 0) : at])
            after = tuple(lines[at + 1 : at + 1 + context_lines])
            hits.append(Match(at + 1, lines[at], submatches, before, after))
    return Found(tuple(hits), total, len(lines))


def _straight(lines: Sequence[str], pattern: Pattern) -> Iterator[tuple[int, Spans]]:
    text = "\n".join(lines)
    if pattern.case_sensitive and pattern.text not in text:
        return
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    at = 0
    while (match := pattern.expression.search(text, at)) is not None:
        line = bisect_right(starts, match.start()) - 1
        found = islice(pattern.expression.finditer(lines[line]), MOST_SUBMATCHES)
        yield line, tuple(match.span() for match in found)
        at = starts[line + 1]
