"""Which lines of a part of a text an excerpt shows, where there is no room for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, zip_longest
from typing import Literal

import msgspec

from orchestrator.core.content import LineRange
from orchestrator.core.text.answer_space import PER_TOKEN, size, weight
from orchestrator.core.text.regions import merged

LeaveOut = Literal["end", "start", "middle"]

NUMBER = 16
"""Eighths of a token that a line's number, tab and end take."""


class Budget(msgspec.Struct):
    """What is left of an answer: eighths of tokens, bytes and lines."""

    weight: int
    bytes: int
    lines: int

    @classmethod
    def of(cls, tokens: int, bytes_left: int, lines: int) -> Budget:
        """As a caller counts it."""
        return cls(tokens * PER_TOKEN, bytes_left, lines)

    def take(self, row: str, *, frame_bytes: int = 12) -> bool:
        """Take a numbered line, if it fits."""
        left = self.weight - weight(row) - NUMBER, self.bytes - size(row) - frame_bytes, self.lines - 1
        if min(left) < 0:
            return False
        self.weight, self.bytes, self.lines = left
        return True


def order(part: LineRange, leave_out: LeaveOut) -> Iterator[int]:
    """The lines of a part, those first that are left out last."""
    lines = range(part.start, part.end + 1)
    if leave_out == "end":
        return iter(lines)
    if leave_out == "start":
        return reversed(lines)
    half = (len(lines) + 1) // 2
    pairs = zip_longest(lines[:half], reversed(lines[half:]))
    return (line for line in chain.from_iterable(pairs) if line is not None)


def outwards(line: int, total: int) -> Iterator[int]:
    """A line, then those around it, the nearest first."""
    yield line
    for away in range(1, max(line, total - line + 1)):
        if line - away >= 1:
            yield line - away
        if line + away <= total:
            yield line + away


def taken(lines: Iterator[int], row: Callable[[int], str], budget: Budget) -> tuple[LineRange, ...]:
    """As many lines as the budget holds, in the order given; the first one in any case."""
    found = list[LineRange]()
    for line in lines:
        if found and (budget.lines < 1 or not budget.take(row(line))):
            break
        if not found:
            budget.take(row(line))
        found.append(LineRange(line, line))
    return merged(tuple(found))


def gaps(shown: Sequence[LineRange], part: LineRange) -> tuple[LineRange, ...]:
    """The lines of a part that are not shown."""
    found, at = list[LineRange](), part.start
    for span in shown:
        if at < span.start:
            found.append(LineRange(at, span.start - 1))
        at = max(at, span.end + 1)
    if at <= part.end:
        found.append(LineRange(at, part.end))
    return tuple(found)
