"""Finds lines inside a string or comment that began on an earlier line."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final


def _spans(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.DOTALL)


_LINE_COMMENT = r"//[^\n]*"
_COMMENT = r"/\*.*?(?:\*/|\Z)"
_DOUBLE, _SINGLE = r'"(?:\\.|[^"\\\n])*', r"'(?:\\.|[^'\\\n])*"
_CHARACTER = r"'(?:\\[^\n]{1,10}?|[^'\\\n])'"
_REGEX = r"(?<=[(,=:\[!&|?{};+])[ \t]*/(?![*/])(?:\\[^\n]|\[(?:\\[^\n]|[^\]\\\n])*\]|[^/\\\n])+/"
_SCRIPT = _spans(_LINE_COMMENT, _COMMENT, r"`(?:\\.|[^`\\])*`?", _DOUBLE + '"?', _SINGLE + "'?", _REGEX)
_C = _spans(_LINE_COMMENT, _COMMENT, r'R"(?P<end>[^()\\\s]{0,16})\(.*?(?:\)(?P=end)"|\Z)', _DOUBLE + '"?', _CHARACTER)

_LANGUAGES: Final = {
    "python": _spans(
        r"#[^\n]*", r'"""(?:\\.|[^\\])*?(?:"""|\Z)', r"'''(?:\\.|[^\\])*?(?:'''|\Z)", _DOUBLE + '"?', _SINGLE + "'?"
    ),
    "javascript": _SCRIPT,
    "typescript": _SCRIPT,
    "tsx": _SCRIPT,
    "go": _spans(_LINE_COMMENT, _COMMENT, r"`[^`]*`?", _DOUBLE + '"?', _CHARACTER),
    "rust": _spans(
        _LINE_COMMENT, _COMMENT, r'\br(?P<fence>#*)".*?(?:"(?P=fence)|\Z)', r'"(?:\\.|[^"\\])*"?', _CHARACTER
    ),
    "java": _spans(_LINE_COMMENT, _COMMENT, r'"""(?:\\.|[^\\])*?(?:"""|\Z)', _DOUBLE + '"?', _CHARACTER),
    "c": _C,
    "cpp": _C,
}
"""All that may hold what would begin or end another string: comments, strings, characters, patterns."""


def begins_quoted(language: str, lines: Sequence[str], start: int, length: int) -> bool:
    """Whether one of the 0-based `lines` of a range begins inside a string or a comment.

    Read without a grammar: strings, comments and what could be mistaken for one of them are skipped.
    Of a language that is not known: False.
    Cost: O(characters) of the lines down to the range.
    """
    spans = _LANGUAGES.get(language)
    if spans is None:
        return False
    text = "\n".join(lines[: start + length])
    begins = list(accumulate((len(line) + 1 for line in lines[: start + length - 1]), initial=0))[start:]
    for match in spans.finditer(text):
        at = bisect_right(begins, match.start())
        if at < len(begins) and begins[at] < match.end():
            return True
    return False
