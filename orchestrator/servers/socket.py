"""The Unix socket: callers are accepted by preamble and uid, then speak JSON-RPC or MCP."""

from __future__ import annotations

import errno
import os
import resource
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import count

import anyio
import msgspec
from anyio import to_thread
from anyio.abc import SocketAttribute, SocketListener, SocketStream, TaskGroup

from orchestrator.api import framing as f
from orchestrator.api import processes
from orchestrator.api.failures import parse_params
from orchestrator.api.line_stream import LineStream
from orchestrator.api.operations import BY_NAME
from orchestrator.core import errors as e
from orchestrator.core.ids import show
from orchestrator.engine.caller import Caller
from orchestrator.engine.engine import Engine
from orchestrator.logs import logger
from orchestrator.servers.auth import Authenticator
from orchestrator.servers.dispatch import Dispatcher, OpenCalls

PREAMBLE_TIMEOUT_S = 30.0
"""A connection without a preamble is closed after that time."""

SILENT_PART = 4
"""One in so many of the file descriptors is for connections that have sent no preamble yet."""

SPARE_PART = 8
"""One in so many of them is left to the calls of those who are connected: a crowd that comes takes none of these."""

MOST_OF_AGENT = 256
"""Connections that one agent has at once; each may have calls waiting, so that this bounds what waits for it."""

UNREAD_S = 300.0
"""A caller that takes nothing of an answer for so long is cut off. A feed of events waits: a pager may hold it up."""

BREATH_S = 0.2
"""How long no connection is accepted where no descriptor is left for one more."""

_PREAMBLE = msgspec.json.Decoder(f.Preamble)
_ENCODER = msgspec.json.Encoder()


async def bind(path: str) -> SocketListener:
    """A listening socket of mode 0600; that of a dead daemon is replaced, and nothing else."""
    stale = anyio.Path(path)
    if await stale.is_socket():
        await stale.unlink()
    old_mask = os.umask(0o177)
    try:
        return await anyio.create_unix_listener(path, mode=0o600, backlog=256)
    finally:
        os.umask(old_mask)


