"""Which lines of a text somebody must be shown who knows all of an earlier text."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from orchestrator.core.content import LineHunk, LineRange
from orchestrator.core.text.regions import hull


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
