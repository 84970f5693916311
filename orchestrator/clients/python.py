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
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Self

import anyio
import msgspec
from anyio import to_thread

from orchestrator.api import locations, sockets
from orchestrator.api.framing import MAX_REPLY_BYTES, SUBSCRIBE, AnyReply, FeedEvent, Subscribe, Subscribed, Welcome
from orchestrator.api.line_stream import LineStream
from orchestrator.api.operation import AnyOperation
from orchestrator.api.parameters import Params, Replacement
from orchestrator.api.results import Notice, Result
from orchestrator.clients.connection import (
    CONNECT_TIMEOUT_S,
    Caller,
    asked,
    followed,
    welcomed,
)
from orchestrator.clients.operation_methods import OperationMethods
from orchestrator.clients.running_daemon import RemoteError, WorkspaceDaemon
from orchestrator.core.errors import DaemonStopped, DaemonUnreachable, FrameTooLarge

__all__ = ["Events", "FileAccess", "RemoteError", "Replacement"]

SEND_TIMEOUT_S = 60.0
"""For the daemon to take the next line. While it has many calls open it takes none, and a call waits 50 s at most."""

MOST_NOTICES = 100
"""That wait to be taken; the oldest fall out."""


class Events:
    """An async iterator of events. `position` is the last one given out, as `"@N"`.

    Raises DaemonRestarted when the connection ends (its `details` have `after`, to subscribe again
    with and miss nothing), RemoteError when the daemon ends the feed.
    """

    def __init__(self, lines: LineStream, position: str) -> None:
        self._lines, self.position = lines, position

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> FeedEvent:
        event = followed(await self._lines.receive(MAX_REPLY_BYTES), self.position)
        self.position = event.seq
        return event


class FileAccess(OperationMethods):
    """A session with the daemon of a workspace. Calls may run side by side; each gets its own answer.

    `session` is the id with which a later connection can resume it, `agent` the name under which the daemon
    knows the caller, `workspace` the root. Calls raise RemoteError with the daemon's refusal, DaemonRestarted
    where the daemon ends while they are open (its `details` may name the `request_id` to send again).
    """

    def __init__(self, path: str, caller: Caller, lines: LineStream, welcome: Welcome) -> None:
        self._path, self._caller, self._lines = path, caller._replace(session=welcome.session), lines
        self.session, self.agent, self.workspace = welcome.session, welcome.agent, welcome.workspace
        self._open: dict[int | str | None, _Waiting] = {}
        self._last = 0
        self._sending = anyio.Lock()
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
        start: bool = True,
    ) -> AsyncIterator[Self]:
        """Connect to the workspace's daemon; without agent and token as the person.

        If none runs, it is started, unless `start` is false, or a `session` is to be resumed and a person stopped the
        daemon meanwhile. `socket`: where it listens; then it is neither looked for nor started.

        Raises DaemonUnreachable, DaemonStopped, WorkspaceUnknown, RemoteError.
        """
        path, caller = socket, Caller(agent, token, session, "python")
        if path is None:
            path = await to_thread.run_sync(_served_at, workspace, session, start, abandon_on_cancel=True)
        failure: Exception | None = None
        async with _connected(path, caller) as (lines, welcome):
            files = cls(path, caller, lines, welcome)
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

        `stale_for`: only others' changes that leave what this session has read out of date. The events come on a
        connection of their own, in the same session: a reader that is slow holds up no call.

        Raises RemoteError (`version_unknown` where `after` is beyond the journal's end).
        """
        wanted = Subscribe(after=after, kinds=tuple(kinds), globs=tuple(globs), stale_for=stale_for)
        call = asked(1, SUBSCRIBE, wanted)
        async with _connected(self._path, self._caller) as (lines, _):
            await lines.send(call.line)
            line = await lines.receive(MAX_REPLY_BYTES)
            if line is None:
                raise call.cut_off()
            begun = call.answer(msgspec.json.decode(line, type=AnyReply))
            assert isinstance(begun, Subscribed)
            yield Events(lines, begun.after)

    async def _call(self, operation: AnyOperation, params: Params) -> Result:
        self._last += 1
        call = asked(self._last, operation, params)
        if self._ended:
            raise DaemonUnreachable("the daemon has closed the connection")
        waiting = self._open[call.id] = _Waiting()
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
        async with self._sending:  # the time is for this line, not for those before it
            with anyio.move_on_after(SEND_TIMEOUT_S, shield=True) as scope:
                await self._lines.send(line)
            if scope.cancelled_caught:
                self._end()
                self._lines.close()

    async def _receive(self) -> None:
        with suppress(FrameTooLarge, msgspec.MsgspecError):  # what answers is not the daemon: it is as if it were gone
            while (line := await self._lines.receive(MAX_REPLY_BYTES)) is not None:
                reply = msgspec.json.decode(line, type=AnyReply)
                self._notices.extend(reply.notices)
                waiting = self._open.get(reply.id)
                if waiting is not None:
                    waiting.reply = reply
                    waiting.done.set()
        self._end()

    def _end(self) -> None:
        self._ended = True
        for waiting in self._open.values():
            waiting.done.set()


class _Waiting:
    """What a call waits for; no reply by the time it is done: the connection ended."""

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.reply: AnyReply | None = None


def _served_at(workspace: str | None, session: str | None, start: bool) -> str:
    """The socket of the workspace's daemon, started where it may be. Raises as `connect`."""
    root = locations.find_workspace(workspace)
    daemon = WorkspaceDaemon(root)
    if not start:
        return daemon.running().socket
    known = locations.read_location(locations.workspace_id(root)) if session is not None else None
    if known is not None and known.state == "stopped" and daemon.find() is None:
        raise DaemonStopped(f"a person stopped the daemon of {root}")
    return daemon.ensure()[0].socket


@asynccontextmanager
async def _connected(path: str, caller: Caller) -> AsyncIterator[tuple[LineStream, Welcome]]:
    """A connection of the caller. Raises DaemonUnreachable, RemoteError."""
    try:
        sockets.check_socket_directory(path.rpartition("/")[0])
        stream = await anyio.connect_unix(path)
    except OSError as error:
        raise DaemonUnreachable(f"nothing answers on {path}: {error}") from error
    async with stream:
        with LineStream(stream) as lines:
            line = None
            with anyio.move_on_after(CONNECT_TIMEOUT_S):
                await lines.send(caller.preamble())
                line = await lines.receive(MAX_REPLY_BYTES)
            yield lines, welcomed(line)
