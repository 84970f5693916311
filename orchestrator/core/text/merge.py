"""Three-way merge of lines (diff3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

import msgspec

from orchestrator.core.content import LineHunk, Region, Span
from orchestrator.core.text.diff import diff


class Merged(msgspec.Struct, frozen=True):
    """Both sides' changes in one text."""

    lines: tuple[str, ...]


class MergeConflict(msgspec.Struct, frozen=True):
    """The changes do not go together: at least one region, ascending."""

    regions: tuple[Region, ...]
    why: str = ""  # where git sees no conflict


class Cluster(msgspec.Struct, frozen=True):
    """Changes that hang together: overlapping or touching hunks of both sides, or hunks of one side."""

    region: Region
    ours: tuple[LineHunk, ...]  # base → current
    theirs: tuple[LineHunk, ...]  # base → proposed
    agreed: Sequence[str] | None  # the lines that git puts there; None where it leaves that to a person


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
        mine, other = region.current.of(current), region.proposed.of(proposed)
        agreed = mine if t == first_t or mine == other else other if o == first_o else None
        found.append(Cluster(region, tuple(ours[first_o:o]), tuple(theirs[first_t:t]), agreed))
    return found


def merge3(base: Sequence[str], current: Sequence[str], proposed: Sequence[str]) -> Merged | MergeConflict:
    """Bring the changes base → current and base → proposed together.

    Changes conflict as in `git merge-file`: when they overlap or touch, with no unchanged line of
    the base between them, unless both sides come to the same lines there, which are then taken
    once. Lines are compared as given. Cost: as of `clusters`, then O(lines).
    """
    return merged_of(clusters(base, current, proposed), base)


def merged_of(found: Sequence[Cluster], base: Sequence[str]) -> Merged | MergeConflict:
    """As `merge3`, of what `clusters` found."""
    regions = tuple(cluster.region for cluster in found if cluster.agreed is None)
    if regions:
        return MergeConflict(regions)
    return Merged(merged_lines(base, found, [cluster.agreed or () for cluster in found]))


def merged_lines(base: Sequence[str], found: Sequence[Cluster], outputs: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """The base with an output in the place of each cluster."""
    lines: list[str] = []
    at = 0
    for cluster, output in zip(found, outputs, strict=True):
        lines += base[at : cluster.region.base.start]
        lines += output
        at = cluster.region.base.end
    return (*lines, *base[at:])


def merge_favouring_proposed(base: Sequence[str], current: Sequence[str], proposed: Sequence[str]) -> tuple[str, ...]:
    """As `merge3`, but where the changes conflict the proposed lines are taken: `git merge-file --theirs`.

    What a person gets who resolves a conflict for the proposal.
    """
    found = clusters(base, current, proposed)
    sides = [cluster.region.proposed.of(proposed) if cluster.agreed is None else cluster.agreed for cluster in found]
    return merged_lines(base, found, sides)


def regions_over(spans: Iterable[tuple[int, int]], found: Sequence[Cluster]) -> Iterator[Region]:
    """Spans of the base, widened to the changes that they meet, in all three texts; those that meet are one."""
    changes = [(cluster.region.base.start, cluster.region.base.end, cluster.region) for cluster in found]
    parts = sorted([*changes, *((*span, None) for span in spans)], key=itemgetter(0, 1))
    current = proposed = at = 0
    while at < len(parts):
        start, end = parts[at][:2]
        doubtful, more_current, more_proposed = False, 0, 0
        while at < len(parts) and parts[at][0] <= end:
            end = max(end, parts[at][1])
            if (region := parts[at][2]) is None:
                doubtful = True
            else:
                more_current += region.current.length - region.base.length
                more_proposed += region.proposed.length - region.base.length
            at += 1
        length = end - start
        if doubtful:
            yield Region(
                Span(start, length),
                Span(start + current, length + more_current),
                Span(start + proposed, length + more_proposed),
            )
        current, proposed = current + more_current, proposed + more_proposed


def _cluster(ours: Sequence[LineHunk], o: int, theirs: Sequence[LineHunk], t: int) -> tuple[int, int, int, int]:
    """The index of the hunk after the next cluster on each side, and start and end of its lines of the base."""
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


def _shift(hunks: Sequence[LineHunk], done: int) -> int:
    """How far the lines after the first `done` hunks have moved."""
    return hunks[done - 1].new_end - hunks[done - 1].old_end if done else 0
