"""The live feed of one connection: events as lines without an id, between the answers to calls.

Each subscription is a task that reads the journal by position and waits for the socket; a caller
that does not read holds up its own connection only.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import anyio
import msgspec
from anyio.abc import TaskGroup

from orchestrator.api.failures import parse_params
from orchestrator.api.feed import (
    METHODS,
    FeedEnded,
    FeedEvent,
    FeedLine,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Unsubscribed,
)
from orchestrator.api.framing import Reply, Request, refusal
from orchestrator.api.line_stream import LineStream
from orchestrator.core.errors import NotAvailable, OrchestratorError
from orchestrator.core.ids import show
from orchestrator.engine.caller import Caller
from orchestrator.engine.engine import Engine

MAX_SUBSCRIPTIONS = 16
"""Of one connection."""

Failed = Callable[[int | str | None, OrchestratorError], bytes]
"""Writes a refusal down."""

_ENCODER = msgspec.json.Encoder()


class Subscription:
    """One feed under way."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.ended = False
        self.sending = False
        self.scope = anyio.CancelScope()

    def end(self) -> None:
        """Send no more; a line that is being sent is finished: half of one would spoil the connection."""
        self.ended = True
        if not self.sending:
            self.scope.cancel()


class Feed:
    """The subscriptions of one connection, run in `tasks`; they end with it."""

    def __init__(self, engine: Engine, caller: Caller, lines: LineStream, tasks: TaskGroup) -> None:
        self._engine, self._caller, self._lines, self._tasks = engine, caller, lines, tasks
        self._running: dict[int, Subscription] = {}
        self._last = 0

    async def answer(self, request: Request, failed: Failed) -> None:
        """Answer `subscribe` or `unsubscribe`; a feed begins after the answer to its subscription."""
        try:
            params = parse_params(METHODS[request.method], request.params)
            if isinstance(params, Unsubscribe):
                subscription = self._running.pop(params.subscription, None)
                if subscription is not None:
                    subscription.end()
                found = subscription is not None
                await self._reply(request, Unsubscribed(subscription=params.subscription, found=found))
            elif isinstance(params, Subscribe):
                await self._subscribe(request, params)
        except OrchestratorError as error:
            await self._lines.send(failed(request.id, error))

    async def _subscribe(self, request: Request, params: Subscribe) -> None:
        if len(self._running) >= MAX_SUBSCRIPTIONS:
            raise NotAvailable(
                f"one connection has at most {MAX_SUBSCRIPTIONS} subscriptions", hint="Unsubscribe from another first."
            )
        after, events = await self._engine.follow(self._caller, params)
        self._last += 1
        subscription = self._running[self._last] = Subscription(self._last)
        await self._reply(request, Subscribed(subscription=subscription.number, after=show(after)))
        self._tasks.start_soon(self._send, subscription, events)

    async def _reply(self, request: Request, result: Subscribed | Unsubscribed) -> None:
        await self._lines.send(_ENCODER.encode(Reply(id=request.id, result=result)) + b"\n")

    async def _send(self, subscription: Subscription, events: AsyncGenerator[FeedEvent, None]) -> None:
        number = subscription.number
        with subscription.scope:
            async with aclosing(events):
                try:
                    async for event in events:
                        numbered = msgspec.structs.replace(event, subscription=number)
                        await self._line(subscription, FeedLine(method="event", params=numbered))
                        if subscription.ended:
                            break
                except OrchestratorError as error:
                    ended = FeedEnded(subscription=number, error=refusal(error))
                    await self._line(subscription, FeedLine(method="feed_ended", params=ended))
        self._running.pop(number, None)

    async def _line(self, subscription: Subscription, line: FeedLine) -> None:
        subscription.sending = True
        await self._lines.send(_ENCODER.encode(line) + b"\n")
        subscription.sending = False
