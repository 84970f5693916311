"""Whether a line that somebody quotes and a line of the file say the same, and so mean the same place.

Likeness alone can't tell: `read_timeout` and `write_timeout`, `>=` and `<`, `bob` and `rob` are nearly the same
characters, and a typo in a name looks as another name does. So a line is compared token by token, and what code
says must be equal: names, keys, operators, numbers, the contents of strings, and the words of prose, which may be a
string's. Free are blanks, the kind of quotes, a comma, semicolon or full stop at the end, and words of a comment, where
code beside it tells the place. Of these numbers, names, negations and their like must be equal too, and most other
words. In doubt a line is code. And lines step in and out as they are quoted: a block's end is part of what code says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from orchestrator.core.text.explaining import alike, is_sentence, words_of
from orchestrator.core.text.indent import depth_of

_CURLED = str.maketrans({"\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2018": "'", "\u2019": "'", "\u201a": "'"})
_TOKEN = re.compile(r"\s+|\w+|.", re.DOTALL)
_PREFIX = re.compile(r"(?:^|\W)(?:[rbfuRBFU]{1,2})$")
_COMMENT = re.compile(r"\s*(?P<mark>#|//[/!]?|--|/\*\*?|\*|<!--)(?P<text>.*)", re.DOTALL)
_CLOSED = re.compile(r"\s*(?:\*/|-->|\"\"\"|''')\s*$")
_DIRECTIVE = re.compile(
    r"\s*(?:[@:!]|(?:include|define|undef|if|ifdef|ifndef|elif|else|endif|pragma|error|line)\b(?!.*\b(?:the|a|an|is|are)\b))"
)
_CODE = re.compile(r"[=<>{}\[\]|&$\\^~%]|\w\(|\*/|-->")
_TRAILING = re.compile(r"(?:#|//|--|/\*)(?=\s)")
TAB = 4
"""Columns that a tab counts beside blanks."""

_ELIDED = re.compile(r"\.\.\.|\u2026")
_WORD = re.compile(r"\w")


class Said(msgspec.Struct, frozen=True):
    """What a line says: tokens of code, which must be equal, and words that explain."""

    code: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


def same(quoted: str, present: str) -> bool:
    """Whether a quoted line may stand for one of the file."""
    if quoted == present:
        return True
    ours, theirs = said(quoted), said(present)
    return ours.code == theirs.code and alike(ours.words, theirs.words, beside_code=bool(ours.code))


def said(line: str) -> Said:
    """Read one line, in whatever language; a line inside of a longer comment or string is read as any other."""
    text = line.translate(_CURLED)
    comment = _comment_of(text)
    if comment is not None and not _strict(comment):
        return Said(words=words_of(comment))
    return _read(text)


def explains(line: str) -> bool:
    """Whether the whole line is a comment."""
    text = line.translate(_CURLED)
    found = _COMMENT.match(text)
    if found is None:
        return False
    comment = _comment_of(text)
    return comment is not None and (not _strict(comment) or (found["mark"] in ("#", "//") and not _told(comment)))


def tells_nothing(line: str) -> bool:
    """Whether a line has no word: blank, dots, a bracket."""
    return _WORD.search(line) is None


def stands_there(passage: Sequence[str], lines: Sequence[str], pairs: Sequence[tuple[int, int]]) -> bool:
    """Whether a passage means the place whose lines its own are paired with, ascending.

    What pairs says the same; what does not pair tells nothing, or is a comment in whose place the file has none:
    two comments of other words may be all that tells two places from each other.
    """
    if not all(same(passage[i], lines[j]) for i, j in pairs) or not same_shape(passage, lines, pairs):
        return False
    if any(_explained_otherwise(passage[i], lines[j]) for i, j in pairs) and not any(
        said(passage[i]).code and not tells_nothing(passage[i]) for i, j in pairs
    ):
        return False  # a comment alone tells no place
    partner = dict(pairs)
    missing = [i for i in range(len(passage)) if i not in partner and not tells_nothing(passage[i])]
    return all(explains(passage[i]) and _uncontested(i, passage, lines, pairs) for i in missing)


def same_shape(passage: Sequence[str], lines: Sequence[str], pairs: Sequence[tuple[int, int]]) -> bool:
    """Whether lines step in and out as they are quoted; or are quoted without any indentation at all."""
    rows = [(passage[i], lines[j]) for i, j in pairs if passage[i].strip() and lines[j].strip()]
    depths = [(depth_of(quoted, TAB), depth_of(present, TAB)) for quoted, present in rows]
    if not any(quoted for quoted, _ in depths):
        return True
    return all(_step(a, b) == _step(c, d) for (a, c), (b, d) in pairwise(depths))


def _step(one: int, next_one: int) -> int:
    return (next_one > one) - (next_one < one)


def _explained_otherwise(quoted: str, present: str) -> bool:
    """Whether two lines that say the same say it in other words."""
    return said(quoted).words != said(present).words


def _uncontested(i: int, passage: Sequence[str], lines: Sequence[str], pairs: Sequence[tuple[int, int]]) -> bool:
    """Whether no comment of the file stands where one that was quoted is missing."""
    if _ELIDED.search(passage[i]):
        return True
    above = max((pair for pair in pairs if pair[0] < i), default=None)
    below = min((pair for pair in pairs if pair[0] > i), default=None)
    reach = len(passage)
    start = above[1] + 1 if above is not None else max(0, below[1] - reach) if below is not None else 0
    stop = below[1] if below is not None else start + reach
    between = [line for line in lines[start:stop] if line.strip()]
    if above is None:  # the comment right over the place, if there is one
        between = between[-1:]
    elif below is None:
        between = between[:1]
    return not any(explains(line) for line in between)


def _comment_of(text: str) -> str | None:
    """What a line that is all comment says; None for any other line."""
    found = _COMMENT.match(text)
    if found is None:
        return None
    rest = found["text"]
    if rest and not rest[0].isspace():
        return None  # `#include`, `#id`, `//go:build`, `*pointer`, `--flag`
    return _CLOSED.sub("", rest)


def _strict(comment: str) -> bool:
    return _told(comment) or _CODE.search(comment) is not None


def _told(comment: str) -> bool:
    """Whether it is told to a program, as `# define` and `@param` are."""
    return _DIRECTIVE.match(comment) is not None


def _read(text: str) -> Said:
    """Tokens of code up to a comment at the end of the line, and that comment's words."""
    tokens: list[str] = []
    words: tuple[str, ...] = ()
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        assert found is not None
        token = found.group()
        if token in ('"', "'", "`") and (end := _end_of_string(text, at)) is not None:
            kind = "`" if token == "`" else '"'
            inner = (piece.group() for piece in _TOKEN.finditer(text, at + 1, end))
            tokens += [kind, *(_in_string(piece) for piece in inner), kind]
            at = end + 1
            continue
        if tokens and (comment := _trailing(text, at)) is not None:
            words = words_of(comment)
            break
        if not token.isspace():
            tokens.append('"' if token == "'" else token)
        at = found.end()
    while tokens and tokens[-1] in (",", ";", "."):
        tokens.pop()
    return Said(tuple(tokens), words)


def _in_string(piece: str) -> str:
    if piece.isspace():
        return " "
    return '"' if piece == "'" else piece


def _end_of_string(text: str, at: int) -> int | None:
    """Where the string that a quote opens is closed in this line; None where it opens none."""
    quote = text[at]
    if quote == "'" and at and (text[at - 1].isalnum() or text[at - 1] == "_") and not _PREFIX.search(text[:at]):
        return None  # an apostrophe
    end = at + 1
    while end < len(text) and text[end] != quote:
        end += 2 if text[end] == "\\" else 1
    return end if end < len(text) else None


def _trailing(text: str, at: int) -> str | None:
    """What a comment says that begins here, behind code.

    `//` divides in Python and ` -- ` ends options in a shell, so what follows them must be a sentence, unless what
    stands before can't be divided.
    """
    found = _TRAILING.match(text, at)
    if found is None or not text[at - 1].isspace():
        return None
    rest = text[found.end() :]
    comment = _CLOSED.sub("", rest)
    if found.group() == "/*" and comment == rest and not is_sentence(comment):
        return None
    if found.group() in ("//", "--") and text[:at].rstrip()[-1] not in ";{},|" and not is_sentence(comment):
        return None
    return None if _strict(comment) else comment
