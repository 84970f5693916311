"""One value for each of the three versions that meet in a merge: contents, texts, outlines, or spans of lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

import msgspec

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


class ThreeWay(msgspec.Struct, Generic[T_co], frozen=True):
    """Something of the base, of what the file holds now, and of what the change proposes."""

    base: T_co
    current: T_co
    proposed: T_co

    def __iter__(self) -> Iterator[T_co]:
        return iter((self.base, self.current, self.proposed))

    def map(self, function: Callable[[T_co], U]) -> ThreeWay[U]:
        """The same of what a function makes of each."""
        return ThreeWay(function(self.base), function(self.current), function(self.proposed))


class Span(msgspec.Struct, frozen=True, array_like=True):
    """Lines of one text: the first, from 0, and how many; there may be none."""

    start: int
    length: int

    @property
    def end(self) -> int:
        """The line after the last."""
        return self.start + self.length

    def of(self, lines: Sequence[str]) -> tuple[str, ...]:
        """The lines themselves."""
        return tuple(lines[self.start : self.end])


class Region(ThreeWay[Span], frozen=True):
    """One place of a merge, in each of the three texts."""
