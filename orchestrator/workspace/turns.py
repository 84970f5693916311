"""Turns at something of which there is little: so many at once, so many of one owner, owners one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from orchestrator.core.fair_queue import FairQueue


class Turns:
    """`most` at once; `of_one` of them of one owner, so that nobody else waits for all that one has."""

    def __init__(self, most: int, *, of_one: int = 1) -> None:
        self._most, self._of_one = most, of_one
        self._busy_of: Counter[str] = Counter()
        self._queue: FairQueue[anyio.Event] = FairQueue()

    @asynccontextmanager
    async def taken(self, owner: str) -> AsyncIterator[None]:
        """Waits for a turn, which lasts as long as the block runs."""
        await self._begin(owner)
        try:
            yield
        finally:
            self._end(owner)

    async def _begin(self, owner: str) -> None:
        if not self._queue.waits(owner) and self._may(owner):
            self._busy_of[owner] += 1
            return
        granted = anyio.Event()
        self._queue.put(owner, granted)
        try:
            await granted.wait()
        except BaseException:  # cancelled
            if not self._queue.remove(owner, granted):
                self._end(owner)
            raise

    def _end(self, owner: str) -> None:
        self._busy_of[owner] -= 1
        while (following := self._queue.take(self._may)) is not None:
            self._busy_of[following[0]] += 1
            following[1].set()
        self._busy_of += Counter()  # drops those at zero

    def _may(self, owner: str) -> bool:
        return self._busy_of[owner] < self._of_one and self._busy_of.total() < self._most
