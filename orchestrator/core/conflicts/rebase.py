"""A conflict whose file moves on: its sides as they are now, and the text that choices for its regions give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from orchestrator.core.events.conflicts import ConflictRegion
from orchestrator.core.text.diff import diff
from orchestrator.core.text.encoding import Document, edits_between, splice, with_runs_of
from orchestrator.core.text.merge import (
    ConflictingRegion,
    Merged,
    Region,
    clusters,
    merge3,
    merge_favouring_proposed,
    merged_of,
)
from orchestrator.core.text.merging.ambiguous_hunks import ambiguous_hunks
from orchestrator.core.text.merging.doubts import doubts, removed_already

Lines = Sequence[str]
Side = Literal["current", "proposed"]


class Rebased(msgspec.Struct, frozen=True):
    """What still clashes; with no region, `lines` is the text in which all goes together."""

    regions: tuple[ConflictRegion, ...]
    lines: tuple[str, ...] = ()


class GapConflict(ValueError):
    """Between two regions the sides do not go together either: they are not the regions of these texts."""


def rebased(base: Lines, current: Lines, proposed: Lines) -> Rebased:
    """What of a change base → proposed clashes with a newer content of the file, or has no sure place in it."""
    found = clusters(base, current, proposed)
    merged = merged_of(found, base, current, proposed)
    if isinstance(merged, ConflictingRegion):
        return Rebased(conflict_regions(merged.regions))
    if (doubt := doubts(base, current, proposed, merged.lines, found)) is not None:
        return Rebased(conflict_regions(doubt.regions))
    if merged.lines == tuple(current):
        if not removed_already(base, current, proposed):
            return Rebased((spanned(base, current, proposed),))
        return Rebased((), merged.lines)
    if regions := ambiguous_hunks(base, current, proposed, found):
        return Rebased(conflict_regions(regions))
    return Rebased((), merged.lines)


def conflict_regions(regions: Iterable[Region]) -> tuple[ConflictRegion, ...]:
    """The regions of a merge as a conflict keeps them."""
    return tuple(
        ConflictRegion(r.base_start, r.base_len, r.current_start, r.current_len, r.proposed_start, r.proposed_len)
        for r in regions
    )


def spanned(base: Lines, current: Lines, proposed: Lines) -> ConflictRegion:
    """One region from the first line that either side changed to the last: of a clash that no line shows."""
    made, met = diff(base, proposed), diff(base, current)
    start = min((hunk.old_start for hunk in (*made, *met)), default=0)
    end = max((hunk.old_end for hunk in (*made, *met)), default=0)
    grown = [sum(hunk.new_len - hunk.old_len for hunk in hunks) for hunks in (met, made)]
    length = end - start
    return ConflictRegion(start, length, start, length + grown[0], start, length + grown[1])


def changed_regions(current: Lines, proposed: Lines) -> tuple[ConflictRegion, ...]:
    """The regions of a change that would apply and is to be looked at first: each of its hunks, against no other."""
    return tuple(
        ConflictRegion(h.old_start, h.old_len, h.old_start, h.old_len, h.new_start, h.new_len)
        for h in diff(current, proposed)
    )


def gaps(
    base: Lines, current: Lines, proposed: Lines, regions: Sequence[ConflictRegion]
) -> tuple[tuple[str, ...], ...]:
    """What stands before, between and after the regions, with both sides' changes; one more than regions.

    Raises GapConflict.
    """
    found = []
    b = c = p = 0
    for region in regions:
        ends = (region.base_start, region.current_start, region.proposed_start)
        found.append(_gap(base[b : ends[0]], current[c : ends[1]], proposed[p : ends[2]]))
        b, c, p = ends[0] + region.base_len, ends[1] + region.current_len, ends[2] + region.proposed_len
    found.append(_gap(base[b:], current[c:], proposed[p:]))
    return tuple(found)


def _gap(base: Lines, current: Lines, proposed: Lines) -> tuple[str, ...]:
    merged = merge3(base, current, proposed)
    if not isinstance(merged, Merged):
        raise GapConflict
    return merged.lines


def assembled(
    base: Lines,
    current: Lines,
    proposed: Lines,
    regions: Sequence[ConflictRegion],
    choices: Mapping[int, Side | tuple[str, ...]],
) -> tuple[str, ...]:
    """The text with a choice for each region (from 0), and both sides' changes everywhere else.

    A choice is a side, or lines. A region without one keeps the current side. Raises GapConflict.
    """
    between = gaps(base, current, proposed, regions)
    lines = list(between[0])
    for number, region in enumerate(regions):
        lines += _chosen(current, proposed, region, choices.get(number, "current"))
        lines += between[number + 1]
    return tuple(lines)


def with_proposed(base: Document, current: Document, proposed: Document, regions: Sequence[ConflictRegion]) -> Document:
    """The file with the proposed side of each region, and the current side of everything else."""
    sides = base.lines, current.lines, proposed.lines
    choices: dict[int, Side | tuple[str, ...]] = dict.fromkeys(range(len(regions)), "proposed")
    try:
        lines: Lines = assembled(*sides, regions, choices)
    except GapConflict:  # nobody knows which lines it is about
        lines = merge_favouring_proposed(*sides)
    onto = with_runs_of(current, base, proposed)
    return splice(onto, edits_between(onto, lines, proposed.final_newline))


def _chosen(current: Lines, proposed: Lines, region: ConflictRegion, choice: Side | tuple[str, ...]) -> Lines:
    match choice:
        case "current":
            return current[region.current_start : region.current_start + region.current_len]
        case "proposed":
            return proposed[region.proposed_start : region.proposed_start + region.proposed_len]
        case _:
            return choice


def within(between: Sequence[tuple[str, ...]], text: Lines) -> bool:
    """Whether a whole text could have come by choosing for the regions alone: all `gaps` stand in it, in order.

    The first begins it and the last ends it. Cost: O(lines) for each gap at worst.
    """
    first, last = between[0], between[-1]
    end = len(text) - len(last)
    if end < len(first) or tuple(text[: len(first)]) != first or tuple(text[end:]) != last:
        return False
    at = len(first)
    for piece in between[1:-1]:
        while at + len(piece) <= end and tuple(text[at : at + len(piece)]) != piece:
            at += 1
        at += len(piece)
        if at > end:
            return False
    return True


def same_conflict(
    old: Sequence[ConflictRegion],
    old_texts: tuple[Lines, Lines],
    new: Sequence[ConflictRegion],
    new_texts: tuple[Lines, Lines],
) -> bool:
    """Whether only the place of the regions moved: each holds the current and proposed lines that it held.

    `…_texts` are (current, proposed). While the proposed text is the same one, each region also stands at the
    same of its lines: regions may hold equal lines, and one may have come where another went.
    """
    if len(old) != len(new) or any(
        _held(one, old_texts) != _held(other, new_texts) for one, other in zip(old, new, strict=True)
    ):
        return False
    return tuple(old_texts[1]) != tuple(new_texts[1]) or all(
        (one.base_start, one.base_len, one.proposed_start) == (other.base_start, other.base_len, other.proposed_start)
        for one, other in zip(old, new, strict=True)
    )


def _held(region: ConflictRegion, texts: tuple[Lines, Lines]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    current, proposed = texts
    return tuple(_chosen(current, proposed, region, "current")), tuple(_chosen(current, proposed, region, "proposed"))
