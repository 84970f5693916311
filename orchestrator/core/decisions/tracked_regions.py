"""The same answer as `stale_regions`, kept up to date: what a session saw of a file, followed change by change.

A change is compared with the text before it once, for all sessions; each of them then moves positions. What
`stale` finds by comparing every version that a session saw with the present one, this has at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from orchestrator.core.content import LineHunk, LineRange
from orchestrator.core.decisions.costs import LARGE_LINES
from orchestrator.core.decisions.stale_regions import (
    At,
    Gone,
    Lines,
    Piece,
    hunks_between,
    looked_at,
    own,
    piece_of,
    pieces,
)
from orchestrator.core.ids import Seq
from orchestrator.core.projections.read_sets import ReadRecord
from orchestrator.core.projections.seen import united
from orchestrator.core.text.regions import between, meet, place, survivors

Authors: TypeAlias = tuple[tuple[str, Seq], ...]
"""Who changed some lines, each with the first change; those of one change are shared by all who follow it."""

TextOf: TypeAlias = Callable[[At], Lines]

MOST_PLACES = 2_000
"""Of lines that are otherwise than they were seen. What has more is compared anew each time."""


class Step(NamedTuple):
    """One change by somebody else: the version that it made, and its lines, line by line as far as that goes."""

    version: Seq
    authors: Authors  # one
    hunks: Sequence[LineHunk]


class _Changed:
    """Lines of the version last looked at, and what stands in their place; both 0-based."""

    __slots__ = ("authors", "last", "new", "new_len", "old", "old_len", "told", "unsure")

    def __init__(self, old: int, old_len: int, new: int, new_len: int, authors: Authors, last: Seq) -> None:
        self.old, self.old_len, self.new, self.new_len = old, old_len, new, new_len
        self.authors, self.last = authors, last
        self.told: tuple[str, ...] | None = None
        self.unsure = False  # made of several changes: together they may have changed nothing

    @property
    def hunk(self) -> LineHunk:
        return LineHunk(self.old, self.old_len, self.new, self.new_len)


class _Left:
    """Seen lines that were otherwise when the session next looked at the file, elsewhere in it."""

    __slots__ = ("authors", "gone", "last", "told")

    def __init__(self, gone: Gone, authors: Authors, last: Seq, told: tuple[str, ...] | None) -> None:
        self.gone, self.authors, self.last, self.told = gone, authors, last, told


class Found(NamedTuple):
    """A stale piece, and who made it so."""

    piece: Piece
    authors: Authors


class Tracker:
    """What one session saw of one file, at `version`; it goes on only, never back."""

    def __init__(self, first: ReadRecord) -> None:
        self.at = At(first.path, first.before if first.before is not None else first.version)
        self.version = self.at.version
        self._known: tuple[LineRange, ...] = ()
        self._changed: list[_Changed] = []
        self._left: list[_Left] = []
        self.told = Seq(0)
        """All that was stale up to this version has been told."""

    @property
    def size(self) -> int:
        """How many places it holds, and one for itself."""
        return len(self._changed) + len(self._left) + len(self._known) + 1

    @property
    def too_much(self) -> bool:
        """Whether following it costs more than comparing."""
        return self.size > MOST_PLACES

    @property
    def is_told(self) -> bool:
        """Whether all that is stale at `version` has been told."""
        return self.told == self.version

    def origins(self, *, news_only: bool) -> Iterator[At]:
        """The contents that `stale` needs besides the present one, each at least once."""
        yield self.at
        for left in self._left:
            if left.last > self.told or not news_only:
                yield left.gone.origin

    # --- following --------------------------------------------------------------------

    def follow(self, step: Step) -> None:
        """Somebody else's change, the next one of the file."""
        for left in self._left:
            gone = left.gone
            moved = between if gone.added or not gone.length else place  # what was taken away may come again
            start, length = moved(gone.start, gone.length, step.hunks)
            if any(meet(gone.start, gone.length, hunk.old_start, hunk.old_len) for hunk in step.hunks):
                left.authors = _joined(left.authors, step.authors)
                left.last = step.version
            if (start, length) != (gone.start, gone.length):
                left.gone = gone._replace(start=start, length=length)
        for hunk in reversed(step.hunks):  # from the end, so that those above stand where the step says
            self._meet(hunk, step)
        self.version = step.version

    def _meet(self, hunk: LineHunk, step: Step) -> None:
        start, end = hunk.old_start, hunk.old_start + hunk.old_len
        shift = hunk.new_len - hunk.old_len
        first = 0
        while first < len(self._changed) and not _reached(self._changed[first], hunk):
            if self._changed[first].new >= end:
                break
            first += 1
        last = first
        while last < len(self._changed) and _reached(self._changed[last], hunk):
            last += 1
        met = self._changed[first:last]
        if met:
            top, bottom = min(start, met[0].new), max(end, met[-1].new + met[-1].new_len)
            old = met[0].old - (met[0].new - top)
            old_end = met[-1].old + met[-1].old_len + bottom - met[-1].new - met[-1].new_len
            authors = step.authors
            for changed in met:
                authors = _joined(changed.authors, authors)
            whole = _Changed(old, old_end - old, top, bottom - top + shift, authors, step.version)
            whole.unsure = True
            if len(met) == 1 and (met[0].new, met[0].new_len) == (whole.new, whole.new_len):
                whole.told = met[0].told
        else:
            above = self._changed[first - 1] if first else None
            moved = above.new + above.new_len - above.old - above.old_len if above is not None else 0
            whole = _Changed(start - moved, hunk.old_len, start, hunk.new_len, step.authors, step.version)
        if shift:
            for changed in self._changed[last:]:
                changed.new += shift
        self._changed[first:last] = [whole]

    def look(self, read_record: ReadRecord, text_of: TextOf) -> None:
        """The session looked at the file again, or changed it. `version` is what it met, by then."""
        met = At(read_record.path, read_record.before if read_record.before is not None else read_record.version)
        if met != self.at:
            self._rebase(met, text_of)
        known, gone = self._known, [left.gone for left in self._left]
        if read_record.before is not None:
            known, gone = own(known, gone, read_record.hunks)
            self._keep(gone)
            self.at = At(read_record.path, read_record.version)
            self.version = read_record.version
        if read_record.ranges:
            known = united(known, read_record.ranges)
            self._left = [left for left in self._left if not looked_at(left.gone, read_record, known)]
        self._known = known

    def _keep(self, gone: Sequence[Gone]) -> None:
        """What is left of the places, in the same order; they may have moved."""
        kept: list[_Left] = []
        rest = iter(self._left)
        for item in gone:
            for left in rest:
                if (left.gone.origin, left.gone.ranges, left.gone.added) == (item.origin, item.ranges, item.added):
                    left.gone = item
                    kept.append(left)
                    break
        self._left = kept

    def _rebase(self, onto: At, text_of: TextOf) -> None:
        """From now on count in another version: what is otherwise there has gone."""
        new = text_of(onto)
        self._refine(text_of(self.at), new)
        hunks = [changed.hunk for changed in self._changed]
        for n, changed in enumerate(self._changed):
            places: dict[tuple[int, int, bool], tuple[LineRange, ...]] = {}
            for piece in piece_of(self.at, self._known, hunks, n, new):
                key = (piece.start, piece.length, piece.added)
                places[key] = (*places.get(key, ()), piece.seen)
            self._left += (
                _Left(Gone(self.at, seen, *where), changed.authors, changed.last, changed.told)
                for where, seen in places.items()
            )
        self._known = survivors(self._known, hunks)
        self._changed = []
        self.at = onto

    def _refine(self, old: Lines, new: Lines) -> None:
        """Changes that met others: compare what stands there with what stood there first."""
        if not any(changed.unsure for changed in self._changed):
            return
        refined: list[_Changed] = []
        for changed in self._changed:
            if not changed.unsure:
                refined.append(changed)
                continue
            was = old[changed.old : changed.old + changed.old_len]
            is_now = new[changed.new : changed.new + changed.new_len]
            if len(was) + len(is_now) <= LARGE_LINES or was == is_now:
                hunks = hunks_between(was, is_now)
            else:  # comparing them takes too long here: all of it has changed
                hunks = [LineHunk(0, changed.old_len, 0, changed.new_len)]
            if hunks == [LineHunk(0, changed.old_len, 0, changed.new_len)]:
                changed.unsure = False
                refined.append(changed)
                continue
            refined += (
                _Changed(
                    changed.old + h.old_start,
                    h.old_len,
                    changed.new + h.new_start,
                    h.new_len,
                    changed.authors,
                    changed.last,
                )
                for h in hunks
            )
        self._changed = refined

    # --- telling ----------------------------------------------------------------------

    def stale(self, text_of: TextOf, present: Lines, *, news_only: bool = False) -> list[Found]:
        """The seen lines that are not in `present` as they were seen; `present` is the text of `version`.

        `news_only`: less what was told. In the order of `present`.
        """
        self._refine(text_of(self.at), present)
        hunks = [changed.hunk for changed in self._changed]
        found: dict[Piece, Authors] = {}
        for n, changed in enumerate(self._changed):
            if news_only and self._is_told(changed.last, changed.told, present, changed.new, changed.new_len):
                continue
            for piece in piece_of(self.at, self._known, hunks, n, present):
                found[piece] = changed.authors
        for left in self._left:
            gone = left.gone
            if news_only and self._is_told(left.last, left.told, present, gone.start, gone.length):
                continue
            for piece in _pieces_left(gone, text_of, present):
                found.setdefault(piece, left.authors)
        ordered = sorted(found, key=lambda piece: (piece.start, piece.origin.version, piece.seen.start))
        return [Found(piece, found[piece]) for piece in ordered]

    def _is_told(self, last: Seq, told: tuple[str, ...] | None, present: Lines, start: int, length: int) -> bool:
        return last <= self.told or (told is not None and told == tuple(present[start : start + length]))

    def tell(self, present: Lines) -> None:
        """All that is stale at `version` has been told."""
        for changed in self._changed:
            if changed.last > self.told:
                changed.told = tuple(present[changed.new : changed.new + changed.new_len])
        for left in self._left:
            if left.last > self.told:
                left.told = tuple(present[left.gone.start : left.gone.start + left.gone.length])
        self.told = self.version


