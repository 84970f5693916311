"""Runs one call of any transport: its turn, its handler, its notices, its reply."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from traceback import clear_frames
from typing import Any
from weakref import WeakSet

import anyio
import msgspec

from orchestrator.api.failures import operation_named, parse_params
from orchestrator.api.framing import MAX_REPLY_BYTES, UNREADABLE, Reply, Request, RpcError, refusal
from orchestrator.api.line_stream import LineStream
from orchestrator.api.operations import BY_NAME
from orchestrator.api.results import Notice
from orchestrator.core.errors import AnswerTooLarge, FrameInvalid, InternalError, OrchestratorError, Unauthorised
from orchestrator.core.system_errors import leaves, refusal_in
from orchestrator.core.text.answer_space import PROGRAM, UNBOUNDED, AnswerSpace
from orchestrator.engine.caller import Call, Caller, Fits, HeldNote
from orchestrator.engine.engine import Engine
from orchestrator.logs import logger
from orchestrator.ports.machine import OWNER
from orchestrator.servers.call_scheduler import HEAVY, CallScheduler, is_by_pieces, is_heavy

_REQUEST = msgspec.json.Decoder(Request)
_ENCODER = msgspec.json.Encoder()

NOTICES_PART = 5
"""One part in so many of an answer is for notices, where some are due before the call; others come with the next."""

MAX_OPEN_CALLS = 64
"""Calls of one connection under way at once; further lines wait in the socket."""

MAX_OPEN_BYTES = 64 * 1024 * 1024
"""Of their requests. A larger one is read where no other call is open."""

UNREAD_BYTES = 64 * 1024
"""Of answers that the peer has not read; with more, no further call of the connection begins."""


class Dispatcher:
    """Shared by all connections; keeps nothing between calls."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._scheduler = CallScheduler(engine.ticks_us)
        self._heavy = CallScheduler(engine.ticks_us, HEAVY)
        self.limits, self.elicitations, self.root = engine.limits, engine.elicitations, engine.root
        self.connections: WeakSet[OpenCalls] = WeakSet()
        self._log = logger("servers")

    def read(self, line: bytes) -> Request:
        """Raises FrameInvalid."""
        try:
            return _REQUEST.decode(line)
        except UNREADABLE as error:
            raise FrameInvalid(
                f"not a JSON-RPC 2.0 request: {error}",
                hint='Send one JSON object a line: {"jsonrpc": "2.0", "id": 1, "method": …, "params": {…}}.',
            ) from error

    def heavy(self, request: Request) -> bool:
        """Whether a call may wait long for its turn."""
        known, engine = BY_NAME.get(request.method), self._engine
        return known is not None and is_heavy(known, request.params, engine.facts.size_at, engine.known_files)

    def _scheduler_of(self, request: Request) -> CallScheduler:
        known, engine = BY_NAME.get(request.method), self._engine
        if known is None or not self.heavy(request):
            return self._scheduler
        light = is_by_pieces(known, request.params, engine.facts.size_at, engine.in_memory_bytes)
        return self._scheduler if light else self._heavy

    async def idle(self) -> None:
        """Return as soon as no call is under way and every reply is written."""
        while busy := [calls for calls in self.connections if calls]:
            await busy[0].none()

    async def refuse(self, caller: Caller, name: str, error: OrchestratorError, call_id: str | None = None) -> None:
        """Note a refusal that a transport gave by itself."""
        turn = await self._scheduler.begin(caller.agent)
        try:
            await self._engine.calls.refuse(caller, name, error, client_call_id=call_id)
        finally:
            self._scheduler.end(turn)

    async def answer(self, caller: Caller, request: Request, lines: LineStream | None = None) -> bytes:
        """One call to one reply line; `lines`, where it will go."""
        encoded = list[bytes]()

        def fits(result: Any) -> None:
            encoded.append(_ENCODER.encode(result))
            _check(request.method, encoded[0])

        try:
            _, notices = await self.respond(caller, request, lines, self.limits.room(caller, PROGRAM), fits=fits)
            reply = Reply(id=request.id, result=msgspec.Raw(encoded[0]), notices=notices or msgspec.UNSET)
            line = _ENCODER.encode(reply) + b"\n"
            _check(request.method, line)
        except OrchestratorError as error:
            if not error.journalled:  # it is too large with its notices
                await self.refuse(caller, request.method, error)
            return self.failed(request.id, error)
        return line

    def parts(self, caller: Caller, room: AnswerSpace) -> tuple[AnswerSpace, AnswerSpace, bool]:
        """Of an answer, the part for what was asked and the one for notices; and whether any are due."""
        ample = room.bytes >= PROGRAM.bytes
        due = ample or self._engine.stale_read_notifier.waits(caller)
        if ample:
            return room, room, due
        most = AnswerSpace(room.bytes // NOTICES_PART, room.lines // NOTICES_PART)
        return room.less(most.bytes, most.lines) if due else room, most, due

    async def release(
        self, caller: Caller, name: str, held: Sequence[HeldNote], room: AnswerSpace
    ) -> tuple[Notice, ...]:
        """Note what an answer shows that is made of other answers, as it goes out; its notices. Raises as `run`."""
        await self._engine.calls.release(held)
        return await self._due(caller, name, room)

    async def respond(
        self,
        caller: Caller,
        request: Request,
        lines: LineStream | None = None,
        room: AnswerSpace = UNBOUNDED,
        held: list[HeldNote] | None = None,
        fits: Fits | None = None,
        *,
        unescaped: bool = False,
    ) -> tuple[Any, tuple[Notice, ...]]:
        """The result of a call and the notices for its session, when it is the agent's turn; a refusal has `notices`.

        An operator's call (status, the journal's upkeep) has none: they wait for the next call about files. Nor has
        one whose result is `held`: what it showed is noted by `release`, which has the notices.
        """
        OWNER.set(caller.agent)
        known = BY_NAME.get(request.method)
        async with _forgotten(), self._turn(caller, request, lines):
            if held is not None or (known is not None and known.operator_only):
                return await self.run(caller, request, room, held, fits, unescaped=unescaped), ()
            own, most, due = self.parts(caller, room)
            try:
                result = await self.run(caller, request, own, fits=fits, unescaped=unescaped)
            except Unauthorised:
                raise  # and is told of nothing
            except OrchestratorError as error:
                error.notices = await self._due(caller, request.method, most)
                raise
            quiet = known is not None and known.quiet
            return result, await self._due(caller, request.method, most) if due and not quiet else ()

    @asynccontextmanager
    async def _turn(self, caller: Caller, request: Request, lines: LineStream | None) -> AsyncIterator[None]:
        """The agent's turn, which begins when the peer has read the answers that it has.

        What people do about the daemon itself (status, approvals) never waits for calls that come under their name.
        """
        known = BY_NAME.get(request.method)
        if known is not None and known.waits:
            yield
            return
        scheduler = self._scheduler_of(request)
        owner: str = caller.agent
        if known is not None and known.operator_only and caller.is_person:
            checked = known.takes("approver")  # wrong codes wait, other connections do not
            owner = f"{caller.agent} people {caller.session if checked else ''}"
        while True:
            if lines is not None:
                await lines.taken(UNREAD_BYTES)
            turn = await scheduler.begin(owner)
            if lines is None or lines.unsent <= UNREAD_BYTES:
                break
            scheduler.end(turn)
        try:
            yield
        finally:
            scheduler.end(turn)

    async def run(
        self,
        caller: Caller,
        request: Request,
        room: AnswerSpace = UNBOUNDED,
        held: list[HeldNote] | None = None,
        fits: Fits | None = None,
        *,
        unescaped: bool = False,
    ) -> Any:
        """Read and call; `unescaped`: its client decodes escapes.

        Raises OrchestratorError only, and what it raises is in the journal.
        """
        name, call = request.method, None
        started_us = self._engine.ticks_us()
        try:
            operation = operation_named(name)
            parsed = parse_params(operation, request.params)
            call = Call(
                operation=operation,
                params=parsed,
                size=len(memoryview(request.params)),
                client_call_id=request.call_id,
                started_us=started_us,
                room=room,
                unescaped=unescaped,
                held=held if fits is None or operation.writes else [],
                fits=fits,
            )
            return await self._engine.calls.answer(caller, call)
        except Exception as error:  # noqa: BLE001  # it is raised again, as what callers know
            raise await self._failure(caller, name, error, call, request.call_id) from error.__cause__

    async def _due(self, caller: Caller, name: str, room: AnswerSpace) -> tuple[Notice, ...]:
        """The notices of an answer. Raises as `run`."""
        try:
            return await self._engine.stale_read_notifier.due(caller, room)
        except Exception as error:  # noqa: BLE001  # it is raised again, as what callers know
            raise await self._failure(caller, name, error) from error.__cause__

    async def _failure(
        self, caller: Caller, name: str, error: Exception, call: Call | None = None, call_id: str | None = None
    ) -> OrchestratorError:
        """As it is answered, and noted by now; what nobody foresaw is `internal`."""
        failure = refusal_in(error, f"{name} was not carried out")
        if failure is None:
            self._log.exception("call failed", operation=name, agent=caller.agent)
            failure = InternalError(
                f"{name} failed inside the daemon ({type(next(leaves(error))).__name__})",
                hint="Nothing is lost; the daemon's log has the trace. Please report it.",
            )
        if not failure.journalled:
            await self._engine.calls.refuse(caller, name, failure, call, call_id)
        return failure

    @staticmethod
    def failed(request_id: int | str | None, error: OrchestratorError) -> bytes:
        """A refusal as a reply line."""
        failure = RpcError(message=error.message, data=refusal(error))
        reply = Reply(id=request_id, error=failure, notices=error.notices or msgspec.UNSET)
        return _ENCODER.encode(reply) + b"\n"


def _check(name: str, reply: bytes) -> None:
    """Raises AnswerTooLarge."""
    if len(reply) > MAX_REPLY_BYTES:
        raise AnswerTooLarge(name, size=len(reply), most=MAX_REPLY_BYTES)


@asynccontextmanager
async def _forgotten() -> AsyncIterator[None]:
    """Around a call: one that fails leaves nothing of its 16 MB to the cycle collector, which comes seldom.

    A future that brought an error from a thread, and the frame that waited for it, hold one another.
    """
    try:
        yield
    except BaseException as error:
        clear_frames(error.__traceback__)
        raise


class OpenCalls:
    """The calls of one connection, of every transport, whose answers are not written yet; by their ids."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._sizes: dict[int | str, int] = {}
        self._fewer = anyio.Event()
        dispatcher.connections.add(self)

    def __len__(self) -> int:
        return len(self._sizes)

    def __contains__(self, id: int | str) -> bool:
        return id in self._sizes

    def open(self, id: int | str, size: int) -> None:
        """A request of `size` bytes was read."""
        self._sizes[id] = size

    def close(self, *ids: int | str) -> None:
        """Their answers are written, or nobody waits for them; without `ids` of all."""
        for id in ids or tuple(self._sizes):
            self._sizes.pop(id, None)
        self._fewer.set()
        self._fewer = anyio.Event()

    async def room(self) -> None:
        """Wait until another line may be read."""
        while len(self._sizes) >= MAX_OPEN_CALLS or sum(self._sizes.values()) >= MAX_OPEN_BYTES:
            await self._fewer.wait()

    async def none(self) -> None:
        """Wait until every answer is written."""
        while self._sizes:
            await self._fewer.wait()
