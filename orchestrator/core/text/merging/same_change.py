"""Merge rule: both sides made the same change, and one of them changed neighbouring lines too."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, takewhile

from orchestrator.core.content import LineHunk
from orchestrator.core.text.lines import is_significant
from orchestrator.core.text.merge import Cluster
from orchestrator.core.text.merging.rule import Resolution, Sides, new_lines


def same_change(cluster: Cluster, sides: Sides) -> Resolution | None:
    """Take the side that holds the other's whole change and more, at its head or its tail.

    Only where each side has one hunk, what was removed has no equal block beside it,
    and what they share says something: a bracket or a blank line
    may be the same by chance.
    """
    if len(cluster.ours) != 1 or len(cluster.theirs) != 1:
        return None
    ours, theirs = cluster.ours[0], cluster.theirs[0]
    mine, other = new_lines(sides.current, ours), new_lines(sides.proposed, theirs)
    if _holds(theirs, other, ours, mine, sides.base):
        return Resolution(tuple(other), _why(mine, "the proposal"))
    if _holds(ours, mine, theirs, other, sides.base):
        return Resolution(tuple(mine), _why(other, "the current text"))
    return None


def _holds(wide: LineHunk, wide_lines: list[str], narrow: LineHunk, lines: list[str], base: Sequence[str]) -> bool:
    """Whether the wide hunk is the narrow one with more lines behind or before it.

    A narrow one that replaces lines must leave some to the wide one, and bring no fewer than it takes: else it
    may have removed a line that is, changed, in what the wide one brings.
    """
    if wide.old_start > narrow.old_start or wide.old_end < narrow.old_end:
        return False
    more_old, more_new = wide.old_len - narrow.old_len, len(wide_lines) - len(lines)
    if more_new < 0 or not more_old | more_new:
        return False
    if not lines:  # both removed lines; the wide one must do nothing but that
        removed = base[narrow.old_start : narrow.old_end]
        sure = any(map(is_significant, removed)) and not _slides(wide, base)
        return more_old > 0 and not wide_lines and sure
    if not any(map(is_significant, lines)) or (narrow.old_len and (not more_old or len(lines) < narrow.old_len)):
        return False
    at_head = wide.old_start == narrow.old_start and wide_lines[: len(lines)] == lines
    at_tail = wide.old_end == narrow.old_end and wide_lines[more_new:] == lines
    return at_head or at_tail


def _slides(removal: LineHunk, base: Sequence[str]) -> bool:
    """Whether an equal block next to it may be the one that was removed."""
    start, end = removal.old_start, removal.old_end
    below = takewhile(lambda at: base[at] == base[at - removal.old_len], range(end, len(base)))
    above = takewhile(lambda at: base[at] == base[at + removal.old_len], range(start - 1, -1, -1))
    return any(is_significant(base[at]) for at in chain(above, below))


def _why(shared: list[str], wider: str) -> str:
    what = f"brought the same {len(shared)} lines" if shared else "removed the same lines"
    return f"both sides {what}; only {wider} changed what is next to them"
