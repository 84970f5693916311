"""MCP over streamable HTTP, for programs of this machine with a token; a web page gets nowhere.

Every request, whatever its path, must name this server as its host, come from no other page, and bring a token.
There is no cookie and no CORS header, so a page in a browser can neither send the token nor read an answer.
"""

from __future__ import annotations

import math
import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from itertools import count
from typing import Any, NoReturn
from urllib.parse import parse_qsl

import anyio
import msgspec
from mcp.server.context import ServerRequestContext
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from orchestrator.api.framing import MAX_FRAME_BYTES, UNREADABLE, Preamble
from orchestrator.api.toolsets import DROP_IN, settings_for
from orchestrator.core import errors as e
from orchestrator.core.token_bucket import TokenBucket
from orchestrator.engine.caller import Caller
from orchestrator.engine.engine import Engine
from orchestrator.logs import logger
from orchestrator.servers.auth import Authenticator
from orchestrator.servers.dispatch import Dispatcher
from orchestrator.servers.http_connections import serve_connections
from orchestrator.servers.http_sessions import HttpSession, HttpSessions
from orchestrator.servers.mcp import McpClient

PATH = "/mcp"
SESSION_HEADER = "orchestrator-session"
OPTIONS = ("toolset", "structured", "max_answer_bytes")
"""What the URL may say after a question mark, as the options of `orchestrator mcp`; and a toolset's own settings."""

BODY_S = 30.0
"""For the whole body of a request."""

ABANDONED_S = 60.0
"""A call goes on where its client goes away, until 2025-11-25; so long it is one of the agent's that are under way."""

AGENT_CALLS = 300, 100.0
"""At once, and in a second from then on."""
STRANGER_CALLS = 300, 5.0
"""The same of all requests together that are refused before an agent is known: each is an event."""

MOST_BUCKETS = 1000
_CLIENT = "orchestrator.client"
_STATUS: Mapping[type[e.OrchestratorError], int] = {
    e.Unauthorised: 401,
    e.RateLimited: 429,
    e.FrameTooLarge: 413,
    e.SessionUnknown: 404,
    e.CallerError: 400,
    e.OrchestratorError: 503,
}
_ONCE = (b"host", b"origin", b"authorization", SESSION_HEADER.encode())

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class HttpServer:
    """One ASGI application; its connections are loopback's alone."""

    def __init__(self, engine: Engine, authenticator: Authenticator, dispatcher: Dispatcher) -> None:
        self._engine, self._authenticator, self._dispatcher = engine, authenticator, dispatcher
        self._hosts: frozenset[str] = frozenset()
        self._sessions = HttpSessions(engine, dispatcher, _client_of)
        self._strangers = TokenBucket(*STRANGER_CALLS)
        self._agents: OrderedDict[str, TokenBucket] = OrderedDict()
        self._numbers = count()
        self._log = logger("servers")

    async def serve(self, sockets: list[socket.socket]) -> None:
        """Until cancelled."""
        port = sockets[0].getsockname()[1]
        self._hosts = frozenset(f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]"))
        async with self._sessions.running():
            await serve_connections(self, sockets)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request; its failures end here."""
        try:
            await self._answer(scope, receive, send)
        except e.OrchestratorError as error:
            await _refuse(error, send)
        except Exception:  # noqa: BLE001  # one request's defect must not end the others
            self._log.exception("request failed")
            await _refuse(e.InternalError("the request failed inside the daemon"), send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            headers = _headers(scope["headers"])
            self._check_address(headers)
            preamble = _preamble(headers, scope["query_string"])
            caller = await self._authenticator.of_token(preamble)
        except e.OrchestratorError as error:
            await self._turn_away(None, error)
        try:
            self._take(self._bucket(caller), caller.agent)
            _check_form(scope, headers)
            async with self._sessions.request(caller, preamble.client) as session:
                scope[_CLIENT] = McpClient(session.caller, preamble)
                await self._pass_on(session, scope, receive, send, headers)
        except e.OrchestratorError as error:
            await self._turn_away(caller, error)

    async def _pass_on(
        self, session: HttpSession, scope: Scope, receive: Receive, send: Send, headers: Mapping[str, str]
    ) -> None:
        """Have the SDK answer; what it refuses is noted, too."""

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] >= 400:
                error = e.FrameInvalid(f"{scope['method']} was answered with the HTTP status {message['status']}")
                await self._dispatcher.refuse(session.caller, "?", error)
            await send(message)

        number, size = next(self._numbers), _declared(headers)
        if scope["method"] == "POST":  # any other one only listens, and has no answer that a stop waits for
            await session.calls.room()
            session.calls.open(number, size)
        try:
            body = await _body(receive, size)
            _check_text(body)
            goes_on_s = ABANDONED_S if scope["method"] == "POST" and not _is_modern(headers) else 0
            manager = session.managers[scope[_CLIENT].preamble.toolset in DROP_IN]
            await manager.handle_request(scope, _again(body, receive, goes_on_s), noting)
        finally:
            session.calls.close(number)

    # --- who is let in ------------------------------------------------------------------

    def _check_address(self, headers: Mapping[str, str]) -> None:
        """Against pages that are served under another name, or from another place. Raises HttpRefused."""
        host, origin = headers.get("host", "").lower(), headers.get("origin")
        if host not in self._hosts:
            raise e.HttpRefused(f"the host {e.escaped(host)[:100]!r} is not this server", status=403)
        if origin is not None and origin.lower().removeprefix("http://") not in self._hosts:
            raise e.HttpRefused(f"pages of {e.escaped(origin)[:100]!r} may not call", status=403)

    def _bucket(self, caller: Caller) -> TokenBucket:
        bucket = self._agents.pop(caller.agent, None) or TokenBucket(*AGENT_CALLS)
        self._agents[caller.agent] = bucket
        if len(self._agents) > MOST_BUCKETS:
            self._agents.popitem(last=False)
        return bucket

    def _take(self, bucket: TokenBucket, whose: str) -> None:
        """Raises RateLimited."""
        flood, wait_s = bucket.refusing, bucket.take(self._engine.ticks_us())
        if wait_s:
            error = e.RateLimited(f"too many requests of {whose}", wait_s=wait_s)
            error.journalled = flood  # its begin is
            raise error

    async def _turn_away(self, caller: Caller | None, error: e.OrchestratorError) -> NoReturn:
        """Note a refusal, and raise it."""
        if caller is None:
            try:
                self._take(self._strangers, "nobody known")
            except e.RateLimited as limited:
                error = limited
        if not error.journalled:
            await self._engine.calls.refuse(caller, "connect" if caller is None else "?", error)
        raise error


def _client_of(context: ServerRequestContext[Any]) -> McpClient:
    request: Any = context.request
    client: McpClient = request.scope[_CLIENT]
    return client


# --- one request --------------------------------------------------------------------------


def _headers(given: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """By name. Raises HttpRefused where one that decides is there twice."""
    names = [name for name, _ in given]
    for name in _ONCE:
        if names.count(name) > 1:
            raise e.HttpRefused(f"the header {name.decode()} is there twice")
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in given}


def _preamble(headers: Mapping[str, str], query: bytes) -> Preamble:
    """What a connection on the socket says first. Raises Unauthorised, HttpRefused."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise e.Unauthorised("a request needs the header `Authorization: Bearer TOKEN`")
    label = headers.get(SESSION_HEADER, "")
    known = label if label.startswith("s-") else None
    said: dict[str, Any] = {"orchestrator": 1, "transport": "mcp", "token": token.strip(), "session": known}
    said |= {"login": f"http:{label}", "client": headers.get("user-agent", "")}
    options: dict[str, Any] = dict(parse_qsl(query.decode("latin-1")))
    settings = settings_for(options.get("toolset", ""), options)
    options = {name: value for name, value in options.items() if name not in settings}
    if options.keys() - set(OPTIONS):
        raise e.HttpRefused(f"the URL takes {', '.join(OPTIONS)} after a question mark, and a toolset's settings")
    try:
        return msgspec.convert(said | options | {"settings": settings}, Preamble, strict=False)
    except msgspec.ValidationError as error:
        raise e.HttpRefused(f"an option in the URL: {error}") from error