def _joined(one: Authors, other: Authors) -> Authors:
    if one == other:
        return one
    first: dict[str, Seq] = {}
    for who, seq in (*one, *other):
        first[who] = min(seq, first.get(who, seq))
    return tuple(first.items())


def _reached(changed: _Changed, hunk: LineHunk) -> bool:
    """Whether a change meets lines that were changed before; at an edge only where nothing stands, or stood, there."""
    start, end = hunk.old_start, hunk.old_start + hunk.old_len
    top, bottom = changed.new, changed.new + changed.new_len
    if changed.old_len and changed.new_len and hunk.old_len:
        return top < end and start < bottom
    return top <= end and start <= bottom


def _pieces_left(gone: Gone, text_of: TextOf, present: Lines) -> Sequence[Piece]:
    if gone.added:
        return [Piece(gone.origin, gone.ranges[0], gone.start, gone.length, added=True)] if gone.length else []
    top, end = gone.ranges[0].start - 1, gone.ranges[-1].end
    was = text_of(gone.origin)[top:end]
    hunks = [
        LineHunk(h.old_start + top, h.old_len, h.new_start + gone.start, h.new_len)
        for h in hunks_between(was, present[gone.start : gone.start + gone.length])
    ]
    return pieces(gone.origin, gone.ranges, hunks, present)
