"""What a command writes, as much of it as is kept: of a long output its beginning and its end."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple


class Piece(NamedTuple):
    """Bytes of an output, and where they begin in it."""

    start: int
    data: bytes


class KeptOutput:
    """At most so many bytes: half of them the first, half the last. Adding costs no more than the bytes added."""

    def __init__(self, most: int) -> None:
        self._most_head = most // 2
        self._most_tail = most - self._most_head
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self.total = 0
        """Bytes that it wrote."""

    def add(self, data: bytes) -> None:
        """Take in what it wrote next."""
        self.total += len(data)
        room = self._most_head - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail.append(data)
            self._tail_bytes += len(data)
            while self._tail_bytes - len(self._tail[0]) >= self._most_tail:
                self._tail_bytes -= len(self._tail.popleft())

    @property
    def head_bytes(self) -> int:
        """Of the beginning; the others are of the end."""
        return len(self._head)

    def kept(self) -> bytes:
        """All that is kept, the beginning before the end."""
        return bytes(self._head) + b"".join(self._tail)[-self._most_tail :]


def from_place(kept: bytes, head: int, total: int, start: int) -> Piece:
    """What is kept from a place on, to the end of its part; a place between the two parts is where the end begins.

    `kept`: as `KeptOutput.kept`, the first `head` bytes of it from the beginning of `total`.
    """
    tail_start = total - (len(kept) - head)
    if start < head:
        end = len(kept) if tail_start == head else head
        return Piece(start, kept[start:end])
    start = max(start, tail_start)
    return Piece(start, kept[head + start - tail_start :])
