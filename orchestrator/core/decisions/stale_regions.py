"""What became of the lines that a session saw: which of them others changed or removed, and what they added between.

By content alone: the text that it saw is compared with the text there is. Lines that merely moved, lines
around them, and what was changed and changed back are not stale; nor is what the session wrote itself, or
has seen since. A line that was added beside what it saw as one piece is not either; one inside of it is:
that region is another one now, though each of its lines is as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from orchestrator.core.content import LineHunk, LineRange
from orchestrator.core.projections.read_sets import At
from orchestrator.core.text.diff import diff
from orchestrator.core.text.regions import hull, line_by_line, overlap

Lines: TypeAlias = Sequence[str]

MOST_HUNKS = 500
"""Differences of two versions that are kept separate; see `hunks_between`."""


class Piece(msgspec.Struct, frozen=True):
    """Seen lines that are otherwise now; `added`: two that followed one another, and lines were added in between.

    `seen` counts in the text of `origin`; `start` (0-based) and `length` are what replaced them,
    or what was added in between.
    """

    origin: At
    seen: LineRange
    start: int
    length: int
    added: bool = False


def joined(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Neighbours that count as one: lines that follow one another in both texts."""
    out: list[Piece] = []
    for piece in pieces:
        last = out[-1] if out else None
        follows = (piece.origin, piece.seen.start, piece.start, False)
        if last and (last.origin, last.seen.end + 1, last.start + last.length, last.added or piece.added) == follows:
            seen = LineRange(last.seen.start, piece.seen.end)
            out[-1] = Piece(piece.origin, seen, last.start, last.length + piece.length)
        else:
            out.append(piece)
    return tuple(out)


def hunks_between(old: Lines, new: Lines) -> list[LineHunk]:
    """What makes one text the other, line by line as far as that goes.

    At most MOST_HUNKS: where there are more, lines that were changed together stay one hunk, and where that is
    not enough, all from the first changed line to the last are one. Effort grows with hunks times ranges.
    """
    if old == new:
        return []
    if len(old) == len(new) == 1:
        return [LineHunk(0, 1, 0, 1)]
    found = diff(old, new)
    if len(found) > MOST_HUNKS:
        return [hull(found)]
    single = line_by_line(found)
    return single if len(single) <= MOST_HUNKS else found


def pieces(origin: At, ranges: Sequence[LineRange], hunks: Sequence[LineHunk], new: Lines) -> list[Piece]:
    """What the hunks did to these lines of `origin`."""
    return [piece for n in range(len(hunks)) for piece in piece_of(origin, ranges, hunks, n, new)]


def piece_of(origin: At, ranges: Sequence[LineRange], hunks: Sequence[LineHunk], n: int, new: Lines) -> Sequence[Piece]:
    """What one of the hunks did to them."""
    hunk = hunks[n]
    if hunk.old_len:
        lost = overlap(ranges, hunk.old_start, hunk.old_len)
        return [Piece(origin, seen, hunk.new_start, hunk.new_len) for seen in lost]
    if _inside(ranges, hunks, n, new):
        seen = LineRange(hunk.old_start, hunk.old_start + 1)
        return [Piece(origin, seen, hunk.new_start, hunk.new_len, added=True)]
    return ()


def _inside(ranges: Sequence[LineRange], hunks: Sequence[LineHunk], n: int, new: Lines) -> bool:
    """Whether an insertion is between lines of one range, and nowhere at its edge.

    Where it repeats its neighbours its place may be higher or lower, with the same text. If it may be at the
    edge, the range is as it was: as when a block comes after one that ends the same.
    """
    hunk = hunks[n]
    span = next((span for span in ranges if span.start <= hunk.old_start < span.end), None)
    if span is None:
        return False
    top = max(span.start - 1, hunks[n - 1].old_start + hunks[n - 1].old_len if n else 0)
    end = min(span.end, hunks[n + 1].old_start if n + 1 < len(hunks) else span.end)
    first, last = hunk.new_start, hunk.new_start + hunk.new_len
    up = 0
    while hunk.old_start - up > top and new[first - 1 - up] == new[last - 1 - up]:
        up += 1
    down = 0
    while hunk.old_start + down < end and new[first + down] == new[last + down]:
        down += 1
    return hunk.old_start - up >= span.start and hunk.old_start + down < span.end
