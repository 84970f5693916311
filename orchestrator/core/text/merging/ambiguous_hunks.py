"""Finds changes whose place is ambiguous because the lines that they replace occur twice by now.

Of two equal passages a diff cannot say which one is new: the hunk that brought it, or took it, may be
slid over equal lines, and is as good there. What lies under it then is one line in one reading, and
another one in the other.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter

import msgspec

from orchestrator.core.content import LineHunk, Region
from orchestrator.core.text.indent import depth_of
from orchestrator.core.text.lines import is_significant
from orchestrator.core.text.merge import LineMerge, regions_over


class Slide(msgspec.Struct, frozen=True):
    """A pure insertion or removal of the current side, and where else it may have been made.

    `readings` are the lines of the base before which it may begin, ascending, that of the diff included.
    """

    hunk: LineHunk
    readings: tuple[int, ...]

    @property
    def start(self) -> int:
        return self.readings[0]

    @property
    def end(self) -> int:
        return self.readings[-1] + self.hunk.old_len

    def any_between(self, low: int, high: int) -> bool:
        """Whether it may begin behind one line and before another."""
        at = bisect_right(self.readings, low)
        return at < len(self.readings) and self.readings[at] < high


def ambiguous_hunks(texts: LineMerge) -> tuple[Region, ...]:
    """Where a change base → proposed replaces or removes lines that may be others of `current` too; ascending.

    Lines that it only adds are between their neighbours, and count for nothing. Nor does a place
    where all readings come to the same text. Cost: two of `diff`, then O(lines) at most.
    """
    base, current, proposed = texts
    found = texts.clusters
    slides = list(_slides(base, current, [hunk for cluster in found for hunk in cluster.ours]))
    doubtful: list[tuple[int, int]] = []
    for cluster in found if slides else ():
        if cluster.ours and cluster.agreed is not None:
            continue
        for hunk in cluster.theirs:
            new = proposed[hunk.new_start : hunk.new_end]
            doubtful += [
                (min(slide.start, hunk.old_start), max(slide.end, hunk.old_end))
                for slide in _under(slides, hunk)
                if not _clear(slide, hunk, base) and _matters(slide, hunk, current, new)
            ]
    return tuple(regions_over(doubtful, found))


def _slides(base: Sequence[str], current: Sequence[str], ours: Sequence[LineHunk]) -> Iterator[Slide]:
    """The hunks that may be slid, no further than to the next one."""
    for at, hunk in enumerate(ours):
        if hunk.old_len and hunk.new_len:
            continue
        above = ours[at - 1].old_end if at else 0
        below = ours[at + 1].old_start if at + 1 < len(ours) else len(base)
        lines, start, end = (
            (base, hunk.old_start, hunk.old_end) if hunk.old_len else (current, hunk.new_start, hunk.new_end)
        )
        up = down = 0
        while up < hunk.old_start - above and lines[start - 1 - up] == lines[end - 1 - up]:
            up += 1
        while down < below - hunk.old_end and lines[start + down] == lines[end + down]:
            down += 1
        if up or down:
            yield Slide(hunk, _likely(lines, start, hunk.old_start, range(-up, down + 1)))


def _likely(lines: Sequence[str], start: int, at: int, steps: range) -> tuple[int, ...]:
    """Of all places of a slid block those where it begins least indented, as people write, and its own."""
    depths = [_depth(lines[start + step]) for step in steps]
    least = min(depths)
    return tuple(at + step for step, depth in zip(steps, depths, strict=True) if depth == least or not step)


def _depth(line: str) -> float:
    """The indentation; a blank line rather ends what is before it."""
    return depth_of(line) if line.strip() else float("inf")


def _under(slides: Sequence[Slide], hunk: LineHunk) -> Iterator[Slide]:
    """The slides that range over lines which a hunk takes away."""
    for slide in slides[bisect_right(slides, hunk.old_start, key=attrgetter("end")) :]:
        if slide.start >= hunk.old_end:
            return
        if hunk.old_len:
            yield slide


def _clear(slide: Slide, theirs: LineHunk, base: Sequence[str]) -> bool:
    """Whether a change reaches beyond a slide, and shares but blank lines and brackets with it."""
    start, end = max(slide.start, theirs.old_start), min(slide.end, theirs.old_end)
    return (start, end) != (theirs.old_start, theirs.old_end) and not any(map(is_significant, base[start:end]))


def _matters(slide: Slide, theirs: LineHunk, current: Sequence[str], new: Sequence[str]) -> bool:
    """Whether another reading takes a change to other lines, and that shows."""
    own, start, end = slide.hunk, theirs.old_start, theirs.old_end
    if own.old_len:
        if start < own.old_end and own.old_start < end:
            return False  # it changes what is removed: that conflicts anyway, or was found by its symbol
        return slide.any_between(start - own.old_len, end)
    if slide.any_between(start, end):
        return True
    above = own.old_start <= start
    if (slide.readings[-1] <= start) if above else (slide.readings[0] > start):
        return False
    at = (own.new_end if above else own.new_start) + start - own.old_start
    low, high = (at - own.new_len, at) if above else (at, at + own.new_len)
    count = end - start
    return [*new, *current[low + count : high + count]] != [*current[low:high], *new]
