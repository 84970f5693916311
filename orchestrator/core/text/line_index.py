"""Where the lines of a large file begin: how many lines end before each of its blocks.

A line ends as `lines.split` says: by a line feed, a carriage return, or both. Of both, the feed is the end, so a pair
that lies on the border of two pieces counts once, in the second. That is why each piece is looked at with the
character after it.
"""

from __future__ import annotations

import re
import zlib
from bisect import bisect_left
from collections.abc import Iterator

import msgspec

from orchestrator.core.text.charsets import Encoding

STEP_BYTES = 256 * 1024
"""Of a file that are looked at in one go: some 0.1 ms with the interpreter lock held."""

BEYOND_BYTES = 2
"""Of the character after a piece."""

MOST_BLOCKS = 8192
"""A larger file has larger blocks, so that every index stays small: 300 KB of memory."""

MARK_BYTES = 4096
"""Of a block that are compared, to notice that an index is of another content."""

COMPARED_BLOCKS = 64
"""Of a file whose index comes from an earlier daemon; and the last one besides."""

_NARROW = re.compile(rb"\r\n|\n|\r")
_WIDE = {
    "utf-16-le": re.compile(rb"\r\0\n\0|\n\0|\r\0"),
    "utf-16-be": re.compile(rb"\0\r\0\n|\0\n|\0\r"),
}
_SLICE_BYTES = 4096


def count_ends(piece: bytes, size: int, encoding: Encoding = "utf-8") -> int:
    """How many lines end in the first `size` bytes of a piece. Cost: O(size), 2 GB/s."""
    if encoding in _WIDE:
        return sum(1 for _ in after_ends(piece, size, encoding))
    feeds = piece.count(b"\n", 0, size)
    if piece.find(b"\r", 0, size) < 0:
        return feeds
    return feeds + piece.count(b"\r", 0, size) - piece.count(b"\r\n", 0, size + 1)


def after_ends(piece: bytes, size: int, encoding: Encoding = "utf-8") -> Iterator[int]:
    """The offset after each line that ends there."""
    wide = _WIDE.get(encoding)
    if wide is None and piece.find(b"\r") < 0:  # most files have none: half the time, and of long lines 1 %
        at = piece.find(b"\n", 0, size) + 1
        while at:
            yield at
            at = piece.find(b"\n", at, size) + 1
        return
    for match in (wide or _NARROW).finditer(piece):
        if match.end() > size:
            return
        if wide is None or match.start() % 2 == 0:
            yield match.end()


def after_end(piece: bytes, size: int, number: int, encoding: Encoding = "utf-8") -> int:
    """The offset after the line that ends there as the `number`th, from 1; there must be as many."""
    at = 0
    while encoding not in _WIDE and at + _SLICE_BYTES < size:
        within = count_ends(piece[at : at + _SLICE_BYTES + 1], _SLICE_BYTES)
        if within >= number:
            break
        at, number = at + _SLICE_BYTES, number - within
    found = after_ends(piece[at:], size - at, encoding)
    for _ in range(number - 1):
        next(found)
    return at + next(found)


def is_ended(piece: bytes, encoding: Encoding = "utf-8") -> bool:
    """Whether the last line of a text with this end is ended."""
    if encoding in _WIDE:
        return piece[-2:] in ((b"\n\0", b"\r\0") if encoding == "utf-16-le" else (b"\0\n", b"\0\r"))
    return piece.endswith((b"\n", b"\r"))


class LineIndex(msgspec.Struct):
    """The lines that end before each block, as far as the file was looked through. It holds no content."""

    encoding: Encoding
    block_bytes: int
    before: list[int] = []
    marks: list[int] = []  # a checksum of the beginning of each block
    ended: int = 0
    """Lines that end in what was looked through."""
    covered: int = 0
    """Bytes that were looked through: all, or a number of whole steps."""
    last_ended: bool = True
    """Whether the last byte that was looked through ends a line."""
    returns: bool = False
    """Whether there is a carriage return."""
    lone: bool = False
    """Whether one ends a line alone."""

    @property
    def held_bytes(self) -> int:
        """What it takes in memory: two numbers for each block."""
        return 72 * len(self.before)

    @classmethod
    def empty(cls, encoding: Encoding, size: int) -> LineIndex:
        """Of a file of about so many bytes."""
        block = STEP_BYTES
        while size > MOST_BLOCKS * block:
            block *= 2
        return cls(encoding, block, [], [])

    def add(self, piece: bytes, size: int) -> None:
        """The next `size` bytes of the file: a step, or all that is left; the piece goes on where the file does."""
        self._begin(piece[: min(size, MARK_BYTES)])
        ended = count_ends(piece, size, self.encoding)
        self.ended += ended
        self.returns = self.returns or piece.find(b"\r", 0, size) >= 0
        self.lone = self.lone or (self.returns and ended > piece.count(b"\n", 0, size))
        self.covered += size
        self.last_ended = is_ended(piece[max(0, size - 2) : size], self.encoding)

    def skip(self, end: int) -> None:
        """Up to `end`, whole steps or the end of the file, all bytes are zero."""
        while self.covered < end:
            self._begin(bytes(min(MARK_BYTES, end - self.covered)))
            self.covered = min(end, (self.covered // self.block_bytes + 1) * self.block_bytes)
        self.last_ended = False

    def _begin(self, piece: bytes) -> None:
        if self.covered % self.block_bytes == 0:
            self.before.append(self.ended)
            self.marks.append(mark_of(piece))

    def marked(self) -> list[int]:
        """Blocks whose beginnings are compared; the last is one."""
        last = len(self.before) - 1
        return sorted({last * n // COMPARED_BLOCKS for n in range(COMPARED_BLOCKS + 1)}) if last >= 0 else []

    def before_line(self, line: int) -> tuple[int, int]:
        """The offset of a block, and how many lines end in it up to where this line begins, at least 1.

        `line` is 1-based, from 2 on, and at most one more than `ended`.
        """
        block = bisect_left(self.before, line - 1) - 1
        return block * self.block_bytes, line - 1 - self.before[block]

    def total(self, size: int) -> int | None:
        """The lines of a file of so many bytes; None while it is not looked through."""
        return self.ended + (not self.last_ended) if self.covered == size else None


def mark_of(piece: bytes) -> int:
    """What is compared of a block."""
    return zlib.crc32(piece[:MARK_BYTES])
