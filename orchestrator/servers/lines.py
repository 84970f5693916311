"""Newline-framed bytes on a stream, with a limit on each line."""

from __future__ import annotations

import re
from contextlib import suppress

import anyio
import msgspec
from anyio.abc import ByteStream

from orchestrator.core.errors import FrameTooLarge

CHUNK_BYTES = 64 * 1024
EDGE_BYTES = 2048
"""Of a line that is too long, so much of its beginning and its end is kept, to find out whose call it was."""

_ID = re.compile(rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{0,200}")')


class LineStream:
    """Reads one line at a time, without its newline; writes whole lines, one writer at a time."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._buffer = bytearray()
        self._searched = 0
        self._ended = False
        self._sending = anyio.Lock()

    @property
    def more_waiting(self) -> bool:
        """Whether another whole line is here already."""
        return self._buffer.find(b"\n", self._searched) >= 0

    async def receive(self, limit: int) -> bytes | None:
        """The next line; None at the end. Raises FrameTooLarge, after which the next line can be read."""
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                self._searched = 0
                if len(line) > limit:
                    raise _too_large(limit, line[:EDGE_BYTES] + line[-EDGE_BYTES:])
                return line
            self._searched = len(self._buffer)
            if self._searched > limit:
                raise _too_large(limit, await self._skip_line())
            if not await self._fill():
                return None

    async def send(self, data: bytes) -> None:
        """Write whole lines; nothing to a caller that has gone away: what it did is in the journal."""
        async with self._sending:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await self._stream.send(data)

    async def _skip_line(self) -> bytes:
        """Read past a line; its beginning and its end."""
        head, tail = bytes(self._buffer[:EDGE_BYTES]), b""
        while (end := self._buffer.find(b"\n")) < 0:
            tail = (tail + self._buffer)[-EDGE_BYTES:]
            self._buffer.clear()
            if not await self._fill():
                break
        else:
            tail = (tail + self._buffer[:end])[-EDGE_BYTES:]
            del self._buffer[: end + 1]
        self._searched = 0
        return head + tail

    async def _fill(self) -> bool:
        if self._ended:
            return False
        try:
            self._buffer += await self._stream.receive(CHUNK_BYTES)
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            self._ended = True
            return False
        return True


def _too_large(limit: int, edges: bytes) -> FrameTooLarge:
    error = FrameTooLarge(
        f"a line is over {limit} bytes", hint="Send less at once, for example by edit_file instead of write_file."
    )
    found = _ID.findall(edges)
    error.request_id = msgspec.json.decode(found[-1], type=int | str) if found else None
    return error
