"""The events of a subscription, in order, and the position to go on from."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Self

import anyio
import msgspec

from orchestrator.api.feed import FeedEnded, FeedEvent, Subscribed
from orchestrator.clients.connection import RemoteError
from orchestrator.core.errors import DaemonRestarted, DaemonUnreachable

MOST_WAITING = 1000
"""Events that wait for a slow reader; it gets further ones by a new subscription, from its position on."""

LEAVING_S = 5.0
"""How long the end of a subscription may wait for the daemon's answer."""


class Events:
    """An async iterator of events. `position` is the last one given out, as `"@N"`.

    Raises DaemonRestarted when the connection ends (its `details` have `after`, to subscribe again
    with and miss nothing), RemoteError when the daemon ends the feed.
    """

    def __init__(self, begin: Callable[[str], Awaitable[None]], end: Callable[[int], Awaitable[None]]) -> None:
        self._begin, self._end = begin, end
        self._waiting: deque[FeedEvent] = deque()
        self._come = anyio.Event()
        self._overflowed = self._cut_off = False
        self._ended: FeedEnded | None = None
        self.subscription = 0
        self.position = ""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> FeedEvent:
        while not self._waiting:
            if self._cut_off:
                raise DaemonRestarted("the daemon ended while events were followed", details={"after": self.position})
            if self._overflowed:
                await self._again()
            elif self._ended is not None:
                raise RemoteError(self._ended.error)
            else:
                self._come = anyio.Event()
                await self._come.wait()
        event = self._waiting.popleft()
        self.position = event.seq
        return event

    def started(self, answer: Subscribed) -> None:
        """The daemon has agreed; its events follow."""
        self.subscription, self.position = answer.subscription, answer.after

    def take(self, method: str, params: msgspec.Raw) -> None:
        """A line of this subscription. Never waits: what a full queue has no room for is asked for again later."""
        if method == "feed_ended":
            self._ended = msgspec.json.decode(params, type=FeedEnded)
        elif self._overflowed or len(self._waiting) >= MOST_WAITING:
            self._overflowed = True
        else:
            self._waiting.append(msgspec.json.decode(params, type=FeedEvent))
        self._come.set()

    def cut_off(self) -> None:
        """The connection has ended."""
        self._cut_off = True
        self._come.set()

    async def close(self) -> None:
        """Want no more. Where the connection has ended, so has the subscription."""
        if not self._cut_off and self._ended is None:
            with suppress(DaemonRestarted, DaemonUnreachable):
                await self._end(self.subscription)

    async def _again(self) -> None:
        """The reader has caught up with what there was room for."""
        await self.close()
        self._overflowed = False
        try:
            await self._begin(self.position)
        except (DaemonRestarted, DaemonUnreachable):
            self.cut_off()
