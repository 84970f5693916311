"""Regions of a merge, written briefly."""

from __future__ import annotations

from orchestrator.core.three_way import Region, Span


def region(*numbers: int) -> Region:
    """From six numbers: start and length in the base, the current and the proposed text."""
    return Region(*(Span(numbers[at], numbers[at + 1]) for at in (0, 2, 4)))
