"""Newline-framed bytes on a stream, with a limit on each line."""

from __future__ import annotations

from contextlib import suppress

import anyio
from anyio.abc import ByteStream

from orchestrator.core.errors import FrameTooLarge

CHUNK_BYTES = 64 * 1024


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
                    raise _too_large(limit)
                return line
            self._searched = len(self._buffer)
            if self._searched > limit:
                await self._skip_line()
                raise _too_large(limit)
            if not await self._fill():
                return None

    async def send(self, data: bytes) -> None:
        """Write whole lines; nothing to a caller that has gone away: what it did is in the journal."""
        async with self._sending:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await self._stream.send(data)

    async def _skip_line(self) -> None:
        while (end := self._buffer.find(b"\n")) < 0:
            self._buffer.clear()
            if not await self._fill():
                break
        else:
            del self._buffer[: end + 1]
        self._searched = 0

    async def _fill(self) -> bool:
        if self._ended:
            return False
        try:
            self._buffer += await self._stream.receive(CHUNK_BYTES)
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            self._ended = True
            return False
        return True


def _too_large(limit: int) -> FrameTooLarge:
    return FrameTooLarge(
        f"a line is over {limit} bytes", hint="Send less at once; files over the limit are not read or written whole."
    )
