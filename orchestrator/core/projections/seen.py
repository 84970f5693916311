"""What a session was shown of one file: lines by version."""

from __future__ import annotations

from typing import Any

import msgspec

from orchestrator.core.content import LineRange
from orchestrator.core.events.files import SeenLines
from orchestrator.core.ids import Seq

KEPT_VERSIONS = 8
"""Older versions of a file are forgotten per session; a base that old must be named."""


class Coverage(msgspec.Struct, frozen=True):
    """Lines of one version that were shown, merged and in order; `whole` means every one of them."""

    ranges: tuple[LineRange, ...]
    total_lines: int
    whole: bool


class SeenFile:
    """All that one session was shown of one file, newest version last."""

    def __init__(self) -> None:
        self._versions: dict[Seq, Coverage] = {}

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
        if seen.cut:
            ranges = known.ranges if known else ()
        else:
            ranges = merged((*(known.ranges if known else ()), *seen.ranges))
        whole = bool(known and known.whole) or (
            not seen.cut
            and (
                seen.total_lines == 0
                or (len(ranges) == 1 and ranges[0].start <= 1 and ranges[0].end >= seen.total_lines)
            )
        )
        self._versions[seen.version] = Coverage(ranges, seen.total_lines, whole)
        self._forget()

    def wrote(self, version: Seq, *, whole: bool) -> None:
        """The session's own change made this version."""
        self._versions[version] = Coverage((), 0, whole)
        self._forget()

    def plain(self) -> dict[str, Any]:
        return {str(seq): msgspec.to_builtins(self._versions[seq]) for seq in sorted(self._versions)}

    def _forget(self) -> None:
        while len(self._versions) > KEPT_VERSIONS:
            del self._versions[min(self._versions)]


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
