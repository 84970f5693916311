"""Cuts a text into the passages that a semantic search finds: its symbols, and windows of what is long or between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from orchestrator.core.text.symbols import Outline, Symbol

MOST_LINES = 40
"""Of one passage: a longer symbol is cut into those that it holds, or into windows."""

FEW_LINES, JOINED_LINES = 3, 12
"""A passage of fewer lines is joined to the one before it, while both together have no more."""


class Chunk(NamedTuple):
    """A passage: 1-based lines, the end inclusive, and the dotted name of the symbol that it is of, if it is of one."""

    start: int
    end: int
    name: str = ""


def chunks(outline: Outline, lines: int) -> tuple[Chunk, ...]:
    """Passages that hold every line of a text once, in order; names are those of a parsed text alone."""
    found: list[Chunk] = []
    for chunk in _within(outline.symbols if outline.parsed else (), 1, lines, ""):
        if found and _joins(found[-1], chunk):
            before = found.pop()
            longer = before if _length(before) >= _length(chunk) else chunk
            found.append(Chunk(before.start, chunk.end, longer.name))
        else:
            found.append(chunk)
    return tuple(found)


def _length(chunk: Chunk) -> int:
    return chunk.end - chunk.start + 1


def _joins(before: Chunk, chunk: Chunk) -> bool:
    few = min(_length(before), _length(chunk)) < FEW_LINES
    return few and _length(before) + _length(chunk) <= JOINED_LINES


def _within(symbols: Sequence[Symbol], first: int, last: int, name: str) -> Iterator[Chunk]:
    at = first
    for symbol in symbols:
        end = min(symbol.end_line, last)
        if symbol.line < at or end < symbol.line:  # on a line of the one before it
            continue
        yield from _windows(at, symbol.line - 1, name)
        inner = f"{name}.{symbol.name}" if name else symbol.name
        long = end - symbol.line >= MOST_LINES
        yield from _within(symbol.children if long else (), symbol.line, end, inner)
        at = end + 1
    yield from _windows(at, last, name)


def _windows(first: int, last: int, name: str) -> Iterator[Chunk]:
    return (Chunk(start, min(start + MOST_LINES - 1, last), name) for start in range(first, last + 1, MOST_LINES))
