"""What a session was shown of one file: lines by version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from orchestrator.core.content import LineRange
from orchestrator.core.events.files import SeenLines
from orchestrator.core.ids import Seq

KEPT_VERSIONS = 8
"""Older versions of a file are forgotten per session; a base that old must be named."""


class Coverage(msgspec.Struct, frozen=True, gc=False):
    """Lines of one version that were shown, merged and in order; `whole` means every one of them."""

    ranges: tuple[LineRange, ...]
    total_lines: int
    whole: bool


class SeenFile:
    """All that one session was shown of one file, newest version last."""

    __slots__ = ("_versions",)

    def __init__(self, versions: dict[Seq, Coverage] | None = None) -> None:
        self._versions: dict[Seq, Coverage] = versions or {}  # replaced, never altered: snapshots share it

    @property
    def versions(self) -> dict[Seq, Coverage]:
        """What was shown, by version; not to be altered."""
        return self._versions

    @property
    def newest(self) -> Seq | None:
        """The newest version of which any part was shown."""
        return max(self._versions, default=None)

    @property
    def newest_whole(self) -> Seq | None:
        """The newest version of which every line was shown."""
        return max((seq for seq, coverage in self._versions.items() if coverage.whole), default=None)

    def coverage(self, version: Seq) -> Coverage | None:
        return self._versions.get(version)

    def show(self, seen: SeenLines) -> None:
        """Lines were shown; a cut line makes its answer count as part only."""
        known = self._versions.get(seen.version)
        ranges = known.ranges if known else ()
        if not seen.cut:
            ranges = _joined(ranges, seen.ranges)
        whole = bool(known and known.whole) or (
            not seen.cut
            and (
                seen.total_lines == 0
                or (len(ranges) == 1 and ranges[0].start <= 1 and ranges[0].end >= seen.total_lines)
            )
        )
        if known is None or known.ranges is not ranges or (known.total_lines, known.whole) != (seen.total_lines, whole):
            self._put(seen.version, Coverage(ranges, seen.total_lines, whole))

    def wrote(self, version: Seq, *, whole: bool) -> None:
        """The session's own change made this version."""
        self._put(version, Coverage((), 0, whole))

    def trim(self) -> None:
        """Forget versions that are no base of a change any more: all but the newest, and the newest seen whole."""
        bases = {self.newest, self.newest_whole}
        self._versions = {seq: coverage for seq, coverage in self._versions.items() if seq in bases}

    def plain(self) -> dict[str, Any]:
        return {str(seq): msgspec.to_builtins(self._versions[seq]) for seq in sorted(self._versions)}

    def _put(self, version: Seq, coverage: Coverage) -> None:
        versions = {**self._versions, version: coverage}
        while len(versions) > KEPT_VERSIONS:
            del versions[min(versions)]
        self._versions = versions


def _joined(known: tuple[LineRange, ...], more: tuple[LineRange, ...]) -> tuple[LineRange, ...]:
    """Both, merged; `known` itself where it holds the only new range already."""
    if len(more) == 1:
        start, end = more[0].start, more[0].end
        if start <= end:
            if not known:
                return more
            for span in known:
                if span.start <= start and end <= span.end:
                    return known
    return merged((*known, *more))


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
