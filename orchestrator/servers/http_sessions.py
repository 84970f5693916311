"""Sessions over HTTP, which has no connection that is one: an agent's requests share one until they cease."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import msgspec
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from orchestrator.api.framing import MAX_FRAME_BYTES
from orchestrator.core.errors import OrchestratorError, RateLimited
from orchestrator.core.ids import SessionId
from orchestrator.engine.caller import Caller
from orchestrator.engine.engine import Engine
from orchestrator.logs import logger
from orchestrator.servers.dispatch import MAX_OPEN_CALLS, Dispatcher, OpenCalls
from orchestrator.servers.mcp import McpClient, McpHandlers

IDLE_US = 30 * 60 * 1_000_000
"""A session without requests for so long ends; its agent can resume it."""

CHECK_S = 30.0

MOST_OF_AGENT = 16
"""Sessions of one agent at a time; with a further one the least recently used ends."""

MOST_OF_PROTOCOL = 64
"""Of MCP's own sessions, in one of ours."""


class HttpSession:
    """One session, with what MCP keeps between its requests."""

    def __init__(self, caller: Caller, managers: Mapping[bool, StreamableHTTPSessionManager], calls: OpenCalls) -> None:
        self.caller, self.managers, self.calls = caller, managers, calls
        self.requests = self.used_us = 0
        self._over = anyio.Event()

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        async with self.managers[False].run(), self.managers[True].run():
            task_status.started()
            await self._over.wait()

    def end(self) -> None:
        """What of it is under way ends, too."""
        self.calls.close()
        self._over.set()


class HttpSessions:
    """The open ones: begun by a request, ended after a time without any, or when their agent may not call any more."""

    def __init__(
        self, engine: Engine, dispatcher: Dispatcher, client_of: Callable[[ServerRequestContext[Any]], McpClient]
    ) -> None:
        self._engine, self._dispatcher = engine, dispatcher
        self._servers = {
            stands_in: McpHandlers(dispatcher, client_of, stands_in=stands_in).server for stands_in in (False, True)
        }
        """Our own tools, and those that stand in for another server's."""
        self._sessions: dict[SessionId, HttpSession] = {}  # the least recently used first
        self._tasks: TaskGroup | None = None
        self._opening = anyio.Lock()
        self._log = logger("servers")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Around all requests."""
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._watch)
            try:
                yield
            finally:
                with anyio.CancelScope(shield=True):
                    await self.end_where(lambda session: True)
                self._tasks.cancel_scope.cancel()

    @asynccontextmanager
    async def request(self, caller: Caller, client: str) -> AsyncIterator[HttpSession]:
        """The caller's session, opened where it is not; it does not end while the request is under way.

        Raises RateLimited.
        """
        own = (one.requests for one in self._sessions.values() if one.caller.agent == caller.agent)
        if sum(own) >= MAX_OPEN_CALLS:
            raise RateLimited(f"{MAX_OPEN_CALLS} requests of {caller.agent} are under way", wait_s=1)
        session = await self._open(caller, client)
        session.requests += 1
        try:
            yield session
        finally:
            session.requests -= 1
            session.used_us = self._engine.ticks_us()

    async def _open(self, caller: Caller, client: str) -> HttpSession:
        async with self._opening:
            session = self._sessions.pop(caller.session, None)
            if session is None:
                await self._make_room(caller)
                session = await self._begin(caller, client)
            session.caller = msgspec.structs.replace(caller, connection=session.caller.connection)  # by any token
            self._sessions[caller.session] = session
            return session

    async def _begin(self, caller: Caller, client: str) -> HttpSession:
        assert self._tasks is not None
        managers = {
            stands_in: StreamableHTTPSessionManager(
                server, max_request_body_size=MAX_FRAME_BYTES, max_sessions=MOST_OF_PROTOCOL
            )
            for stands_in, server in self._servers.items()
        }
        session = HttpSession(caller, managers, OpenCalls(self._dispatcher))
        await self._engine.lifecycle.opened(caller, client)
        await self._tasks.start(session.run)
        return session

    async def _make_room(self, caller: Caller) -> None:
        own = [one for one in self._sessions.values() if one.caller.agent == caller.agent]
        if len(own) >= MOST_OF_AGENT:
            oldest = next((one for one in own if not one.requests), own[0])
            del self._sessions[oldest.caller.session]
            await self._end(oldest)

    async def _end(self, session: HttpSession) -> None:
        session.end()
        await self._engine.lifecycle.closed(session.caller)

    async def end_where(self, is_over: Callable[[HttpSession], bool]) -> None:
        """End these sessions."""
        async with self._opening:
            for session in [one for one in self._sessions.values() if is_over(one)]:
                del self._sessions[session.caller.session]
                await self._end(session)

    def is_over(self, session: HttpSession) -> bool:
        """Whether nobody uses it any more, or nobody may."""
        try:
            self._engine.calls.check_authorized(session.caller)
        except OrchestratorError:
            return True
        return not session.requests and self._engine.ticks_us() - session.used_us > IDLE_US

    async def _watch(self) -> None:
        while True:
            await anyio.sleep(CHECK_S)
            try:
                await self.end_where(self.is_over)
            except OrchestratorError as error:  # a full disk: with the next look
                self._log.error("the end of idle sessions could not be noted", error=error.message)
