"""What a merge did, as callers are told."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.api import results as r
from orchestrator.core.merge_rules import ResolvedRegion

MOST_TOLD = 40
"""Places of one merge that an answer tells."""


def told(settled: Sequence[ResolvedRegion]) -> tuple[r.MergeText, ...]:
    """The places, those that git would have left to a person first."""
    chosen = sorted(settled, key=lambda region: region.rule == "apart")[:MOST_TOLD]
    return tuple(
        r.MergeText(
            path=region.path,
            lines=_lines(region.start, region.length),
            rule=region.rule,
            why=region.why,
            base=_lines(region.base_start, region.base_len),
            current=_lines(region.current_start, region.current_len),
            proposed=_lines(region.proposed_start, region.proposed_len),
        )
        for region in chosen
    )


def rules(settled: Sequence[ResolvedRegion]) -> str:
    """The rules that settled what lay closer together than git allows; "" if none had to."""
    return ", ".join(dict.fromkeys(region.rule for region in settled if region.rule != "apart"))


def _lines(start: int, length: int) -> tuple[int, int]:
    return start + 1, start + length
