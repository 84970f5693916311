"""The Python client: the operations as methods with typed results.

async with FileAccess.connect(agent="reviewer") as files:
    text = await files.read_file("a.py", start=1)
    await files.edit_file("a.py", [Replacement(search="old", replace="new")])
    async with files.subscribe(after="@120", globs=["*.py"]) as events:
        async for event in events:
            ...
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Self

import anyio
import msgspec
from anyio.abc import SocketStream

from orchestrator.api import locations
from orchestrator.api.feed import SUBSCRIBE, UNSUBSCRIBE, Subscribe, Subscribed, Unsubscribe
from orchestrator.api.framing import MAX_REPLY_BYTES, AnyReply, Welcome
from orchestrator.api.line_stream import LineStream
from orchestrator.api.operation import AnyOperation
from orchestrator.api.parameters import Params, Replacement
from orchestrator.api.results import Notice, Result
from orchestrator.clients.connection import CONNECT_TIMEOUT_S, Asked, Caller, RemoteError, asked, socket_of, welcomed
from orchestrator.clients.operation_methods import OperationMethods
from orchestrator.clients.subscription import LEAVING_S, Events
from orchestrator.core.errors import DaemonUnreachable, FrameTooLarge

__all__ = ["FileAccess", "RemoteError", "Replacement"]

SEND_TIMEOUT_S = 30.0
MOST_NOTICES = 100
"""That wait to be taken; the oldest fall out."""

Answered = Callable[[Result], None]
"""Called with a result before the next line is read."""


class FileAccess(OperationMethods):
    """A session with the daemon of a workspace. Calls may run side by side; each gets its own answer.

    `session` is the id with which a later connection can resume it, `agent` the name under which the daemon
    knows the caller, `workspace` the root. Calls raise RemoteError with the daemon's refusal, DaemonRestarted
    where the daemon ends while they are open (its `details` may name the `request_id` to send again).
    """

    def __init__(self, stream: SocketStream, lines: LineStream, welcome: Welcome) -> None:
        self._stream, self._lines = stream, lines
        self.session, self.agent, self.workspace = welcome.session, welcome.agent, welcome.workspace
        self._open: dict[int, _Waiting] = {}
        self._feeds: dict[int, Events] = {}
        self._last = 0
        self._ended = False
        self._notices: deque[Notice] = deque(maxlen=MOST_NOTICES)

    def take_notices(self) -> tuple[Notice, ...]:
        """The notices since the last call of this: others' changes to what this session has read."""
        notices = tuple(self._notices)
        self._notices.clear()
        return notices

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        workspace: str | None = None,
        *,
        agent: str | None = None,
        token: str | None = None,
        session: str | None = None,
        socket: str | None = None,
    ) -> AsyncIterator[Self]:
        """Connect to the workspace's running daemon; without agent and token as the person who runs this.

        `socket` skips the look-up of the workspace's location.

        Raises DaemonUnreachable, WorkspaceUnknown, RemoteError.
        """
        path = socket if socket is not None else socket_of(workspace)
        try:
            locations.check_socket_directory(path.rpartition("/")[0])
            stream = await anyio.connect_unix(path)
        except OSError as error:
            raise DaemonUnreachable(f"nothing answers on {path}: {error}") from error
        failure: Exception | None = None
        async with stream:
            with LineStream(stream) as lines:
                files = cls(stream, lines, await _introduced(lines, Caller(agent, token, session, "python")))
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(files._receive)
                    try:
                        yield files
                    except Exception as error:  # noqa: BLE001  # raised below, where the group can't wrap it
                        failure = error
                    tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

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

        def answered(answer: Result) -> None:
            if isinstance(answer, Subscribed):
                events.started(answer)
                self._feeds[answer.subscription] = events

        async def begin(position: str | int | None) -> None:
            await self._call(SUBSCRIBE, msgspec.structs.replace(wanted, after=position), answered)

        async def end(subscription: int) -> None:
            self._feeds.pop(subscription, None)
            await self._call(UNSUBSCRIBE, Unsubscribe(subscription=subscription))

        events = Events(begin, end)
        await begin(after)
        try:
            yield events
        finally:
            with anyio.move_on_after(LEAVING_S, shield=True):
                await events.close()
            self._feeds.pop(events.subscription, None)

    async def _call(self, operation: AnyOperation, params: Params, answered: Answered | None = None) -> Result:
        self._last += 1
        call = asked(self._last, operation, params)
        if self._ended:
            raise DaemonUnreachable("the daemon has closed the connection")
        waiting = self._open[call.id] = _Waiting(call, answered)
        try:
            await self._send(call.line)
            await waiting.done.wait()
        finally:
            del self._open[call.id]
        if waiting.reply is None:
            raise call.cut_off()
        return call.answer(waiting.reply)

    async def _send(self, line: bytes) -> None:
        """Send a whole line: half of one, cut off by a cancellation, would spoil the connection."""
        with anyio.move_on_after(SEND_TIMEOUT_S, shield=True) as scope:
            await self._lines.send(line)
        if scope.cancelled_caught:
            self._end()
            self._lines.close()
            await self._stream.aclose()

    async def _receive(self) -> None:
        try:
            while (line := await self._lines.receive(MAX_REPLY_BYTES)) is not None:
                reply = msgspec.json.decode(line, type=AnyReply)
                if reply.method:
                    self._take(reply)
                self._notices.extend(reply.notices)
                waiting = self._open.get(reply.id) if isinstance(reply.id, int) else None
                if waiting is not None:
                    waiting.take(reply)
        except (FrameTooLarge, msgspec.MsgspecError):
            pass  # what answers is not the daemon any more: the calls end as if it were gone
        self._end()

    def _take(self, line: AnyReply) -> None:
        """A line that answers no call: an event for a subscription, if it is still wanted."""
        events = self._feeds.get(msgspec.json.decode(line.params, type=_OfFeed).subscription)
        if events is not None:
            events.take(line.method, line.params)

    def _end(self) -> None:
        self._ended = True
        for events in self._feeds.values():
            events.cut_off()
        for waiting in self._open.values():
            waiting.done.set()


class _Waiting:
    """A call that waits for its reply; none by the time it is done: the connection ended."""

    def __init__(self, call: Asked, answered: Answered | None = None) -> None:
        self.call, self._answered = call, answered
        self.done = anyio.Event()
        self.reply: AnyReply | None = None

    def take(self, reply: AnyReply) -> None:
        """The reply; what waits for the answer itself hears of it before the next line is read."""
        self.reply = reply
        if self._answered is not None and reply.error is None:
            self._answered(self.call.answer(reply))
        self.done.set()


class _OfFeed(msgspec.Struct):
    subscription: int


async def _introduced(lines: LineStream, caller: Caller) -> Welcome:
    try:
        with anyio.fail_after(CONNECT_TIMEOUT_S):
            await lines.send(caller.preamble())
            line = await lines.receive(MAX_REPLY_BYTES)
    except TimeoutError as error:
        raise DaemonUnreachable("the daemon did not answer the preamble") from error
    if line is None:
        raise DaemonUnreachable("the daemon did not answer the preamble")
    return welcomed(line + b"\n")
