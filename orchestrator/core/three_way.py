"""One value for each of the three versions that meet in a merge, and the report of how each place came together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, Literal, TypeVar, get_args

import msgspec

from orchestrator.core.ids import WorkspacePath

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")

AutomaticRule = Literal["same_change", "imports", "list_items", "additions", "disjoint_symbols"]
"""Why a conflict was safe to merge, in the order in which the rules are tried: both sides changed the same; both added
imports, entries of a list, definitions; or they changed neighbouring lines of different symbols."""

AUTOMATIC_RULES: Final[tuple[AutomaticRule, ...]] = get_args(AutomaticRule)

MergeRule = Literal["clean", AutomaticRule]
"""As `AutomaticRule`; `clean`: nobody else changed these lines or the ones next to them."""


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


class ResolvedRegion(msgspec.Struct, frozen=True):
    """One place of a merge, in the three contents and in the result."""

    path: WorkspacePath
    rule: MergeRule
    why: str
    region: Region
    merged: Span
