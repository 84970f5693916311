"""Lines that begin inside a string literal: their blanks are content, so they are never reindented."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_OPENER = re.compile(r'"""|\'\'\'|`|<<<?[-~]?[\'"]?[A-Za-z_]')
_PIECE = re.compile(
    r"""(?P<triple>\"\"\"|\'\'\')|(?:^|(?<=[\s(,\[]))<<<?[-~]?(?P<q>['"]?)(?P<word>[A-Za-z_]\w*)(?P=q)"""
    r"""|(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`{3,})|(?P<tick>`)"""
    r"""|(?P<comment>(?:^|(?<=\s))(?:#|//)(?=\s|$).*)""",
    re.DOTALL,
)
_HEADER = re.compile(r"\s*(?:(?:async\s+def|def|class)\b.*|\).*):\s*(?:#.*)?$")
_DOC = re.compile(r"\s*[rRuU]?(?:\"\"\"|\'\'\')")


class Opened(NamedTuple):
    """A string in which a line begins: what closes it, and whether it is a Python docstring."""

    quote: str
    doc: bool


def inside_strings(lines: Sequence[str]) -> dict[int, Opened]:
    """The 0-based lines that begin inside of a triple-quoted string, a template string or a here-document.

    A Python docstring is marked as such: it is indented with its code, and its reader removes the indentation.
    A string that is never closed is none. Cost: O(characters) of lines that hold such a quote.
    """
    opened: Opened | None = None
    inside: dict[int, Opened] = {}
    pending: dict[int, Opened] = {}
    for at, line in enumerate(lines):
        if opened is None and not _OPENER.search(line):
            continue
        if opened is not None:
            pending[at] = opened
        before, (closed, quote) = opened, _through(line, opened.quote if opened else None)
        if closed:
            inside |= pending
            pending = {}
        if quote is None:
            opened = None
        elif closed or before is None:
            opened = Opened(quote, _DOC.match(line) is not None and _heads(lines, at))
            if quote.isidentifier() and quote not in map(str.strip, lines[at + 1 :]):
                opened = None  # a shift, or a stream
    return inside


def _through(line: str, opened: str | None) -> tuple[bool, str | None]:
    """One line on: whether it closes the string that was open, and what closes the one that is open at its end."""
    start, closed = 0, False
    if opened is not None:
        if opened.isidentifier():  # a here-document
            return (True, None) if line.strip() == opened else (False, opened)
        end = _end(line, opened, 0)
        if end is None:
            return False, opened
        start, closed = end, True
    here: str | None = None
    while (found := _PIECE.search(line, start)) is not None:
        start = found.end()
        quote = found["triple"] or found["tick"]
        if found["word"] is not None:
            here = here or found["word"]
        elif quote is not None:
            end = _end(line, quote, start)
            if end is None:
                return closed, quote
            start = end
    return closed, here


def _end(line: str, quote: str, start: int) -> int | None:
    """Where a string ends, behind its quote."""
    while (at := line.find(quote, start)) >= 0:
        slashes = len(line[:at]) - len(line[:at].rstrip("\\"))
        if slashes % 2 == 0:
            return at + len(quote)
        start = at + 1
    return None


def _heads(lines: Sequence[str], at: int) -> bool:
    """Whether the line above begins the body of a function or class."""
    above = next((line for line in reversed(lines[:at]) if line.strip()), None)
    return above is not None and _HEADER.match(above) is not None
