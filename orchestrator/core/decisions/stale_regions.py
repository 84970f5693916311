"""What became of the lines that a session saw: which of them others changed or removed, and what they added between.

By content alone: the text that it saw is compared with the text there is. Lines that merely moved, lines
around them, and what was changed and changed back are not stale; nor is what the session wrote itself, or
has seen since. A line that was added beside what it saw as one piece is not either; one inside of it is:
that region is another one now, though each of its lines is as it was.

A tracker follows a file change by change. A change is compared with the text before it once, for all sessions;
each of them then moves positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from orchestrator.core.content import LineHunk, LineRange
from orchestrator.core.decisions.costs import LARGE_LINES
from orchestrator.core.ids import Seq
from orchestrator.core.projections.read_sets import At, ReadRecord
from orchestrator.core.text.diff import diff
from orchestrator.core.text.regions import hull, line_by_line, meet, overlap, place, survivors, touches, united

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


def piece_of(origin: At, ranges: Sequence[LineRange], hunks: Sequence[LineHunk], n: int, new: Lines) -> Sequence[Piece]:
    """What one of the hunks did to these lines of `origin`."""
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


Authors: TypeAlias = tuple[tuple[str, Seq], ...]
"""Who changed some lines, each with the first change; those of one change are shared by all who follow it."""

TextOf: TypeAlias = Callable[[At], Lines]


class _Changed(msgspec.Struct):
    """Lines of the version last looked at, and what replaced them."""

    hunk: LineHunk
    authors: Authors
    last: Seq  # the newest change of them
    unsure: bool = False  # made of several changes: together they may have changed nothing


class _Gone(msgspec.Struct):
    """Seen lines that were otherwise when the session next looked at the file, elsewhere in it.

    `ranges` count in the text of `origin`; `start` (0-based) and `length` are what replaced them. `added`: the place
    between two seen lines, and what was added there.
    """

    origin: At
    ranges: tuple[LineRange, ...]
    start: int
    length: int
    added: bool
    authors: Authors
    last: Seq

    def met_by(self, hunks: Sequence[LineHunk]) -> bool:
        return any(meet(self.start, self.length, hunk.old_start, hunk.old_len) for hunk in hunks)

    def all_known(self, known: Sequence[LineRange]) -> bool:
        """Whether each line of the place is known; of one without lines, that nothing is there."""
        if not self.length:
            return any(span.start <= self.start < span.end for span in known)
        return sum(span.end - span.start + 1 for span in overlap(known, self.start, self.length)) == self.length

    def seen_in(self, record: ReadRecord, known: Sequence[LineRange]) -> bool:
        """Whether a session that was shown a record knows what became of these lines.

        A read that meets the place shows the reader that something is other than it was. Of added lines it must
        have seen all, and of what a notice shows it knows that alone.
        """
        if self.added:
            return self.all_known(known)
        if not record.by_notice:
            return touches(record.ranges, self.start, self.length)
        first, last = self.start + 1, self.start + self.length
        return any(
            (span.start, span.end) == (first, last) or span.start <= first <= last <= span.end for span in record.ranges
        )

    def pieces(self, text_of: TextOf, present: Lines) -> Sequence[Piece]:
        """Those of the lines that are not in `present` as they were seen."""
        if self.added:
            return [Piece(self.origin, self.ranges[0], self.start, self.length, added=True)] if self.length else []
        top, end = self.ranges[0].start - 1, self.ranges[-1].end
        was = text_of(self.origin)[top:end]
        found = hunks_between(was, present[self.start : self.start + self.length])
        hunks = [hunk.shifted(top, self.start) for hunk in found]
        return [p for n in range(len(hunks)) for p in piece_of(self.origin, self.ranges, hunks, n, present)]


class Tracker:
    """What one session saw of one file, at `version`; it goes on only, never back."""

    def __init__(self, first: ReadRecord) -> None:
        self.at = first.met
        self.version = self.at.version
        self._known: tuple[LineRange, ...] = ()
        self._changed: list[_Changed] = []
        self._gone: list[_Gone] = []
        self.notified = Seq(0)
        """A notice has shown all that was stale up to this version."""

    @property
    def size(self) -> int:
        """How many places it holds, and one for itself."""
        return len(self._changed) + len(self._gone) + len(self._known) + 1

    def origins(self, *, news_only: bool) -> Iterator[At]:
        """The contents that `stale` needs besides the present one, each at least once."""
        yield self.at
        for gone in self._gone:
            if gone.last > self.notified or not news_only:
                yield gone.origin

    # --- following --------------------------------------------------------------------

    def follow(self, version: Seq, authors: Authors, hunks: Sequence[LineHunk]) -> None:
        """Somebody else's change, the next one of the file: the version that it made, line by line."""
        for gone in self._gone:
            if gone.met_by(hunks):
                gone.authors, gone.last = authors_of(gone.authors, authors), version
            edges = gone.added or not gone.length  # what was taken away may come again
            gone.start, gone.length = place(gone.start, gone.length, hunks, edges=edges)
        for hunk in reversed(hunks):  # from the end, so that the positions of those above still hold
            self._meet(hunk, version, authors)
        self.version = version

    def _meet(self, hunk: LineHunk, version: Seq, authors: Authors) -> None:
        start, end, shift = hunk.old_start, hunk.old_end, hunk.new_len - hunk.old_len
        known = [changed.hunk for changed in self._changed]
        first = 0
        while first < len(known) and known[first].new_start < end and not _reached(known[first], hunk):
            first += 1
        last = first
        while last < len(known) and _reached(known[last], hunk):
            last += 1
        if first < last:
            top, bottom = min(start, known[first].new_start), max(end, known[last - 1].new_end)
            old = known[first].old_start - (known[first].new_start - top)
            old_end = known[last - 1].old_end + bottom - known[last - 1].new_end
            for changed in self._changed[first:last]:
                authors = authors_of(changed.authors, authors)
            whole = _Changed(LineHunk(old, old_end - old, top, bottom - top + shift), authors, version, unsure=True)
        else:
            moved = known[first - 1].new_end - known[first - 1].old_end if first else 0
            whole = _Changed(LineHunk(start - moved, hunk.old_len, start, hunk.new_len), authors, version)
        for changed in self._changed[last:]:
            changed.hunk = changed.hunk.shifted(0, shift)
        self._changed[first:last] = [whole]

    def look(self, record: ReadRecord, text_of: TextOf) -> None:
        """The session looked at the file again, or changed it. `version` is what it met, by then."""
        if record.met != self.at:
            self._rebase(record.met, text_of)
        if record.before is not None:
            self._own(record.hunks)
            self.at = At(record.path, record.version)
            self.version = record.version
        if record.ranges:
            self._known = united(self._known, record.ranges)
            self._gone = [gone for gone in self._gone if not gone.seen_in(record, self._known)]

    def _own(self, hunks: Sequence[LineHunk]) -> None:
        """Across a change of its own: it knows what it wrote, and what it took away."""
        spans = [LineRange(hunk.new_start + 1, hunk.new_start + hunk.new_len) for hunk in hunks]
        self._known = united(survivors(self._known, hunks), spans)
        self._gone = [gone for gone in self._gone if gone.added or not gone.met_by(hunks)]
        for gone in self._gone:
            gone.start, gone.length = place(gone.start, gone.length, hunks)
        self._gone = [gone for gone in self._gone if not (gone.added and gone.all_known(self._known))]

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
            self._gone += (
                _Gone(self.at, seen, *where, changed.authors, changed.last) for where, seen in places.items()
            )
        self._known = survivors(self._known, hunks)
        self._changed = []
        self.at = onto

    def _refine(self, old: Lines, new: Lines) -> None:
        """Changes that met others: compare what is there with what was there first."""
        refined: list[_Changed] = []
        for changed in self._changed:
            if not changed.unsure:
                refined.append(changed)
                continue
            whole = changed.hunk
            was, is_now = old[whole.old_start : whole.old_end], new[whole.new_start : whole.new_end]
            hunks = [LineHunk(0, whole.old_len, 0, whole.new_len)]
            if len(was) + len(is_now) <= LARGE_LINES or was == is_now:  # else comparing takes too long here
                hunks = hunks_between(was, is_now)
            refined += (
                _Changed(hunk.shifted(whole.old_start, whole.new_start), changed.authors, changed.last)
                for hunk in hunks
            )
        self._changed = refined

    # --- what is stale ----------------------------------------------------------------

    def stale(self, text_of: TextOf, present: Lines, *, news_only: bool = False) -> dict[Piece, Authors]:
        """The seen lines that are not in `present` as they were seen, and who changed them, in the order of `present`.

        `present` is the text of `version`. `news_only`: less what a notice has shown.
        """
        self._refine(text_of(self.at), present)
        hunks = [changed.hunk for changed in self._changed]
        found: dict[Piece, Authors] = {}
        for n, changed in enumerate(self._changed):
            if changed.last > self.notified or not news_only:
                found |= dict.fromkeys(piece_of(self.at, self._known, hunks, n, present), changed.authors)
        for gone in self._gone:
            if gone.last > self.notified or not news_only:
                for piece in gone.pieces(text_of, present):
                    found.setdefault(piece, gone.authors)
        ordered = sorted(found, key=lambda piece: (piece.start, piece.origin.version, piece.seen.start))
        return {piece: found[piece] for piece in ordered}


def authors_of(one: Authors, other: Authors) -> Authors:
    """All of both, each with the first change."""
    if one == other:
        return one
    first: dict[str, Seq] = {}
    for who, seq in (*one, *other):
        first[who] = min(seq, first.get(who, seq))
    return tuple(first.items())


def _reached(known: LineHunk, hunk: LineHunk) -> bool:
    """Whether a change meets lines that were changed before; at an edge only where one of them has no lines."""
    if known.old_len and known.new_len and hunk.old_len:
        return known.new_start < hunk.old_end and hunk.old_start < known.new_end
    return known.new_start <= hunk.old_end and hunk.old_start <= known.new_end
