"""Nests definitions in any order into symbols within symbols."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from orchestrator.core.text.symbols import Symbol

MOST_SYMBOLS = 20_000
"""An outline holds no more; generated files have hundreds of thousands of keys."""

DEEPEST = 24
"""Definitions nested further are left out, with what is in them."""

NAME_CHARS = 120

_HOLDERS = frozenset({"class", "interface", "struct", "enum", "impl", "trait", "union"})


class Definition(NamedTuple):
    """One definition: characters or bytes, half-open, and 1-based lines, both ends included."""

    start: int
    end: int
    name: str
    kind: str
    line: int
    end_line: int
    alone: bool = True
    tail: str = ""


class _Open:
    """A symbol whose children are still coming."""

    def __init__(self, definition: Definition, line: int, end_line: int) -> None:
        self.definition, self.line, self.end_line = definition, line, end_line
        self.children: list[Symbol] = []

    def closed(self, holder: str | None) -> Symbol:
        d = self.definition
        kind = "method" if d.kind == "function" and holder in _HOLDERS else d.kind
        return Symbol(d.name, kind, self.line, self.end_line, tuple(self.children), alone=d.alone, tail=d.tail)


def nested(definitions: Iterable[Definition], line_count: int) -> tuple[Symbol, ...]:
    """The definitions as a tree, each inside the smallest that holds it, in the text's order.

    Of two that cover the same the first given stays. One that overlaps another without being inside
    it, which only a broken text has, ends where that one ends. Lines are kept within the holder's and
    within 1 … `line_count`. Cost: that of sorting.
    """
    ordered = sorted(dict.fromkeys(definitions), key=lambda d: (d.start, -d.end))
    top: list[Symbol] = []
    stack: list[_Open] = []
    kept = 0
    last: tuple[int, int] | None = None

    def close() -> None:
        done = stack.pop()
        holder = stack[-1].definition.kind if stack else None
        (stack[-1].children if stack else top).append(done.closed(holder))

    for given in ordered:
        if (given.start, given.end) == last or kept == MOST_SYMBOLS:
            continue
        while stack and given.start >= stack[-1].definition.end:
            close()
        definition, line, end_line = given, max(given.line, 1), min(given.end_line, line_count)
        if stack:
            around = stack[-1]
            definition = given._replace(end=min(given.end, around.definition.end))
            line, end_line = max(line, around.line), min(end_line, around.end_line)
        siblings = stack[-1].children if stack else top
        if siblings:
            line = max(line, siblings[-1].line)
        if len(stack) == DEEPEST or end_line < line:
            continue
        last, kept = (given.start, given.end), kept + 1
        stack.append(_Open(definition, line, end_line))
    while stack:
        close()
    return tuple(top)
