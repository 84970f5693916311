"""What became of the lines that a session saw: which of them others changed or took away.

By content alone: the text that it saw is compared with the text there is. Lines that merely moved, lines
around them, and what was changed and changed back are no news; nor is what the session wrote itself, or
has seen since. A line that was added beside seen lines is none either: no seen line is other than it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from orchestrator.core.content import LineHunk, LineRange
from orchestrator.core.ids import Seq, WorkspacePath
from orchestrator.core.projections.readers import Glimpse
from orchestrator.core.projections.seen import merged
from orchestrator.core.text.diff import diff
from orchestrator.core.text.regions import line_by_line, meet, overlap, place, survivors, touches, written

Lines: TypeAlias = Sequence[str]


class At(NamedTuple):
    """A content, by where and when it stood."""

    path: WorkspacePath
    version: Seq


class Piece(msgspec.Struct, frozen=True):
    """Seen lines that are otherwise now.

    `seen` counts in the text of `origin`; `start` (0-based) and `length` are what stands in their place.
    """

    origin: At
    seen: LineRange
    start: int
    length: int


class _Gone(NamedTuple):
    """Seen lines that were otherwise when the session next looked at the file, elsewhere in it."""

    origin: At
    ranges: tuple[LineRange, ...]
    start: int
    length: int


def contents_of(glimpses: Sequence[Glimpse]) -> tuple[At, ...]:
    """The contents that `stale` compares, each once."""
    wanted: dict[At, None] = {}
    for glimpse in glimpses:
        if glimpse.before is not None:
            wanted[At(glimpse.path, glimpse.before)] = None
        wanted[At(glimpse.path, glimpse.version)] = None
    return tuple(wanted)


def stale(glimpses: Sequence[Glimpse], texts: Mapping[At, Lines], present: Lines) -> tuple[Piece, ...]:
    """The seen lines that are not in `present` as they were seen, in the order of `present`.

    `texts` holds all of `contents_of(glimpses)`; KeyError if not. Cost: a diff for each version that was
    looked at, at most twice.
    """
    at: At | None = None
    known: tuple[LineRange, ...] = ()
    gone: list[_Gone] = []
    for glimpse in glimpses:
        target = At(glimpse.path, glimpse.before if glimpse.before is not None else glimpse.version)
        if at is not None and at != target:
            known, gone = _on(at, known, gone, _hunks(texts[at], texts[target]))
        at = target
        if glimpse.before is not None:
            known, gone = _own(known, gone, glimpse.hunks)
            at = At(glimpse.path, glimpse.version)
        if glimpse.ranges:
            known = merged((*known, *glimpse.ranges))
            gone = [item for item in gone if not touches(glimpse.ranges, item.start, item.length)]
    if at is None:
        return ()
    found = list(_pieces(at, known, _hunks(texts[at], present)))
    for item in gone:
        found += _pieces(item.origin, item.ranges, _hunks(texts[item.origin], present))
    return tuple(sorted(dict.fromkeys(found), key=_order))


def news(pieces: Sequence[Piece], present: Lines, told: Sequence[Piece], then: Lines) -> tuple[Piece, ...]:
    """The pieces that were not there, or had another text in their place, when `told` was (in the text `then`)."""
    known = {_mark(piece, then) for piece in told}
    return tuple(piece for piece in pieces if _mark(piece, present) not in known)


def joined(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Neighbours that count as one: lines that follow one another in both texts."""
    out: list[Piece] = []
    for piece in pieces:
        last = out[-1] if out else None
        if (
            last is not None
            and last.origin == piece.origin
            and last.seen.end + 1 == piece.seen.start
            and last.start + last.length == piece.start
        ):
            seen = LineRange(last.seen.start, piece.seen.end)
            out[-1] = Piece(piece.origin, seen, last.start, last.length + piece.length)
        else:
            out.append(piece)
    return tuple(out)


def _order(piece: Piece) -> tuple[int, Seq, int]:
    return piece.start, piece.origin.version, piece.seen.start


def _mark(piece: Piece, text: Lines) -> tuple[At, LineRange, tuple[str, ...]]:
    return piece.origin, piece.seen, tuple(text[piece.start : piece.start + piece.length])


def _hunks(old: Lines, new: Lines) -> list[LineHunk]:
    if old == new:
        return []
    return line_by_line([LineHunk(h.old_start, h.old_len, h.new_start, h.new_len) for h in diff(old, new)])


def _pieces(origin: At, ranges: Sequence[LineRange], hunks: Sequence[LineHunk]) -> list[Piece]:
    return [
        Piece(origin, seen, hunk.new_start, hunk.new_len)
        for hunk in hunks
        for seen in overlap(ranges, hunk.old_start, hunk.old_len)
    ]


def _on(
    at: At, known: Sequence[LineRange], gone: Sequence[_Gone], hunks: Sequence[LineHunk]
) -> tuple[tuple[LineRange, ...], list[_Gone]]:
    """Across what others did: what was known and is otherwise now is gone, with the place where it stood."""
    later = [_Gone(item.origin, item.ranges, *place(item.start, item.length, hunks)) for item in gone]
    for hunk in hunks:
        lost = overlap(known, hunk.old_start, hunk.old_len)
        if lost:
            later.append(_Gone(at, lost, hunk.new_start, hunk.new_len))
    return survivors(known, hunks), later


def _own(
    known: Sequence[LineRange], gone: Sequence[_Gone], hunks: Sequence[LineHunk]
) -> tuple[tuple[LineRange, ...], list[_Gone]]:
    """Across a change of its own: what it took away it need not be told of."""
    left = [
        _Gone(item.origin, item.ranges, *place(item.start, item.length, hunks))
        for item in gone
        if not any(meet(item.start, item.length, hunk.old_start, hunk.old_len) for hunk in hunks)
    ]
    return merged((*survivors(known, hunks), *written(hunks))), left
