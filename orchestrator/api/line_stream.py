"""Newline-framed bytes on a socket, from either end, with a limit on each line."""

from __future__ import annotations

import asyncio
import re
import socket
from contextlib import suppress
from types import TracebackType
from typing import Self

import anyio
import msgspec
from anyio.abc import SocketAttribute, SocketStream

from orchestrator.core.errors import FrameTooLarge

CHUNK_BYTES = 64 * 1024
"""So much is read at once; while nobody receives, no more than this and one chunk is taken from the socket."""

EDGE_BYTES = 2048
"""Of a line that is too long, so much of its beginning and its end is kept, to find out whose call it was."""

SEND_BYTES = 256 * 1024
"""A longer line is handed to the socket in pieces of this size, each of which must be taken in time."""

_ID = re.compile(rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{0,200}")')


class LineStream:
    """Reads one line at a time, without its newline; writes whole lines, one writer at a time.

    Use as a context manager inside the stream's, and leave its receiving to this. The socket is
    watched all the time and not anew for each line: with the stream's own `receive` and `send`, 45 µs
    of each call's processor time was spent on turns of the loop and calls to the kernel that did nothing.

    An end that takes nothing of what it is sent for `unread_s` seconds is cut off; None: never.
    """

    def __init__(self, stream: SocketStream, *, unread_s: float | None = None) -> None:
        self._stream, self._unread_s = stream, unread_s
        self._socket: socket.socket = stream.extra(SocketAttribute.raw_socket)
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._searched = 0
        self._watched = self._ended = False
        self._more: asyncio.Future[None] | None = None
        self._sending = anyio.Lock(fast_acquire=True)
        self.unsent = 0
        """Bytes handed to `send` that the socket has not taken: the other end does not read."""
        self._taken = anyio.Event()
        self.cut_off = False
        """Whether the other end was, because it read nothing."""

    def __enter__(self) -> Self:
        self._watch()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Read no more; who waits for a line gets the end. To be called before the stream's `aclose`."""
        self._ended = True
        self._look_away()
        self._wake()

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

    async def send(self, data: bytes, *, patient: bool = False) -> None:
        """Write whole lines; nothing to an end that has gone away: of a call, what it did is in the journal.

        `patient`: the other end may read it when it likes.
        """
        left = data if self._sending.locked() else self._sent_at_once(data)
        if left:
            self.unsent += len(left)
            try:
                async with self._sending:  # where it is free it is taken before anybody else has a turn
                    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                        await self._send_pieces(left, None if patient else self._unread_s)
            finally:
                self.unsent -= len(left)
                taken, self._taken = self._taken, anyio.Event()
                taken.set()

    async def _send_pieces(self, data: bytes, each_s: float | None) -> None:
        for start in range(0, len(data), SEND_BYTES):
            with anyio.move_on_after(each_s) as timer:
                await self._stream.send(data[start : start + SEND_BYTES])
            if timer.cancelled_caught:
                self.cut_off = True
                self.close()
                await anyio.aclose_forcefully(self._stream)
                return

    async def taken(self, most: int) -> None:
        """Wait until the other end has taken all but `most` bytes of what was sent."""
        while self.unsent > most:
            await self._taken.wait()

    def _sent_at_once(self, data: bytes) -> bytes:
        """Write what the socket takes without waiting; what is left of it."""
        try:
            return data[self._socket.send(data) :]
        except BlockingIOError:
            return data
        except OSError:
            return b""

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
        """Wait for more; False at the end."""
        if self._ended:
            return False
        self._watch()
        self._more = self._loop.create_future()
        try:
            await self._more
        finally:
            self._more = None
        return True

    # --- the socket, by the loop ------------------------------------------------------

    def _watch(self) -> None:
        if not self._watched:
            self._loop.add_reader(self._socket, self._readable)
            self._watched = True

    def _look_away(self) -> None:
        if self._watched:
            self._loop.remove_reader(self._socket)
            self._watched = False

    def _readable(self) -> None:
        try:
            data = self._socket.recv(CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._buffer += data
        self._ended = not data
        woken = self._wake()
        if self._ended or (not woken and len(self._buffer) > CHUNK_BYTES):
            self._look_away()

    def _wake(self) -> bool:
        """Wake who waits for more; whether somebody did."""
        if self._more is None or self._more.done():
            return False
        self._more.set_result(None)
        return True


def _too_large(limit: int, edges: bytes) -> FrameTooLarge:
    error = FrameTooLarge(
        f"a line is over {limit} bytes", hint="Send less at once, for example by edit_file instead of write_file."
    )
    found = _ID.findall(edges)
    error.request_id = msgspec.json.decode(found[-1], type=int | str) if found else None
    return error
