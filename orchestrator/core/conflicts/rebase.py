"""What still conflicts when the file of an open conflict moves on."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from orchestrator.core.text.diff import diff
from orchestrator.core.text.merge import ConflictingRegion, clusters, merged_of
from orchestrator.core.text.merging.ambiguous_hunks import ambiguous_hunks
from orchestrator.core.text.merging.doubts import doubts, removed_already
from orchestrator.core.three_way import Region, Span

Lines = Sequence[str]


class Rebased(msgspec.Struct, frozen=True):
    """What still conflicts; with no region, `lines` is the text in which all goes together."""

    regions: tuple[Region, ...]
    lines: tuple[str, ...] = ()


def rebased(base: Lines, current: Lines, proposed: Lines) -> Rebased:
    """What of a change base → proposed conflicts with a newer content of the file, or has no sure place in it."""
    found = clusters(base, current, proposed)
    merged = merged_of(found, base)
    if isinstance(merged, ConflictingRegion):
        return Rebased(merged.regions)
    if (doubt := doubts(base, current, proposed, merged.lines, found)) is not None:
        return Rebased(doubt.regions)
    if merged.lines == tuple(current):
        if not removed_already(base, current, proposed):
            return Rebased((spanned(base, current, proposed),))
        return Rebased((), merged.lines)
    return (
        Rebased(regions) if (regions := ambiguous_hunks(base, current, proposed, found)) else Rebased((), merged.lines)
    )


def spanned(base: Lines, current: Lines, proposed: Lines) -> Region:
    """One region from the first line that either side changed to the last: of a conflict that no line shows."""
    made, met = diff(base, proposed), diff(base, current)
    start = min((hunk.old_start for hunk in (*made, *met)), default=0)
    length = max((hunk.old_end for hunk in (*made, *met)), default=0) - start
    current_more, proposed_more = (sum(hunk.new_len - hunk.old_len for hunk in hunks) for hunks in (met, made))
    return Region(Span(start, length), Span(start, length + current_more), Span(start, length + proposed_more))


def changed_regions(current: Lines, proposed: Lines) -> tuple[Region, ...]:
    """The regions of a change that would apply and is to be reviewed first: each of its hunks, against no other."""
    return tuple(
        Region(Span(h.old_start, h.old_len), Span(h.old_start, h.old_len), Span(h.new_start, h.new_len))
        for h in diff(current, proposed)
    )
