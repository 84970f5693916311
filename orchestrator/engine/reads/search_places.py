"""What of a large file is matched at once: whole lines, or of a line that is too long for that, a part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from orchestrator.core.text.charsets import Encoding
from orchestrator.core.text.line_index import BEYOND_BYTES, after_ends
from orchestrator.ports.workspace import FilePieces

LONGEST_LINE = 4 * 1024 * 1024
"""Bytes of a line that is matched whole; of a longer one parts are."""

PIECE_BYTES = 1024 * 1024
"""Of lines that are matched at once where it is all of a file; and of a part of a long line."""

BESIDE_BYTES = 256 * 1024
"""Of a long line on both sides of a part, so that what lies across its border is in one of them."""

NEAR_BYTES = 2 * 1024
"""Around a place, read at first, to find where its line begins and ends."""

LINES_BYTES = 4 * 1024 * 1024
"""Behind a line, in which lies what a match over a known number of lines may go on in."""

BATCH_BYTES = 4 * 1024 * 1024
"""That go to a worker together."""


class Place(NamedTuple):
    """Whole lines of a file, or a part of one line. What begins at `end` or later belongs to another place."""

    begin: int
    raw: bytes
    end: int
    begun: bool = False  # the line begins before the part
    goes_on: bool = False  # the line goes on after it
    short: bool = False  # a match may go on in lines that were not read

    @property
    def is_part(self) -> bool:
        return self.begun or self.goes_on


class Reach(NamedTuple):
    """How far a match goes beyond a line: over so many line ends, or, if that may be any number, so many bytes."""

    breaks: int | None = 0
    after: int = 0
    before: int = 0  # from a place; then a match has no more bytes than these


class Places:
    """The places of a file of `size` bytes. Blocking."""

    def __init__(self, pieces: FilePieces, size: int, encoding: Encoding, reach: Reach) -> None:
        self._pieces, self._size, self._encoding, self._reach = pieces, size, encoding, reach

    def around(self, offsets: Sequence[int]) -> Iterator[Place]:
        """The lines around offsets of a file whose lines end by newlines, and those over which a match may go."""
        done, before = 0, self._reach.before
        for offset in offsets:
            if offset < done or offset >= self._size:
                continue
            begin, end = self._line_begin(offset), self._line_end(offset)
            if begin is None or end is None or end - begin > LONGEST_LINE:
                begin = begin or 0
                place = self._part(max(begin, offset // PIECE_BYTES * PIECE_BYTES), begin)
            else:
                first = self._line_begin(max(0, offset - before)) if before else begin
                own, short = self._reached(end)  # where what was looked for begins before what matches
                place = self._whole(begin if first is None else first, own)
                place = place._replace(short=place.short or short or first is None)
            if place.end > done:
                yield place
                done = place.end

    def behind(self, offset: int) -> Iterator[Place]:
        """As `all`, behind the line of an offset; or, where that is long, behind the part."""
        end = self._line_end(offset)
        yield from self.all(end) if end is not None else self.all((offset // PIECE_BYTES + 1) * PIECE_BYTES, 0)

    def all(self, at: int = 0, line: int | None = None) -> Iterator[Place]:
        """All lines from one on, piece by piece, each with those over which a match may go; holes are left out.

        `line`: where the long line begins in which that is, or, if that is far before, any offset before.
        """
        while at < self._size:
            data = self._pieces.data_from(at)
            if data - at > PIECE_BYTES:  # zeros are no text
                at, line = min(self._size, data // PIECE_BYTES * PIECE_BYTES), at if line is None else line
                continue
            if line is None:
                end = self._last_end(at, PIECE_BYTES) or self._line_end(at)
                if end is not None:
                    yield self._whole(at, end)
                    at = end
                    continue
                line = at
            part = self._part(at, line)
            yield part
            at, line = part.end, line if part.goes_on else None

    def _whole(self, begin: int, end: int) -> Place:
        """Whole lines up to an offset, and those over which a match may go on."""
        last, short = self._reached(end)
        return Place(begin, self._pieces.read(begin, last - begin), end, short=short)

    def _reached(self, end: int) -> tuple[int, bool]:
        """Where the lines end over which a match may go on from the last one, and whether one may go further."""
        breaks, after, before = self._reach
        if breaks is None:
            last = self._line_end(min(self._size, end + after))
            return (end, True) if last is None else (last, last < self._size and not before)
        last = end
        for _ in range(breaks):
            ended = self._line_end(last)
            if ended is None or ended - end > LINES_BYTES:
                return last, True
            last = ended
        return last, False

    def _part(self, at: int, line: int) -> Place:
        """Of the line that begins at `line`, or not near, what is from an offset to the next border, and beside."""
        begin = max(line, at - BESIDE_BYTES)
        end = (at // PIECE_BYTES + 1) * PIECE_BYTES
        raw = self._read(begin, end + BESIDE_BYTES - begin)
        ended = self._first_end(raw[at - begin :], at)
        if ended is not None:
            return Place(begin, raw[: ended - begin], ended, begun=begin > line)
        return Place(begin, raw[: end + BESIDE_BYTES - begin], end, begun=begin > line, goes_on=True)

    def _line_begin(self, at: int) -> int | None:
        """Where the line of an offset begins; None if that is far before. Of lines that end by newlines."""
        near = NEAR_BYTES
        while True:
            first = max(0, at - near)
            feed = self._pieces.read(first, at - first).rfind(b"\n")
            if feed >= 0 or not first:
                return first + feed + 1
            if near >= LONGEST_LINE:
                return None
            near = min(LONGEST_LINE, near * 8)

    def _line_end(self, at: int) -> int | None:
        """Where the next line begins after an offset; None if that is far behind."""
        near = NEAR_BYTES
        while True:
            ended = self._first_end(self._read(at, near), at)
            if ended is not None or near >= LONGEST_LINE:
                return ended
            near = min(LONGEST_LINE, near * 8)

    def _first_end(self, raw: bytes, at: int) -> int | None:
        """Where the first line ends of what is read from an offset on; None if it is not in that."""
        is_rest = at + len(raw) >= self._size
        size = len(raw) - (0 if is_rest else BEYOND_BYTES)
        ended = next(after_ends(raw, size, self._encoding), None)
        return at + ended if ended is not None else self._size if is_rest else None

    def _last_end(self, at: int, most: int) -> int | None:
        """Where the last line ends of so many bytes from an offset on; None if none does."""
        raw = self._read(at, most)
        if at + len(raw) >= self._size:
            return self._size
        ended = max(after_ends(raw, most, self._encoding), default=None)
        return at + ended if ended is not None else None

    def _read(self, at: int, count: int) -> bytes:
        """With the character after them."""
        return self._pieces.read(at, min(count + BEYOND_BYTES, self._size - at))


def batch(places: Iterator[Place]) -> list[Place]:
    """The next places."""
    some, taken = list[Place](), 0
    for place in places:
        some.append(place)
        taken += len(place.raw) + 100
        if taken >= BATCH_BYTES:
            break
    return some
