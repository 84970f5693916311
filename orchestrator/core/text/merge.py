"""Three-way merge of lines (diff3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from operator import itemgetter
from typing import TypeAlias

import msgspec

from orchestrator.core.content import LineHunk, Region, Span, ThreeWay
from orchestrator.core.text.diff import diff

Lines: TypeAlias = Sequence[str]


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
    agreed: Lines | None  # the lines that git puts there; None where it leaves that to a person


class LineMerge(ThreeWay[Lines], frozen=True, dict=True):
    """The changes base → current and base → proposed of a text's lines, which are compared as given."""

    @cached_property
    def clusters(self) -> list[Cluster]:
        """The changes of both sides, ascending, with at least one line between two clusters that neither changed.

        Cost: two of `diff`, then O(hunks).
        """
        ours, theirs = diff(self.base, self.current), diff(self.base, self.proposed)
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
            mine, other = region.current.of(self.current), region.proposed.of(self.proposed)
            agreed = mine if t == first_t or mine == other else other if o == first_o else None
            found.append(Cluster(region, tuple(ours[first_o:o]), tuple(theirs[first_t:t]), agreed))
        return found

    def merged(self) -> Merged | MergeConflict:
        """Both changes together.

        They conflict as in `git merge-file`: when they overlap or touch, with no unchanged line of
        the base between them, unless both sides come to the same lines there, which are then taken
        once. Cost: as of `clusters`, then O(lines).
        """
        regions = tuple(cluster.region for cluster in self.clusters if cluster.agreed is None)
        if regions:
            return MergeConflict(regions)
        return Merged(self.with_outputs([cluster.agreed or () for cluster in self.clusters]))

    def favouring_proposed(self) -> tuple[str, ...]:
        """As `merged`, but where the changes conflict the proposed lines are taken: `git merge-file --theirs`.

        What a person gets who resolves a conflict for the proposal.
        """
        taken = (c.region.proposed.of(self.proposed) if c.agreed is None else c.agreed for c in self.clusters)
        return self.with_outputs(list(taken))

    def with_outputs(self, outputs: Sequence[Lines]) -> tuple[str, ...]:
        """The base with an output in the place of each cluster."""
        lines: list[str] = []
        at = 0
        for cluster, output in zip(self.clusters, outputs, strict=True):
            lines += self.base[at : cluster.region.base.start]
            lines += output
            at = cluster.region.base.end
        return (*lines, *self.base[at:])


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
