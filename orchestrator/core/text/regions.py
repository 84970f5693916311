"""Ranges of lines, moved through the hunks of a change. Ranges are 1-based and inclusive, hunks 0-based."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from orchestrator.core.content import LineHunk, LineRange


def survivors(ranges: Sequence[LineRange], hunks: Sequence[LineHunk]) -> tuple[LineRange, ...]:
    """The lines of `ranges` that no hunk takes away, where they are after it. `hunks` ascend."""
    out: list[LineRange] = []
    for span in ranges:
        at, end = span.start - 1, span.end
        shift = 0
        for hunk in hunks:
            if hunk.old_start >= end:
                break
            if hunk.old_start > at:
                out.append(LineRange(at + shift + 1, hunk.old_start + shift))
            at = max(at, hunk.old_end)
            shift = hunk.new_end - hunk.old_end
        if at < end:
            out.append(LineRange(at + shift + 1, end + shift))
    return tuple(out)


def written(hunks: Sequence[LineHunk]) -> tuple[LineRange, ...]:
    """The lines that a change brought, where they are after it."""
    return tuple(LineRange(h.new_start + 1, h.new_end) for h in hunks if h.new_len)


def hull(hunks: Sequence[LineHunk]) -> LineHunk:
    """One hunk over all of them."""
    first, last = hunks[0], hunks[-1]
    old, new = first.old_start, first.new_start
    return LineHunk(old, last.old_end - old, new, last.new_end - new)


def line_by_line(hunks: Sequence[LineHunk]) -> list[LineHunk]:
    """The same, with a hunk for each line where as many lines were added as removed: each is in the other's place."""
    out: list[LineHunk] = []
    for h in hunks:
        if h.old_len == h.new_len and h.old_len > 1:
            out += [LineHunk(h.old_start + n, 1, h.new_start + n, 1) for n in range(h.old_len)]
        else:
            out.append(h)
    return out


def overlap(ranges: Sequence[LineRange], start: int, length: int) -> tuple[LineRange, ...]:
    """The lines of `ranges` among `length` from the 0-based `start` on."""
    return tuple(
        LineRange(max(span.start, start + 1), min(span.end, start + length))
        for span in ranges
        if span.start <= start + length and span.end > start and length
    )


def touches(ranges: Sequence[LineRange], start: int, length: int) -> bool:
    """Whether `ranges` hold one of these lines; of no lines, the line before or after that place."""
    if length:
        return any(span.start <= start + length and span.end > start for span in ranges)
    return any(span.start <= start + 1 and span.end >= start for span in ranges)


def meet(start: int, length: int, other: int, count: int) -> bool:
    """Whether two spans share a line; one without lines is met where it is inside or at the edge of the other."""
    if length and count:
        return start < other + count and other < start + length
    return start <= other + count and other <= start + length


def place(start: int, length: int, hunks: Sequence[LineHunk], *, edges: bool = False) -> tuple[int, int]:
    """Where a span is after the hunks; with what came in the place of a part of it.

    With `edges` also with what was added at its edges: it came between the same two lines.
    """
    first, last = start, start + length
    for hunk in hunks:
        end, shift = hunk.old_end, hunk.new_end - hunk.old_end
        added = edges and not hunk.old_len
        if end < start or (end == start and not added and (hunk.old_len or length)):
            first, last = start + shift, start + length + shift
        elif hunk.old_start < start + length or (added and hunk.old_start == start + length):
            first = min(first, hunk.new_start)
            last = hunk.new_end + max(0, start + length - end)
    return first, max(0, last - first)


def merged(ranges: tuple[LineRange, ...]) -> tuple[LineRange, ...]:
    """Overlapping and touching ranges joined, in order."""
    out: list[LineRange] = []
    for span in sorted(ranges, key=lambda r: (r.start, r.end)):
        if span.end < span.start:
            continue
        if out and span.start <= out[-1].end + 1:
            out[-1] = LineRange(out[-1].start, max(out[-1].end, span.end))
        else:
            out.append(span)
    return tuple(out)


def united(known: Sequence[LineRange], more: Sequence[LineRange]) -> tuple[LineRange, ...]:
    """Ranges with what is seen besides: each of those joins what it overlaps or touches.

    Two of `known` that touch stay two ranges, unless one of `more` spans or touches both: what was between them
    was removed unseen. A range without lines (end < start) says that nothing is there: it joins both sides.
    """
    out = list(known)
    for span in more:
        near = [other for other in out if other.start <= span.end + 1 and other.end >= span.start - 1]
        if span.end >= span.start:
            near.append(span)
        if near:
            joined = LineRange(min(one.start for one in near), max(one.end for one in near))
            out = sorted([*(one for one in out if one not in near), joined], key=lambda one: one.start)
    return tuple(out)


class Region(msgspec.Struct, frozen=True):
    """Lines to show, and those of the known version in whose place they are; both 1-based, either may be none."""

    old_start: int
    old_len: int
    start: int
    length: int

    @property
    def head(self) -> str:
        """As a diff writes it: a side without lines is named by the line before."""
        old = self.old_start if self.old_len else self.old_start - 1
        new = self.start if self.length else self.start - 1
        return f"@@ -{old},{self.old_len} +{new},{self.length} @@"


def delta(hunks: Sequence[LineHunk], wanted: LineRange) -> list[Region]:
    """What of the lines `wanted` is to be shown. `hunks` make the new text of the known one; those that touch are one.

    Lines that were removed are shown with the lines beside them. Cost: O(hunks).
    """
    joined: list[LineHunk] = []
    for hunk in hunks:
        if joined and (joined[-1].old_end, joined[-1].new_end) == (hunk.old_start, hunk.new_start):
            joined[-1] = hull((joined[-1], hunk))
        else:
            joined.append(hunk)
    regions: list[Region] = []
    for hunk in joined:
        start, end = max(hunk.new_start + 1, wanted.start), min(hunk.new_end, wanted.end)
        if start <= end:
            regions.append(Region(hunk.old_start + 1, hunk.old_len, start, end - start + 1))
        elif not hunk.new_len and wanted.start - 1 <= hunk.new_start <= wanted.end:
            regions.append(Region(hunk.old_start + 1, hunk.old_len, hunk.new_start + 1, 0))
    return regions
