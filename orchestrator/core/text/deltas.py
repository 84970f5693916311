"""Which lines of a text somebody must be shown who knows lines of another version of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from orchestrator.core.content import LineHunk, LineRange


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


class Delta(msgspec.Struct, frozen=True):
    """Of a part of a text: what is to be shown, and the lines that the reader knows already."""

    regions: tuple[Region, ...]
    known: tuple[LineRange, ...]


def delta(
    known: Sequence[LineRange], old_total: int, hunks: Sequence[LineHunk], wanted: LineRange, total: int
) -> Delta:
    """What of the lines `wanted`, of `total`, is to be shown.

    `known`: lines of the version before, merged and in order; `hunks` make the new text of it. Lines that merely
    moved are known. Cost: O(hunks x ranges).
    """
    regions: list[Region] = []
    kept: list[LineRange] = []
    old, new = 1, 1  # the first lines that nothing was said of
    for old_first, first, length in (*_spans(known, hunks), (old_total + 1, total + 1, 0)):
        start, end = max(new, wanted.start), min(first - 1, wanted.end)
        if start <= end:
            regions.append(Region(old, old_first - old, start, end - start + 1))
        elif old_first > old and new == first and wanted.start <= first <= wanted.end + 1:
            regions.append(Region(old, old_first - old, first, 0))
        old, new = old_first + length, first + length
        start, end = max(first, wanted.start), min(first + length - 1, wanted.end)
        if start <= end:
            kept.append(LineRange(start, end))
    return Delta(tuple(regions), tuple(kept))


def _spans(known: Sequence[LineRange], hunks: Sequence[LineHunk]) -> Iterator[tuple[int, int, int]]:
    """The known lines that no hunk takes away: the first of them before and after, and how many."""
    for span in known:
        at, shift = span.start, 0
        for hunk in hunks:
            if hunk.old_start >= span.end:
                break
            if hunk.old_start >= at:
                yield at, at + shift, hunk.old_start - at + 1
            at, shift = max(at, hunk.old_end + 1), hunk.new_end - hunk.old_end
        if at <= span.end:
            yield at, at + shift, span.end - at + 1
