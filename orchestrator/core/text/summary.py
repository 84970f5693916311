"""The lines that say most of a text: what it tells of itself at its head, then what it defines."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest

import msgspec

from orchestrator.core.content import LineRange
from orchestrator.core.text.symbols import CODE, Outline, Symbol

MOST_HEAD = 12
"""Lines of the leading documentation; where there is none, the first lines that are not blank."""

MOST_DEFINITIONS = 400

_COMMENTS = ("#", "//", "/*", "*", "--", ";", "%", "<!--", '"""', "'''")
_DOCSTRINGS = ('"""', "'''", 'r"""')


class Definition(msgspec.Struct, frozen=True):
    """A symbol as it is announced: by the line on which its name stands."""

    name: str  # dotted
    kind: str
    line: int
    end_line: int
    at: int  # the line that is shown


class KeyLines(msgspec.Struct, frozen=True):
    """What is the same for everybody who asks about a content; definitions: the most telling one first."""

    head: LineRange
    definitions: tuple[Definition, ...]
    symbols: int


def key_lines(outline: Outline, lines: Sequence[str]) -> KeyLines:
    """Cost: O(lines of the head + symbols)."""
    named = list(outline.walk())
    ranked = nlargest(MOST_DEFINITIONS, enumerate(named), key=lambda item: (*_rank(*item[1]), -item[0]))
    definitions = (
        Definition(name, symbol.kind, symbol.line, symbol.end_line, _announced(symbol, lines))
        for _, (name, symbol) in ranked
    )
    return KeyLines(_head(lines), tuple(definitions), len(named))


def _rank(name: str, symbol: Symbol) -> tuple[int, int, int]:
    """Outer before inner, code and public names before others, then the longer one."""
    last = name.rpartition(".")[2]
    private = last.startswith(("_", "test"))
    return -name.count("."), (symbol.kind in CODE) - private, symbol.end_line - symbol.line


def _announced(symbol: Symbol, lines: Sequence[str]) -> int:
    """The first of its lines that holds its name: decorators and comments belong to it, too."""
    for number in range(symbol.line, min(symbol.end_line, len(lines)) + 1):
        if symbol.name in lines[number - 1] and not lines[number - 1].lstrip().startswith(_COMMENTS[:5]):
            return number
    return symbol.line


def _head(lines: Sequence[str]) -> LineRange:
    """The leading comment or docstring; else the first paragraph."""
    first = next((n for n, line in enumerate(lines, 1) if line.strip() and not line.startswith("#!")), 0)
    if not first:
        return LineRange(1, 0)
    text = lines[first - 1].strip()
    most = min(len(lines), first + MOST_HEAD - 1)
    if quote := next((one for one in _DOCSTRINGS if text.startswith(one)), None):
        mark = quote[-3:]
        if text.count(mark) > 1:
            return LineRange(first, first)
        ends = (n for n in range(first + 1, most + 1) if mark in lines[n - 1])
        return LineRange(first, next(ends, most))
    comment = text.startswith(_COMMENTS)
    last = first
    while last < most and (following := lines[last].strip()) and following.startswith(_COMMENTS) == comment:
        last += 1
    return LineRange(first, last)