def _check_form(scope: Scope, headers: Mapping[str, str]) -> None:
    """Raises HttpRefused."""
    if scope["path"] != PATH:
        raise e.HttpRefused(f"nothing is served at {e.escaped(scope['path'])[:100]!r}", status=404)
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if scope["method"] == "POST" and kind != "application/json":
        raise e.HttpRefused("a request's content type must be application/json", status=415)


def _declared(headers: Mapping[str, str]) -> int:
    """How large the body is, or may be. Raises FrameTooLarge."""
    given = headers.get("content-length", "")
    size = int(given) if given.isascii() and given.isdigit() else MAX_FRAME_BYTES
    if size > MAX_FRAME_BYTES:
        raise _too_large()
    return size


async def _body(receive: Receive, most: int) -> bytes:
    """Raises FrameTooLarge, HttpRefused."""
    body, more = bytearray(), True
    with anyio.move_on_after(BODY_S) as timer:
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise e.HttpRefused("the connection ended within a request")
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > most:
                raise _too_large()
    if timer.cancelled_caught:
        raise e.HttpRefused(f"the request was not there after {BODY_S:g} s", status=408)
    return bytes(body)


def _check_text(body: bytes) -> None:
    """Against half a surrogate pair, which the SDK lets through. Raises HttpRefused."""
    if b"\\u" not in body:
        return
    try:
        msgspec.json.decode(body)
    except UNREADABLE as error:
        raise e.HttpRefused(f"the request is not JSON in UTF-8: {error}") from error


def _too_large() -> e.FrameTooLarge:
    return e.FrameTooLarge(f"a request is over {MAX_FRAME_BYTES} bytes")


def _is_modern(headers: Mapping[str, str]) -> bool:
    """Whether the end of a connection ends its call, too."""
    version = headers.get("mcp-protocol-version")
    return version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS


def _again(body: bytes, receive: Receive, goes_on_s: float) -> Receive:
    """A body that was read, to be read once more; then what comes after it, which is the client's end, later."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        if messages:
            return messages.pop()
        message = await receive()
        await anyio.sleep(goes_on_s)
        return message

    return replayed


async def _refuse(error: e.OrchestratorError, send: Send) -> None:
    """Answer with a status, and a body as a refused call has it; the connection ends."""
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store"), (b"connection", b"close")]
    status = next(status for kind, status in _STATUS.items() if isinstance(error, kind))
    if isinstance(error, e.HttpRefused):
        status = error.status
    if isinstance(error, e.Unauthorised):
        headers.append((b"www-authenticate", b'Bearer realm="orchestrator"'))
    if isinstance(error, e.RateLimited):
        headers.append((b"retry-after", str(math.ceil(error.wait_s)).encode()))
    body = Dispatcher.failed(None, error)
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
