"""The calls of one connection that are not answered yet, of every transport: how many, and how large."""

from __future__ import annotations

import anyio

MAX_OPEN_CALLS = 64
"""Calls of one connection under way at once; further lines wait in the socket."""

MAX_OPEN_BYTES = 64 * 1024 * 1024
"""Of their requests. A larger one is read where no other call is open."""

UNREAD_BYTES = 64 * 1024
"""Of answers that the peer has not read; with more, no further call of the connection begins."""


class OpenCalls:
    """Holds up who reads requests until there is room for another call."""

    def __init__(self) -> None:
        self.count = self.size = 0
        self._fewer = anyio.Event()

    async def room(self) -> None:
        """Wait until another line may be read."""
        while self.count >= MAX_OPEN_CALLS or self.size >= MAX_OPEN_BYTES:
            self._fewer = anyio.Event()
            await self._fewer.wait()

    def opened(self, size: int) -> None:
        """A request of `size` bytes was read."""
        self.count += 1
        self.size += size

    def closed(self, size: int) -> None:
        """Its answer is written, or nobody waits for it."""
        self.count -= 1
        self.size -= size
        self._fewer.set()
