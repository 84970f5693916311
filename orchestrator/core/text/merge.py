"""Three-way merge of lines (diff3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from orchestrator.core.text.diff import Hunk, diff
from orchestrator.core.three_way import Region, Span


class Merged(msgspec.Struct, frozen=True):
    """Both sides' changes in one text."""

    lines: tuple[str, ...]


class ConflictingRegion(msgspec.Struct, frozen=True):
    """The changes do not go together; ascending, at least one region."""

    regions: tuple[Region, ...]


class Cluster(msgspec.Struct, frozen=True):
    """Changes that hang together: overlapping or touching hunks of both sides, or hunks of one side."""

    region: Region
    ours: tuple[Hunk, ...]  # base → current
    theirs: tuple[Hunk, ...]  # base → proposed


def clusters(base: Sequence[str], current: Sequence[str], proposed: Sequence[str]) -> list[Cluster]:
    """The changes of both sides, ascending, with at least one line between two clusters that neither changed.

    Cost: two of `diff`, then O(hunks).
    """
    ours, theirs = diff(base, current), diff(base, proposed)
    found: list[Cluster] = []
    o = t = shift_o = shift_t = 0
    while o < len(ours) or t < len(theirs):
        first_o, first_t = o, t
        o, t, start, end = _cluster(ours, o, theirs, t)
        o_start, t_start = start + shift_o, start + shift_t
        shift_o, shift_t = _shift(ours, o), _shift(theirs, t)
        region = Region(
            Span(start, end - start), Span(o_start, end + shift_o - o_start), Span(t_start, end + shift_t - t_start)
        )
        found.append(Cluster(region, tuple(ours[first_o:o]), tuple(theirs[first_t:t])))
    return found


def merge3(base: Sequence[str], current: Sequence[str], proposed: Sequence[str]) -> Merged | ConflictingRegion:
    """Bring the changes base → current and base → proposed together.

    Changes clash as in `git merge-file`: when they overlap or touch, with no unchanged line of
    the base between them, unless both sides come to the same lines there, which are then taken
    once. Lines are compared as given. Cost: as of `clusters`, then O(lines).
    """
    return merged_of(clusters(base, current, proposed), base, current, proposed)


def merged_of(
    found: Iterable[Cluster], base: Sequence[str], current: Sequence[str], proposed: Sequence[str]
) -> Merged | ConflictingRegion:
    """As `merge3`, of what `clusters` found."""
    lines: list[str] = []
    regions: list[Region] = []
    at = 0
    for cluster in found:
        region = cluster.region
        lines += base[at : region.base.start]
        at = region.base.end
        agreed = agreed_lines(cluster, current, proposed)
        if agreed is None:
            regions.append(region)
        else:
            lines += agreed
    if regions:
        return ConflictingRegion(tuple(regions))
    lines += base[at:]
    return Merged(tuple(lines))


def agreed_lines(cluster: Cluster, current: Sequence[str], proposed: Sequence[str]) -> Sequence[str] | None:
    """What git puts in place of a cluster; None where it leaves that to a person."""
    mine, other = cluster.region.current.of(current), cluster.region.proposed.of(proposed)
    if not cluster.theirs or mine == other:
        return mine
    return None if cluster.ours else other


def merge_favouring_proposed(base: Sequence[str], current: Sequence[str], proposed: Sequence[str]) -> tuple[str, ...]:
    """As `merge3`, but where the changes clash the proposed lines stand: `git merge-file --theirs`.

    What a person gets who settles a conflict for the proposal: its side of the clash, and the
    current side of everything else.
    """
    lines: list[str] = []
    at = 0
    for cluster in clusters(base, current, proposed):
        region = cluster.region
        lines += base[at : region.base.start]
        at = region.base.end
        agreed = agreed_lines(cluster, current, proposed)
        lines += region.proposed.of(proposed) if agreed is None else agreed
    return (*lines, *base[at:])


def _cluster(ours: Sequence[Hunk], o: int, theirs: Sequence[Hunk], t: int) -> tuple[int, int, int, int]:
    """The next hunks that hang together, and the lines of the base that they span.

    Returns the index of the hunk after them on each side, and start and end of the span.
    """
    start = min(side[at].old_start for side, at in ((ours, o), (theirs, t)) if at < len(side))
    end = start
    while True:
        if o < len(ours) and ours[o].old_start <= end:
            end = max(end, ours[o].old_end)
            o += 1
        elif t < len(theirs) and theirs[t].old_start <= end:
            end = max(end, theirs[t].old_end)
            t += 1
        else:
            return o, t, start, end


def _shift(hunks: Sequence[Hunk], done: int) -> int:
    """How far the lines after the first `done` hunks have moved."""
    return hunks[done - 1].new_end - hunks[done - 1].old_end if done else 0
