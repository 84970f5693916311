"""Regions and sides of a merge, written briefly."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.core.conflicts.sides import Sides
from orchestrator.core.content import Region, Span
from orchestrator.core.text.encoding import Document


def region(*numbers: int) -> Region:
    """From six numbers: start and length in the base, the current and the proposed text."""
    return Region(*(Span(numbers[at], numbers[at + 1]) for at in (0, 2, 4)))


def sides(base: Sequence[str], current: Sequence[str], proposed: Sequence[str], regions: Sequence[Region]) -> Sides:
    """The three texts by their lines."""
    return Sides(_text(base), _text(current), _text(proposed), tuple(regions))


def _text(lines: Sequence[str]) -> Document:
    return Document(tuple(lines), ("\n",) * len(lines))
