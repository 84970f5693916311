"""Lines of a file that is never in memory as a whole: where they begin, and what they hold. Blocking."""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Iterator

import msgspec

from orchestrator.core.content import Signature
from orchestrator.core.text.charsets import MARKS, codec_of
from orchestrator.core.text.line_index import (
    BEYOND_BYTES,
    MARK_BYTES,
    STEP_BYTES,
    LineIndex,
    after_end,
    after_ends,
    count_ends,
    is_ended,
    mark_of,
)
from orchestrator.core.text.secrets import MOST_KEY_BYTES, may_hold_key
from orchestrator.ports.workspace import FilePieces

PIECE_BYTES = 64 * 1024
"""Of lines that are shown, read at once."""

ROW_BYTES = 4096
"""Of a line that are read from its beginning on, where lines are shown: more than an answer has of one."""

SHOWN_BYTES = 1000
"""Of a line that count towards those that are wanted: about as many are shown."""

LONGEST_BYTES = 1 << 30
"""A line is not followed further to its end than this: about half a second."""

_END_BYTES = 4
"""Of the longest end of a line."""

TAIL_BYTES = 16 * 1024 * 1024
"""Looked through from the end; where that holds too few lines, they are counted from the beginning."""


class Shrunk(Exception):
    """The file has fewer bytes than it had."""


class Rows(msgspec.Struct):
    """Lines as they are shown, up to an offset.

    `beyond`: by place in `lines`, how many bytes of a line are not in its text.
    """

    lines: list[str]
    beyond: dict[int, int]
    until: int


