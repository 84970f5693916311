"""The HTTP connections: on loopback addresses alone, with limits on their number, their headers and their silence."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import Any

import anyio
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from orchestrator.core.errors import PortTaken

ADDRESSES = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))

HEADERS_S = 10.0
"""For the head of a request, from its first byte or the connection's begin on."""

IDLE_S = 120
"""Between two requests of a connection."""

UNREAD_S = 60.0
"""A peer that reads nothing of its answer for so long is cut off."""

MOST_CONNECTIONS = 256
"""With more, the one that has been silent for longest is closed; where none is, the new one."""

HEADER_BYTES = 32 * 1024


def bind_loopback(port: int) -> list[socket.socket]:
    """`port` (0: any) of both addresses of `localhost`, so that no other program gets the tokens meant for us.

    Raises PortTaken.
    """
    bound: list[socket.socket] = []
    for family, address in ADDRESSES:
        try:
            opened = socket.socket(family)
        except OSError:  # a kernel without this family
            continue
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            opened.bind((address, bound[0].getsockname()[1] if bound else port))
            opened.listen(256)
        except OSError as error:
            opened.close()
            if error.errno == errno.EADDRNOTAVAIL and bound:  # this machine has no ::1
                continue
            for one in bound:
                one.close()
            raise PortTaken(f"port {port} of {address} can't be served: {error.strerror}") from error
        opened.setblocking(False)
        bound.append(opened)
    return bound


async def serve_connections(app: Any, sockets: list[socket.socket]) -> None:
    """Serve an ASGI application until cancelled; then every connection and request ends."""
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="critical",  # what anybody sends is no line of our log
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=IDLE_S,
        h11_max_incomplete_event_size=HEADER_BYTES,
    )
    config.load()
    state, silent = ServerState(), dict[_Connection, None]()
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(lambda: _Connection(config, state, silent), sock=one) for one in sockets]
    try:
        await anyio.sleep_forever()
    finally:
        for server in servers:
            server.close()
        for connection in [*state.connections]:
            connection.transport.abort()
        tasks = [*state.tasks]
        for task in tasks:
            task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.gather(*tasks, return_exceptions=True)


class _Connection(H11Protocol):
    """One connection; `silent` are those of which no request is under way, the longest so first."""

    def __init__(self, config: uvicorn.Config, state: ServerState, silent: dict[_Connection, None]) -> None:
        super().__init__(config, state, {})
        self._silent = silent
        self._head: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its base
        super().connection_made(transport)
        self._wait_for_head()
        self._silent[self] = None
        if len(self.connections) > MOST_CONNECTIONS:
            next(iter(self._silent)).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._silent.pop(self, None)
        self._head, self._unread = _cancelled(self._head), _cancelled(self._unread)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._between_requests:
            self._wait_for_head()
        else:
            self._silent.pop(self, None)
            self._head = _cancelled(self._head)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._between_requests and not self.transport.is_closing():
            self._silent[self] = None

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(UNREAD_S, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread = _cancelled(self._unread)

    @property
    def _between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _wait_for_head(self) -> None:
        if self._head is None:
            self._head = self.loop.call_later(HEADERS_S, self.transport.abort)


def _cancelled(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """What stands in its place."""
    if timer is not None:
        timer.cancel()
    return None
