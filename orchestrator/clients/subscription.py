"""A subscription from outside: events in order, and the position to go on from.

async with files.subscribe(after="@120", globs=["*.py"]) as events:
    async for event in events:
        ...
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Self

import anyio
import msgspec

from orchestrator.api.feed import SUBSCRIBE, UNSUBSCRIBE, FeedEnded, FeedEvent, Subscribe, Subscribed, Unsubscribe
from orchestrator.api.parameters import Params
from orchestrator.api.results import Result
from orchestrator.clients.connection import RemoteError
from orchestrator.core.errors import DaemonRestarted, DaemonUnreachable

MOST_WAITING = 1000
"""Events that wait for a slow reader; it gets further ones by a new subscription, from its position on."""

LEAVING_S = 5.0
"""How long the end of a subscription may wait for the daemon's answer."""

Answered = Callable[[Result], None]
"""Called with a result before the next line is read."""


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
        """Want no more."""
        if not self._cut_off and self._ended is None:
            await self._end(self.subscription)

    async def _again(self) -> None:
        """The reader has caught up with what there was room for."""
        try:
            await self.close()
            self._overflowed = False
            await self._begin(self.position)
        except (DaemonRestarted, DaemonUnreachable):
            self.cut_off()


class FollowingCalls:
    """Subscriptions of a connection."""

    _feeds: dict[int, Events]

    @abstractmethod
    async def _ask(self, name: str, params: Params, answered: Answered | None = None) -> Result: ...

    @asynccontextmanager
    async def subscribe(
        self,
        *,
        after: str | int | None = None,
        kinds: Sequence[str] = (),
        globs: Sequence[str] = (),
        stale_for: str | None = None,
    ) -> AsyncIterator[Events]:
        """Every event after `after` (without it: from now on) that the caller may see, as it happens.

        `stale_for`: only others' changes that leave what this session has read out of date.

        Raises RemoteError (`version_unknown` where `after` is beyond the journal's end).
        """
        wanted = Subscribe(after=after, kinds=tuple(kinds), globs=tuple(globs), stale_for=stale_for)

        async def begin(position: str | int | None) -> None:
            def answered(answer: Result) -> None:
                if isinstance(answer, Subscribed):
                    events.started(answer)
                    self._feeds[answer.subscription] = events

            await self._ask(SUBSCRIBE.name, msgspec.structs.replace(wanted, after=position), answered)

        async def end(subscription: int) -> None:
            self._feeds.pop(subscription, None)
            await self._ask(UNSUBSCRIBE.name, Unsubscribe(subscription=subscription))

        events = Events(begin, end)
        await begin(after)
        try:
            yield events
        finally:
            with anyio.move_on_after(LEAVING_S, shield=True):
                await _left(events)
            self._feeds.pop(events.subscription, None)


async def _left(events: Events) -> None:
    try:
        await events.close()
    except (DaemonRestarted, DaemonUnreachable):
        return  # it ended with the connection
