"""Regular expressions in linear time: RE2's, so that no expression and no text can hold anybody up."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any

from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.text.regex_reach import most_line_breaks
from orchestrator.core.text.search import MOST_SUBMATCHES, MatchType, Spans, Spot
from orchestrator.core.text.sweep_expressions import RETURN, regex_expression

MOST_MEMORY = 4 << 20
"""Of one compiled expression that is checked; a larger one is refused."""

MATCHING_MEMORY, MOST_MATCHING = 32 << 20, 8
"""Of one that matches, and how many of them are kept. Where its states do not fit in, RE2 takes a hundred times as long
for each character: `.{0,900}x` has 900 of 4 KB."""

_BESIDE = r"[^\p{L}\p{N}_]"
_BESIDE_IT = re.compile(r"(?<!\[)\^|\$|\\[bBAz]")
_LINE_BREAK = re.compile(r"(?<!\\)(?:\\\\)*(\\n|\n)")
_LIKELY = re.compile(
    r"\.[*+?]|\\[dwsbDWSB.()\[\]|*+?{]|\[\^?[^\]\s]{2,}\][*+?{]?|\w\|\w|^\^|\$$|\(\?|[\w)]\{\d+,?\d*\}|\w[*+](?:\W|$)"
)
_LOOKING = re.compile(r"\(\?<?[=!]|\(\?>|\\[1-9]|\(\?P=")


class RegexPattern:
    r"""An expression to look for within a line; with `multiline` also across lines.

    `^` and `$` are a line's ends. `\w`, `\d`, `\s` and `\b` are of ASCII, `\p{L}` is any letter. With `word` neither
    neighbour of a match may be a letter, digit or underscore of any script.
    Raises ParameterInvalid, with the place, for what RE2 does not take.
    """

    kind: MatchType = "regex"
    cheap = False

    def __init__(self, text: str, *, case_sensitive: bool = True, word: bool = False, multiline: bool = False) -> None:
        if not multiline and (found := _LINE_BREAK.search(text)) is not None:
            hint = "Send multiline=true, so that a match may go over several lines."
            raise ParameterInvalid("pattern", f"it has a line break at {found.start(1) + 1}", hint=hint)
        self.text, self.case_sensitive, self.word, self.multiline = text, case_sensitive, word, multiline
        compiled(text, case_sensitive=case_sensitive, multiline=multiline)

    def __reduce__(self) -> tuple[Callable[..., RegexPattern], tuple[object, ...]]:
        return _unpacked, (self.text, self.case_sensitive, self.word, self.multiline)

    @property
    def looks_beside(self) -> bool:
        return self.word or _BESIDE_IT.search(self.text) is not None

    @cached_property
    def most_breaks(self) -> int | None:
        """How many line ends a match may go over; None: any number."""
        return most_line_breaks(self.text, _matches_break) if self.multiline else 0

    @property
    def sweep(self) -> tuple[str, ...] | None:
        expression = regex_expression(self.text, case_sensitive=self.case_sensitive)
        if expression is None:
            return None
        return (expression, RETURN) if self.multiline else (expression,)  # we see every line end as a newline

    def maybe(self, data: bytes) -> bool:
        return True

    @cached_property
    def _expression(self) -> Any:
        text = rf"(?:^|{_BESIDE})({self.text})(?:$|{_BESIDE})" if self.word else self.text
        return _matching(text, self.case_sensitive, self.multiline)

    def spots(self, lines: Sequence[str], *, spans: bool = True) -> Iterator[Spot]:
        if not lines:
            return
        text = ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")
        line = start = 0
        span = self._next(text, 0)
        while span is not None and span[0] < len(text):
            line += text.count(b"\n", start, span[0])
            start, end = text.rfind(b"\n", 0, span[0]) + 1, -1
            while span is not None and (end < 0 or span[0] <= end):  # the next may go on where this one ends
                end = text.find(b"\n", max(span[0], span[1] - 1, end))
                span = self._next(text, _behind(text, span) if self.multiline else end + 1)
            rows = text.count(b"\n", start, end) + 1
            yield Spot(line, rows, self._spans(text, start, end) if spans else ())
            line += rows
            start = end + 1

    def _next(self, text: bytes, at: int, end: int | None = None) -> tuple[int, int] | None:
        found = self._expression.search(text, at, end)
        if found is None:
            return None
        span: tuple[int, int] = found.span(int(self.word))
        return span

    def _spans(self, text: bytes, start: int, end: int) -> Spans:
        """The matches within these bytes, which are whole lines, in characters."""
        spans, at, here = list[tuple[int, int]](), start, 0
        for first, last in islice(self._within(text, start, end), MOST_SUBMATCHES):
            here += len(text[at:first].decode("utf-8", "replace"))
            at = min(last, end)
            spans.append((here, here := here + len(text[first:at].decode("utf-8", "replace"))))
        return tuple(spans)

    def _within(self, text: bytes, at: int, end: int) -> Iterator[tuple[int, int]]:
        while at <= end and (span := self._next(text, at, end + 1)) is not None and span[0] <= end:
            yield span
            at = _behind(text, span)


def _behind(text: bytes, span: tuple[int, int]) -> int:
    """Where the next match may begin: behind this one, and if it is empty, behind the next character of UTF-8."""
    begin, at = span
    if at > begin:
        return at
    at += 1
    while at < len(text) and text[at] & 0xC0 == 0x80:  # a byte that goes on
        at += 1
    return at


def _unpacked(text: str, case_sensitive: bool, word: bool, multiline: bool) -> RegexPattern:
    return RegexPattern(text, case_sensitive=case_sensitive, word=word, multiline=multiline)


@lru_cache(maxsize=64)
def compiled(text: str, *, case_sensitive: bool, multiline: bool) -> Any:
    """The expression, checked. Raises ParameterInvalid."""
    return _compiled(text, case_sensitive, multiline, MOST_MEMORY)


@lru_cache(maxsize=MOST_MATCHING)
def _matching(text: str, case_sensitive: bool, multiline: bool) -> Any:
    """An expression that was checked, with room for its states."""
    return _compiled(text, case_sensitive, multiline, MATCHING_MEMORY)


def _compiled(text: str, case_sensitive: bool, multiline: bool, most_memory: int) -> Any:
    import re2  # type: ignore[import-untyped]  # without stubs; loaded for who searches by one

    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = case_sensitive
    options.never_nl = not multiline
    options.max_mem = most_memory
    try:
        return re2.compile(f"(?m){text}", options)
    except (re2.error, UnicodeEncodeError) as error:
        why = error.args[0].decode("utf-8", "replace") if isinstance(error, re2.error) else str(error)
        raise ParameterInvalid("pattern", _explained(text, why), hint=_hint(text, why)) from None


def _matches_break(text: str) -> bool:
    return compiled(text, case_sensitive=True, multiline=True).fullmatch("\n") is not None


def _explained(text: str, why: str) -> str:
    """RE2's words, and where in the pattern that is."""
    what, _, fragment = why.partition(": ")
    fragment = fragment.removeprefix("(?m)")
    at = _unclosed(text) if what == "missing )" else text.find(fragment) if fragment else -1
    where = f" at character {at + 1}" if at >= 0 else ""
    return f"it is no regular expression{where}: {what}{f': {fragment}' if fragment else ''}"


def _unclosed(text: str) -> int:
    """Where the innermost group begins that does not end; 0-based."""
    opened = list[int]()
    for found in re.finditer(r"\\.|\[\^?\]?(?:\\.|[^\]])*\]|[()]", text, re.DOTALL):
        if found[0] == "(":
            opened.append(found.start())
        elif found[0] == ")" and opened:
            opened.pop()
    return opened[-1] if opened else -1


def _hint(text: str, why: str) -> str:
    if _LOOKING.search(text):
        return "There is no look-around and no back-reference (RE2). Search for a part of it, or twice."
    if "too large" in why:
        return "It is too large. Search for less at once."
    return "Correct it; a backslash makes a sign literal, and mode='exact' takes the text as it is written."


def looks_like_regex(text: str) -> bool:
    """Whether a text was probably meant as an expression."""
    if _LIKELY.search(text) is None:
        return False
    try:
        compiled(text, case_sensitive=True, multiline=False)
    except ParameterInvalid:
        return False
    return True