class LineScan:
    """The first `size` bytes of a file as lines, by an index that grows as it is looked through."""

    def __init__(self, pieces: FilePieces, index: LineIndex, size: int) -> None:
        self._pieces, self.index, self.size = pieces, index, size
        self._encoding = index.encoding

    @property
    def total(self) -> int | None:
        """How many lines it has; None while that is not counted."""
        return self.index.total(self.size)

    def look_through(self, line: int | None, most_bytes: int) -> bool:
        """Until this line begins, or the end is reached, whether it is; or so many more bytes are looked through."""
        index, stop = self.index, self.index.covered + most_bytes
        while index.covered < min(self.size, stop) and (line is None or index.ended < line - 1):
            at = index.covered
            data = self._data_from(at)
            if data > at:
                index.skip(data)
                continue
            piece, size = self._piece(at, STEP_BYTES)
            index.add(piece, size)
        return index.covered == self.size or (line is not None and index.ended >= line - 1)

    def is_same(self) -> bool:
        """Whether what was looked through is still there, as far as some of its blocks tell."""
        index = self.index
        at = ((block, block * index.block_bytes) for block in index.marked())
        return all(mark_of(self._read(begin, MARK_BYTES)) == index.marks[block] for block, begin in at)

    def offset_of(self, line: int) -> int:
        """Where a line begins; all before it was looked through."""
        if line == 1:
            return 0
        at, left = self.index.before_line(line)
        for begin, piece, size in self._steps(at):
            within = count_ends(piece, size, self._encoding)
            if within >= left:
                return begin + after_end(piece, size, left, self._encoding)
            left -= within
        raise Shrunk

    def number_of(self, offset: int) -> int:
        """The line in which a byte is; all before it was looked through."""
        block = offset // self.index.block_bytes
        number, at = self.index.before[block] + 1, block * self.index.block_bytes
        for begin, piece, size in self._steps(at):
            size = min(size, offset - begin)  # noqa: PLW2901  # no further
            if size <= 0:
                break
            number += count_ends(piece, size, self._encoding)
        return number

    def from_end(self, count: int) -> tuple[int, int] | None:
        """Where the last `count` lines begin, and how many they are; None where the end alone does not tell."""
        ended = is_ended(self._read(max(0, self.size - BEYOND_BYTES), BEYOND_BYTES), self._encoding)
        wanted, met, until = count + ended, 0, self.size
        while until and self.size - until < TAIL_BYTES:
            begin = max(0, (until - 1) // PIECE_BYTES * PIECE_BYTES)
            piece, size = self._piece(begin, until - begin)
            last = deque(after_ends(piece, size, self._encoding), maxlen=wanted - met)
            if met + len(last) == wanted:
                return begin + last[0], count
            met, until = met + len(last), begin
        return (0, met - ended + 1) if not until else None

    def rows(self, at: int, most_lines: int, most_bytes: int) -> Rows:
        """Lines from an offset on, where one begins: so many, or as many as there are in about so many bytes."""
        rows, taken, mark = Rows([], {}, at), 0, MARKS.get(self._encoding, b"") if at == 0 else b""
        for raw, length, until in self._raw(at):
            raw = raw.removeprefix(mark) if not rows.lines else raw  # noqa: PLW2901  # without the mark
            if length > ROW_BYTES:
                rows.beyond[len(rows.lines)] = length - len(raw)
            rows.lines.append(self._text(raw, whole=length <= ROW_BYTES))
            rows.until = until
            taken += min(length, SHOWN_BYTES)
            if len(rows.lines) >= most_lines or taken >= most_bytes:
                break
        return rows

    def near_key(self, at: int, until: int) -> bool:
        """Whether right before or behind what lies between two offsets may be lines of a key."""
        begin = max(0, at - MOST_KEY_BYTES)
        near = self._read(begin, at - begin), self._read(until, MOST_KEY_BYTES)
        return self._encoding in ("utf-16-le", "utf-16-be") or any(map(may_hold_key, near))

    def within_line(self, at: int, column: int, most: int) -> tuple[str, bool]:
        """Characters of the line that begins at an offset, from the 1-based `column` on, and whether it goes on."""
        decoder = codecs.getincrementaldecoder(codec_of(self._encoding))("replace")
        skip, text, first = column - 1, "", True
        for begin, piece, size in self._steps(at):
            if not piece:
                text += "\0" * min(size - skip, most + 2)
                skip = max(0, skip - size)
                if len(text) > most + 1:
                    break
                continue
            end = next(after_ends(piece, size, self._encoding), None)
            raw = piece[: end or size]
            if first and begin == 0:
                raw = raw.removeprefix(MARKS.get(self._encoding, b""))
            first = False
            part = decoder.decode(raw, final=end is not None)
            text += part[skip:]
            skip = max(0, skip - len(part))
            if end is not None or len(text) > most + 1:
                text = text.rstrip("\r\n") if end is not None else text
                break
        return text[:most], len(text) > most

    # --- pieces -------------------------------------------------------------------------

    def _raw(self, at: int) -> Iterator[tuple[bytes, int, int]]:
        """The beginning of each line without its end, its length, and where the next one begins."""
        head, length, read = b"", 0, 0
        for at_piece, piece, size in self._steps(at, PIECE_BYTES):
            begin = 0
            for after in after_ends(piece, size, self._encoding):
                part = piece[begin : min(after, begin + ROW_BYTES + _END_BYTES)]
                yield *self._line(head + part, length + after - begin), at_piece + after
                head, length, read, begin = b"", 0, 0, after
            more = piece[begin : min(size, begin + ROW_BYTES + _END_BYTES)] or bytes(min(size - begin, ROW_BYTES))
            head = (head + more)[: ROW_BYTES + _END_BYTES]
            length, read = length + size - begin, read + len(piece) - begin
            if read > LONGEST_BYTES:
                break
        if length:
            yield *self._line(head, length), self.size

    def _line(self, head: bytes, length: int) -> tuple[bytes, int]:
        """The line and its length, without its end."""
        if length <= len(head) and is_ended(head, self._encoding):
            wide = self._encoding in ("utf-16-le", "utf-16-be")
            width = 2 if wide else 1
            pair = head[-2 * width :].replace(b"\0", b"") == b"\r\n"
            head = head[: -width * (1 + pair)]
            length = len(head)
        return head[:ROW_BYTES], length

    def _text(self, raw: bytes, *, whole: bool) -> str:
        if whole:
            return raw.decode(codec_of(self._encoding), "replace")
        return codecs.getincrementaldecoder(codec_of(self._encoding))("replace").decode(raw)

    def _steps(self, at: int, step: int = STEP_BYTES) -> Iterator[tuple[int, bytes, int]]:
        """The pieces from an offset on: where each begins, its bytes with the character after it, and its size.

        Of a hole, however long, there are no bytes.
        """
        while at < self.size:
            if (data := self._data_from(at)) > at:
                yield at, b"", data - at
                at = data
                continue
            piece, size = self._piece(at, step)
            yield at, piece, size
            at += size

    def _piece(self, at: int, step: int) -> tuple[bytes, int]:
        size = min(step, self.size - at)
        piece = self._read(at, size + BEYOND_BYTES)
        if len(piece) < size:
            raise Shrunk
        return piece, size

    def _read(self, at: int, count: int) -> bytes:
        return self._pieces.read(at, min(count, self.size - at))

    def _data_from(self, at: int) -> int:
        """Where the hole at an offset ends, in whole steps; there at once if it is none."""
        data = min(self._pieces.data_from(at), self.size)
        return data if data == self.size else max(at, data // STEP_BYTES * STEP_BYTES)


def grew(then: Signature, now: Signature) -> bool:
    """Whether a file may be the same one with more at its end; one of the same size was written to."""
    return now.inode == then.inode and now.size > then.size
