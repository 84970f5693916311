"""Merge rule: the sides changed adjacent lines of different symbols."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from orchestrator.core.text.diff import Hunk
from orchestrator.core.text.merge import Cluster
from orchestrator.core.text.merging.independence import independent
from orchestrator.core.text.merging.merge_region import Resolution, Sides, is_significant, new_lines
from orchestrator.core.text.merging.touched import names_in, related
from orchestrator.core.text.symbols import Outline

SHOWN_NAMES = 3


def settle(cluster: Cluster, sides: Sides) -> Resolution | None:
    """Take each side's lines in their places.

    Only where no line is changed by both, no two insertions meet, and every symbol that one side
    touches, before or after, is another than each that the other touches, neither holding the other,
    nor used in the other's new lines; where neither side moved a line from or to here, for then
    equal lines of two symbols are taken for each other; and only where both sides keep all that is defined around here.
    """
    sound = sides.parsed_outlines
    if sound is None or not cluster.ours or not cluster.theirs:
        return None
    base, current, proposed = sound
    mine = _touched(cluster.ours, base, sides.base, current, sides.current)
    other = _touched(cluster.theirs, base, sides.base, proposed, sides.proposed)
    if not mine or not other or any(related(one, two) for one in mine for two in other):
        return None
    if _moves(cluster, sides, by_current=True) or _moves(cluster, sides, by_current=False):
        return None
    if not independent(cluster, sides, mine, other):
        return None
    marked = [(hunk, sides.current) for hunk in cluster.ours] + [(hunk, sides.proposed) for hunk in cluster.theirs]
    marked.sort(key=lambda item: (item[0].old_start, item[0].old_end))
    if any(not _apart(one, two) for (one, _), (two, _) in pairwise(marked)):
        return None
    lines: list[str] = []
    at = cluster.region.base.start
    for hunk, side in marked:
        lines += [*sides.base[at : hunk.old_start], *new_lines(side, hunk)]
        at = hunk.old_end
    return Resolution(
        tuple(lines), f"the lines touch, but the current text changed {_shown(mine)}, the proposal {_shown(other)}"
    )


def _moves(cluster: Cluster, sides: Sides, *, by_current: bool) -> bool:
    """Whether a line that says something goes or comes here, and comes or goes by the same side anywhere."""
    side = sides.current if by_current else sides.proposed
    hunks = [hunk for one in sides.clusters for hunk in (one.ours if by_current else one.theirs)]
    taken = {line for hunk in hunks for line in sides.base[hunk.old_start : hunk.old_end]}
    moved = {line for hunk in hunks for line in new_lines(side, hunk) if line in taken and is_significant(line)}
    here = cluster.ours if by_current else cluster.theirs
    return any(
        not moved.isdisjoint((*sides.base[hunk.old_start : hunk.old_end], *new_lines(side, hunk))) for hunk in here
    )


def _touched(
    hunks: Iterable[Hunk], base: Outline, old: Sequence[str], outline: Outline, new: Sequence[str]
) -> frozenset[str]:
    """The symbols of the lines that go and of those that come."""
    names: set[str] = set()
    for hunk in hunks:
        if hunk.old_len:
            names.update(names_in(base, hunk.old_start, hunk.old_len, lines=old))
        if hunk.new_len:
            names.update(names_in(outline, hunk.new_start, hunk.new_len, lines=new))
    return frozenset(names)


def _apart(one: Hunk, two: Hunk) -> bool:
    """Whether two hunks change different lines, at different places."""
    return one.old_end <= two.old_start and (one.old_start, one.old_end) != (two.old_start, two.old_end)


def _shown(names: frozenset[str]) -> str:
    listed = ", ".join(sorted(names)[:SHOWN_NAMES])
    return listed if len(names) <= SHOWN_NAMES else f"{listed} and {len(names) - SHOWN_NAMES} more"
