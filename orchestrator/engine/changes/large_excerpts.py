"""What of a large file a change is decided on: the lines around the passages that it names. Blocking."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from orchestrator.core.content import LineRange, Splice
from orchestrator.core.errors import FileTooLarge, OrchestratorError
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.line_index import after_ends
from orchestrator.core.text.regions import merged
from orchestrator.core.text.secrets import MOST_KEY_LINES
from orchestrator.engine.reads.line_scan import LineScan

MOST_PLACES = 500
"""Of one text, that are looked at."""

MOST_WINDOW_BYTES = 4 * 1024 * 1024
"""Of lines around one place."""

MOST_EXCERPT_BYTES = 16 * 1024 * 1024

NEAR_LINES = 3
"""Around a place, where the lines are so long that there is no room for more."""

_LINES = re.compile(r"(\blines? )(\d+(?:(?:, | and | to |–|-)\d+)*)")
_NUMBERED = re.compile(r"^( *)(\d+)\t", re.MULTILINE)
_DIGITS = re.compile(r"\d+")


def find_all(blocks: Iterable[bytes], needles: Sequence[Sequence[bytes]]) -> list[list[tuple[int, int]]]:
    """Of each needle, in any of its forms, the places: offset and length; the first MOST_PLACES and one more."""
    keep = max((len(form) for forms in needles for form in forms), default=1) - 1
    found: list[list[tuple[int, int]]] = [[] for _ in needles]
    last = [dict.fromkeys(forms, -1) for forms in needles]
    tail, begin = b"", 0
    for block in blocks:
        data = tail + block
        for places, met in zip(found, last, strict=True):
            for form in met:
                at = met[form] - begin
                while len(places) <= MOST_PLACES and (at := data.find(form, max(0, at + 1))) >= 0:
                    places.append((begin + at, len(form)))
                    met[form] = begin + at
        tail = data[max(0, len(data) - keep) :]
        begin += len(data) - len(tail)
    return [sorted(places) for places in found]


class Window(msgspec.Struct, frozen=True):
    """Whole lines of a file, and where they are in it and in the excerpt; lines count from 0."""

    offset: int
    size: int
    line: int
    at: int
    row: int


class Excerpt(msgspec.Struct, frozen=True):
    """Windows, one behind the other as if nothing were between them."""

    windows: tuple[Window, ...]
    data: bytes

    def line(self, row: int) -> int:
        """Where a line of the excerpt is in the file, both from 0."""
        window = next(one for one in reversed(self.windows) if one.row <= row or one.row == 0)
        return window.line + row - window.row

    def row(self, line: int) -> int:
        """The inverse, of a line that is in a window."""
        window = next(one for one in reversed(self.windows) if one.line <= line)
        return window.row + line - window.line

    def splices(self, new: bytes, hunks: Iterable[tuple[int, int, int, int]]) -> tuple[Splice, ...] | None:
        """What makes the file of what the excerpt became, by hunks of its lines; None where they do not tell all."""
        old_ends, new_ends = (_line_starts(data) for data in (self.data, new))
        found: list[tuple[int, int, bytes]] = []
        for old_start, old_end, new_start, new_end in hunks:
            start, end = old_ends[old_start], old_ends[old_end]
            found.append((start, end - start, new[new_ends[new_start] : new_ends[new_end]]))
        made, at = b"", 0
        for start, removed, inserted in found:
            made, at = made + self.data[at:start] + inserted, start + removed
        if made + self.data[at:] != new:
            if len(self.windows) > 1:
                return None
            found = [_difference(self.data, new)]
        splices = list[Splice]()
        for start, removed, inserted in found:
            fits = [one for one in self.windows if one.at <= start and start + removed <= one.at + one.size]
            if len(fits) != 1:  # between two windows, and so maybe behind the first or before the second
                return None
            splices.append(Splice(fits[0].offset + start - fits[0].at, removed, inserted))
        return tuple(splices)

    # --- numbers ------------------------------------------------------------------------

    def renumbered(self, text: str) -> str:
        """A message about the excerpt, as one about the file."""

        def moved(match: re.Match[str]) -> str:
            return match[1] + _DIGITS.sub(lambda number: str(self._number(int(number[0]))), match[2])

        return _LINES.sub(moved, text)

    def _number(self, row: int) -> int:
        return self.line(row - 1) + 1

    def of_file(self, error: OrchestratorError) -> OrchestratorError:
        """A refusal about the excerpt, as one about the file."""
        error.message = self.renumbered(error.message)
        error.args = (error.message,)
        error.details = {name: self._moved(name, value) for name, value in error.details.items()}
        if error.shown is not None:
            error.shown = _NUMBERED.sub(lambda row: f"{self._number(int(row[2])):>6}\t", self.renumbered(error.shown))
        if error.seen is not None:
            ranges = tuple(LineRange(self._number(one.start), self._number(one.end)) for one in error.seen.ranges)
            last = max((one.end for one in ranges), default=0)
            error.seen = msgspec.structs.replace(error.seen, ranges=ranges, total_lines=last + 1)
        return error

    def _moved(self, name: str, value: Any) -> Any:
        match name:
            case "line" | "end_line" | "start" | "end":
                return self._number(value)
            case "lines":
                return [self._number(number) for number in value]
            case "nearest":
                return [{key: self._moved(key, one) for key, one in place.items()} for place in value]
            case _:
                return value


def _line_starts(data: bytes) -> list[int]:
    """The offset of each line, and the end."""
    starts = [0, *after_ends(data, len(data))]
    return starts if starts[-1] == len(data) else [*starts, len(data)]


def _difference(old: bytes, new: bytes) -> tuple[int, int, bytes]:
    """From the first byte that differs to the last."""
    most = min(len(old), len(new))
    start = bisect_left(range(most), 1, key=lambda size: old[: size + 1] != new[: size + 1])
    end = bisect_left(range(most - start), 1, key=lambda size: old[-1 - size :] != new[-1 - size :])
    return start, len(old) - end - start, new[start : len(new) - end]


def cut_excerpt(
    path: WorkspacePath,
    scan: LineScan,
    read: Callable[[int, int], bytes],
    places: Iterable[tuple[int, int]],
    lines: Iterable[tuple[int, int]],
) -> Excerpt:
    """The lines around places, by offset and length, and around ranges of lines, from 1.

    All of the file was looked through. Raises FileTooLarge.
    """
    total = scan.total or 0
    wanted = [(scan.number_of(at), scan.number_of(max(at, at + length - 1))) for at, length in places]
    wanted += [(first, min(last, total)) for first, last in lines if first <= total]
    spans: list[LineRange] = []
    for first, last in sorted(set(wanted)):
        begin, end = _start(scan, first), _start(scan, last + 1)
        around = MOST_KEY_LINES if scan.near_key(begin, end) else NEAR_LINES
        span = LineRange(max(1, first - around), min(total, last + around))
        if _start(scan, span.end + 1) - _start(scan, span.start) > MOST_WINDOW_BYTES:
            span = LineRange(first, last)
        if end - begin > MOST_WINDOW_BYTES:
            raise _too_much(path, f"line {first} is in a passage of {end - begin} bytes")
        spans.append(span)
    windows, data, row = list[Window](), list[bytes](), 0
    for span in merged(tuple(spans)):
        begin, end = _start(scan, span.start), _start(scan, span.end + 1)
        at = sum(map(len, data))
        if at + end - begin > MOST_EXCERPT_BYTES:
            raise _too_much(path, f"the passages are in more than {MOST_EXCERPT_BYTES} bytes of lines")
        windows.append(Window(begin, end - begin, span.start - 1, at, row))
        data.append(read(begin, end - begin))
        row += span.end - span.start + 1
    return Excerpt(tuple(windows), b"".join(data))


def _start(scan: LineScan, line: int) -> int:
    """Where a line begins; the file's end for the one after its last."""
    return scan.offset_of(line) if line <= (scan.total or 0) else scan.size


def _too_much(path: WorkspacePath, why: str) -> FileTooLarge:
    return FileTooLarge(
        path,
        f"it has too many bytes to be changed as one text, and {why}",
        hint="Change fewer places at once, or shorter lines; a person can raise limits.in_memory_bytes in the policy.",
    )
