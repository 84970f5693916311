"""What a session was shown of one file: lines by version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from orchestrator.core.content import LineRange
from orchestrator.core.events.files import SeenLines
from orchestrator.core.ids import Seq

KEPT_VERSIONS = 8
"""Older versions of a file are forgotten per session; a base that old must be named."""


Rule = Literal["seen", "whole", "none"]
"""Of what a session saw, the base of a change that names none. `seen`: the newest version of which it saw any part.
`whole`: the newest that it saw whole. `none`: the change needs no base."""


class Coverage(msgspec.Struct, frozen=True, gc=False):
    """Lines of one version that were shown, merged and in order; `whole` means every one of them."""

    ranges: tuple[LineRange, ...]
    total_lines: int
    whole: bool


class SeenFile(msgspec.Struct, frozen=True, gc=False):
    """All that one session was shown of one file, by version; the dict is never altered."""

    versions: dict[Seq, Coverage] = {}

    @property
    def newest(self) -> Seq | None:
        """The newest version of which any part was shown."""
        return max(self.versions, default=None)

    @property
    def newest_whole(self) -> Seq | None:
        """The newest version of which every line was shown."""
        return max((seq for seq, coverage in self.versions.items() if coverage.whole), default=None)

    def base(self, rule: Rule) -> tuple[Seq, bool] | None:
        """The version that a change is made against if it names none, and whether it was seen whole."""
        version = {"seen": self.newest, "whole": self.newest_whole, "none": None}[rule]
        return None if version is None else (version, self.versions[version].whole)

    def coverage(self, version: Seq) -> Coverage | None:
        return self.versions.get(version)

    def shown(self, seen: SeenLines) -> SeenFile:
        """After lines were shown; a cut line makes its answer count as part only."""
        known = self.versions.get(seen.version)
        ranges = known.ranges if known else ()
        if not seen.cut:
            ranges = merged((*ranges, *seen.ranges))
        whole = bool(known and known.whole) or (
            not seen.cut
            and (
                seen.total_lines == 0
                or (len(ranges) == 1 and ranges[0].start <= 1 and ranges[0].end >= seen.total_lines)
            )
        )
        coverage = Coverage(ranges, seen.total_lines, whole)
        return self if known == coverage else self._with(seen.version, coverage)

    def written(self, version: Seq, *, whole: bool) -> SeenFile:
        """After the session's own change made this version."""
        return self._with(version, Coverage((), 0, whole))

    def trimmed(self) -> SeenFile:
        """Without versions that are no base of a change any more: all but the newest, and the newest seen whole."""
        bases = {self.newest, self.newest_whole}
        return SeenFile({seq: coverage for seq, coverage in self.versions.items() if seq in bases})

    def _with(self, version: Seq, coverage: Coverage) -> SeenFile:
        versions = {**self.versions, version: coverage}
        while len(versions) > KEPT_VERSIONS:
            del versions[min(versions)]
        return SeenFile(versions)


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

    Two of `known` that touch stay apart, unless one of `more` spans or touches both: what stood between them
    was taken away unseen. A range without lines (end < start) says that nothing stands there: it joins both sides.
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
