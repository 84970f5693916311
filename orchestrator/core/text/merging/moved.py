"""One side moved a block as it was, the other edited it."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.core.text.diff import Hunk
from orchestrator.core.text.merge import Cluster
from orchestrator.core.text.merging.clash import Resolution, Sides, Transplant, is_significant

LEAST_LINES = 3
"""Lines of a block that say something; fewer may stand twice by chance."""


def settle(cluster: Cluster, sides: Sides) -> Resolution | None:
    """Leave the place as the mover has it, and edit the block where it went.

    Only where the mover took out the block in one hunk and brought all of it, unchanged, in a hunk
    of its own that no change of the other touches; where the block stands once in each text that
    has it, and the other's edits lie inside it.
    """
    if not cluster.ours or not cluster.theirs:
        return None
    return _settle(cluster, sides, by_current=True) or _settle(cluster, sides, by_current=False)


def _settle(cluster: Cluster, sides: Sides, *, by_current: bool) -> Resolution | None:
    mover, editor = (sides.current, sides.proposed) if by_current else (sides.proposed, sides.current)
    moves, edits = (cluster.ours, cluster.theirs) if by_current else (cluster.theirs, cluster.ours)
    if len(moves) != 1:
        return None
    start, end = _trimmed(sides.base, moves[0])
    block = list(sides.base[start:end])
    if sum(map(is_significant, block)) < LEAST_LINES or not all(_inside(hunk, start, end) for hunk in edits):
        return None
    if len(_places(block, sides.base)) != 1 or len(found := _places(block, mover)) != 1:
        return None
    target = _landing(sides, found[0], len(block), by_current=by_current)
    if target is None:
        return None
    edited: list[str] = []
    at = start
    for hunk in edits:
        edited += [*sides.base[at : hunk.old_start], *editor[hunk.new_start : hunk.new_end]]
        at = hunk.old_end
    edited += sides.base[at:end]
    region = cluster.region
    first, length = (
        (region.current_start, region.current_len) if by_current else (region.proposed_start, region.proposed_len)
    )
    index, offset = target
    who, other = ("the current text", "the proposal") if by_current else ("the proposal", "the current text")
    return Resolution(
        tuple(mover[first : first + length]),
        f"{who} moved these {len(block)} lines unchanged to line {found[0] + 1}, {other} edited them: edited there",
        Transplant(index, offset, len(block), tuple(edited)),
    )


def _trimmed(base: Sequence[str], hunk: Hunk) -> tuple[int, int]:
    """What a hunk takes out, without blank lines at its ends."""
    start, end = hunk.old_start, hunk.old_end
    while start < end and not base[start].strip():
        start += 1
    while start < end and not base[end - 1].strip():
        end -= 1
    return start, end


def _inside(hunk: Hunk, start: int, end: int) -> bool:
    """Whether a hunk changes lines of a block, or adds some between two of them."""
    if hunk.old_len:
        return start <= hunk.old_start and hunk.old_end <= end
    return start < hunk.old_start < end


def _places(block: Sequence[str], lines: Sequence[str]) -> list[int]:
    """Where a block stands: its first places, two at most. Cost: O(characters)."""
    text, wanted = ("".join(f"\n{line}" for line in side) + "\n" for side in (lines, block))
    places: list[int] = []
    at = text.find(wanted)
    while at >= 0 and len(places) < 2:
        places.append(text.count("\n", 0, at))
        at = text.find(wanted, at + 1)
    return places


def _landing(sides: Sides, at: int, length: int, *, by_current: bool) -> tuple[int, int] | None:
    """The cluster of the mover alone in which the block came, and where in its lines."""
    for index, cluster in enumerate(sides.clusters):
        own, others = (cluster.ours, cluster.theirs) if by_current else (cluster.theirs, cluster.ours)
        region = cluster.region
        start = region.current_start if by_current else region.proposed_start
        if not others and any(hunk.new_start <= at and at + length <= hunk.new_end for hunk in own):
            return index, at - start
    return None
