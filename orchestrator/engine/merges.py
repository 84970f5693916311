"""What a merge did, as answers show it."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.api import results as r
from orchestrator.core.three_way import Region, ResolvedRegion, Span

MOST_SHOWN = 40
"""Places of one merge that an answer shows."""


def merge_texts(merged: Sequence[ResolvedRegion]) -> tuple[r.MergeText, ...]:
    """The places, those that git would have left to a person first."""
    chosen = sorted(merged, key=lambda region: region.rule == "clean")[:MOST_SHOWN]
    return tuple(
        r.MergeText(path=item.path, lines=_lines(item.merged), rule=item.rule, why=item.why, **_sides(item.region))
        for item in chosen
    )


def rules(merged: Sequence[ResolvedRegion]) -> str:
    """The rules that merged what git would not; "" if none had to."""
    return ", ".join(dict.fromkeys(region.rule for region in merged if region.rule != "clean"))


def regions(conflicting: Sequence[Region]) -> tuple[r.RegionLines, ...]:
    """Conflicting lines as callers count them."""
    return tuple(r.RegionLines(**_sides(region)) for region in conflicting)


def _sides(region: Region) -> dict[str, tuple[int, int]]:
    sides = region.map(_lines)
    return {"base": sides.base, "current": sides.current, "proposed": sides.proposed}


def _lines(span: Span) -> tuple[int, int]:
    return span.start + 1, span.end