class SocketServer:
    """Serves every connection of one listener."""

    def __init__(self, engine: Engine, authenticator: Authenticator, dispatcher: Dispatcher, *, workspace: str) -> None:
        self._engine, self._authenticator, self._dispatcher = engine, authenticator, dispatcher
        self._workspace = workspace
        self._silent: dict[SocketStream, LineStream] = {}  # oldest first
        self._open_of: Counter[str] = Counter()  # connections, by agent
        self._log = logger("servers")

    async def serve(self, listener: SocketListener) -> None:
        """Until the listener is closed and every caller is gone, or until cancelled."""
        async with anyio.create_task_group() as connections:
            waiting = False
            while True:
                try:
                    _leave_spare(listener)
                    stream = await listener.accept()
                except anyio.ClosedResourceError:
                    return
                except (anyio.BrokenResourceError, OSError) as error:  # the cause names what the system lacks
                    if not waiting:
                        self._log.error("no more callers can be let in for now", error=str(error.__cause__ or error))
                    waiting = True
                    await anyio.sleep(BREATH_S)
                else:
                    waiting = False
                    connections.start_soon(self._connection, stream)

    async def _connection(self, stream: SocketStream) -> None:
        """One caller, from preamble to end; its failures end here."""
        async with stream:
            with LineStream(stream, unread_s=UNREAD_S) as lines:
                self._silent[stream] = lines
                if len(self._silent) > resource.getrlimit(resource.RLIMIT_NOFILE)[0] // SILENT_PART:
                    oldest = next(iter(self._silent))
                    self._silent.pop(oldest).close()
                    await anyio.aclose_forcefully(oldest)
                try:
                    await self._serve(stream, lines)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                    return
                except e.OrchestratorError as error:
                    self._log.warning("connection ended", code=error.code)
                except Exception:  # noqa: BLE001  # one connection's defect must not end the others
                    self._log.exception("connection failed")
                finally:
                    self._silent.pop(stream, None)
                    if lines.cut_off:
                        self._log.warning("a caller that does not read its answers was cut off", after_s=UNREAD_S)

    async def _serve(self, stream: SocketStream, lines: LineStream) -> None:
        accepted = await self._authenticated(stream, lines)
        if accepted is None:
            return
        caller, preamble = accepted
        try:
            if preamble.transport == "mcp":
                await to_thread.run_sync(import_mcp)
                from orchestrator.servers.mcp import serve_mcp

                await serve_mcp(lines, caller, preamble, self._dispatcher)
            else:
                await self._serve_rpc(lines, caller)
        finally:
            self._leave(caller)
            with anyio.CancelScope(shield=True):
                await self._engine.lifecycle.closed(caller)

    async def _authenticated(self, stream: SocketStream, lines: LineStream) -> tuple[Caller, f.Preamble] | None:
        peer = processes.peer_of(stream.extra(SocketAttribute.raw_socket))
        try:
            with anyio.move_on_after(PREAMBLE_TIMEOUT_S) as timer:
                line = await lines.receive(f.MAX_PREAMBLE_BYTES)
            self._silent.pop(stream, None)
            if timer.cancelled_caught or line is None:
                return None
            try:
                preamble = _PREAMBLE.decode(line)
            except f.UNREADABLE as error:
                raise e.FrameInvalid(
                    f"the first line must be the preamble: {error}",
                    hint="Use the orchestrator's own clients, or `orchestrator mcp`, of the daemon's installation.",
                ) from error
            caller = await self._authenticator.authenticate(preamble, peer.uid, peer.pid)
            await self._enter(caller, preamble.client)
        except e.OrchestratorError as error:
            await self._turn_away(lines, error)
            return None
        welcome = f.Welcome(
            session=caller.session, agent=caller.agent, asserted=caller.asserted, workspace=self._workspace
        )
        await lines.send(_ENCODER.encode(welcome) + b"\n")
        return caller, preamble

    async def _enter(self, caller: Caller, client: str) -> None:
        if self._open_of[caller.agent] >= MOST_OF_AGENT:
            raise e.RateLimited(f"{caller.agent} has {MOST_OF_AGENT} connections open", wait_s=1)
        self._open_of[caller.agent] += 1
        try:
            await self._engine.lifecycle.opened(caller, client)
        except BaseException:
            self._leave(caller)
            raise

    def _leave(self, caller: Caller) -> None:
        self._open_of[caller.agent] -= 1
        self._open_of += Counter()  # drops those at zero

    async def _turn_away(self, lines: LineStream, error: e.OrchestratorError) -> None:
        """Note a refusal and send it."""
        await self._engine.calls.refuse(None, "connect", error)
        await lines.send(_ENCODER.encode(f.rejection(error)) + b"\n")

    async def _serve_rpc(self, lines: LineStream, caller: Caller) -> None:
        open_calls = OpenCalls(self._dispatcher)
        async with anyio.create_task_group() as feeds, anyio.create_task_group() as calls:
            following = False
            for number in count():
                await open_calls.room()
                try:
                    line = await lines.receive(f.MAX_FRAME_BYTES)
                    if line is None:
                        break
                    request = self._dispatcher.read(line)
                except e.FrameInvalid as error:
                    await self._dispatcher.refuse(caller, "?", error)
                    await lines.send(self._dispatcher.failed(error.request_id, error))
                    continue
                if request.method == f.SUBSCRIBE.name:
                    following = await self._subscribe(lines, caller, request, feeds, following=following)
                    continue
                open_calls.open(number, len(line))
                if self._inline(request, lines):
                    await self._reply(lines, caller, request, open_calls, number)
                else:
                    calls.start_soon(self._reply, lines, caller, request, open_calls, number)
            feeds.cancel_scope.cancel()

    async def _subscribe(
        self, lines: LineStream, caller: Caller, request: f.Request, feeds: TaskGroup, *, following: bool
    ) -> bool:
        """Answer `subscribe`; the events come after the answer. Whether the connection follows any now."""
        try:
            if following:
                raise e.NotAvailable("this connection follows events already", hint="Open another connection.")
            params = parse_params(f.SUBSCRIBE, request.params)
            assert isinstance(params, f.Subscribe)
            after, events = await self._engine.follow(caller, params)
        except e.OrchestratorError as error:
            await self._dispatcher.refuse(caller, request.method, error)
            await lines.send(self._dispatcher.failed(request.id, error))
            return following
        await lines.send(_ENCODER.encode(f.Reply(id=request.id, result=f.Subscribed(after=show(after)))) + b"\n")
        feeds.start_soon(self._send_events, lines, events)
        return True

    async def _send_events(self, lines: LineStream, events: AsyncGenerator[f.FeedEvent, None]) -> None:
        """Until the connection ends. The journal is read on when the socket has taken what was sent."""
        async with aclosing(events):
            try:
                async for event in events:
                    await lines.send(_ENCODER.encode(f.Reply(method="event", params=event)) + b"\n", patient=True)
            except e.OrchestratorError as error:
                await lines.send(_ENCODER.encode(f.Reply(method="feed_ended", params=f.refusal(error))) + b"\n")

    def _inline(self, request: f.Request, lines: LineStream) -> bool:
        """Whether a call is answered before the next line is read: it is short, and that line is not here yet."""
        known = BY_NAME.get(request.method)
        short = known is not None and known.inline and not lines.more_waiting
        return short and not self._dispatcher.heavy(request)

    async def _reply(
        self, lines: LineStream, caller: Caller, request: f.Request, open_calls: OpenCalls, number: int
    ) -> None:
        try:
            await lines.send(await self._dispatcher.answer(caller, request, lines))
        finally:
            open_calls.close(number)


def _leave_spare(listener: SocketListener) -> None:
    """Raises OSError where one more connection would take a descriptor that is spared; it would take the lowest."""
    listening = listener.extra(SocketAttribute.raw_socket).fileno()
    if listening < 0:
        return  # it is closed, which accepting finds
    lowest = os.dup(listening)
    os.close(lowest)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if lowest >= most - most // SPARE_PART:
        raise OSError(errno.EMFILE, f"the last {most - lowest} of {most} descriptors are for callers that are here")


def import_mcp() -> None:
    """The SDK, which takes half a second: only where somebody comes by MCP, and off the event loop."""
    import orchestrator.servers.mcp  # noqa: F401
