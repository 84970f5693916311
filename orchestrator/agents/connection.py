"""JSON-RPC with an agent over its stdio: one message a line, with limits on what the agent may send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import anyio
import msgspec
from anyio.abc import ByteReceiveStream, ByteSendStream, TaskGroup

from orchestrator.agents import wire
from orchestrator.core.errors import OperatorError, OrchestratorError, escaped

T = TypeVar("T")

MOST_LINE_BYTES = 16 * 1024 * 1024
MOST_BYTES = 1024 * 1024 * 1024
"""In one run."""

MOST_INVALID_LINES = 20
"""Some agents log to stdout: so many lines that are no messages are passed over."""

MOST_OPEN = 32
"""Requests of the agent that wait for our answer."""

SEND_TIMEOUT_S = 60.0

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class AgentFailed(OperatorError, code="agent_failed"):
    """The agent does not do what the protocol asks of it."""


class AgentEnded(
    AgentFailed, code="agent_ended", hint="What it had changed stays, and is in the journal. Start it again."
):
    """The agent's process ended before its work did."""


class AgentTimeout(AgentFailed, code="agent_timeout", hint="Give it more time: --timeout SECONDS."):
    """The agent did not answer in time."""


class AgentInvalid(AgentFailed, code="agent_invalid", hint="See whether this version of the agent speaks ACP 1."):
    """What the agent sends is not the protocol."""


class AgentFlooding(AgentFailed, code="agent_flooding", hint="What it had changed stays, and is in the journal."):
    """The agent sends more than we take."""


class AgentRefused(AgentFailed, code="agent_refused", hint="The agent's own program may say more."):
    """The agent answered a request with an error."""

    def __init__(self, method: str, error: wire.RpcError) -> None:
        details = error.data.get("details") if isinstance(error.data, dict) else None
        said = f"{error.message}: {details}" if isinstance(details, str) else error.message
        super().__init__(f"the agent refuses {method}: {escaped(said)[:2000]} ({error.code})")
        self.rpc_code = error.code


class Refused(Exception):
    """What a handler raises, so that the agent gets an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Handler(Protocol):
    """What is done with what the agent sends."""

    async def requested(self, method: str, params: msgspec.Raw) -> Any:
        """The result of a request of the agent. Raises Refused, OrchestratorError."""

    def notified(self, method: str, params: msgspec.Raw) -> None:
        """A notification of the agent, in the order in which they came."""


class AgentConnection:
    """Both directions. `receive` runs as long as the connection does; `failed` is told once how it ended."""

    def __init__(
        self,
        output: ByteReceiveStream,
        input: ByteSendStream,
        handler: Handler,
        failed: Callable[[AgentFailed], None],
    ) -> None:
        self._output, self._input, self._handler, self._failed = output, input, handler, failed
        self._sending = anyio.Lock()
        self._last = self._open = self._invalid = self._received = 0
        self._waiting: dict[int | str, Callable[[wire.Incoming], None]] = {}

    async def request(self, method: str, params: Any, type: type[T]) -> T:
        """Ask the agent, and wait for its answer, however long that takes. Raises AgentFailed."""
        self._last += 1
        id, answered, answers = self._last, anyio.Event(), list[wire.Incoming]()

        def take(reply: wire.Incoming) -> None:
            answers.append(reply)
            answered.set()

        self._waiting[id] = take
        try:
            await self._send({"id": id, "method": method, "params": params})
            await answered.wait()
        finally:
            del self._waiting[id]
        reply = answers[0]
        if reply.error is not None:
            raise AgentRefused(method, reply.error)
        try:
            return msgspec.json.decode(reply.result, type=type)
        except UNREADABLE as error:
            raise AgentInvalid(f"the agent's answer to {method} is not one: {escaped(str(error))}") from error

    async def notify(self, method: str, params: Any) -> None:
        """Tell the agent something. Raises AgentFailed."""
        await self._send({"method": method, "params": params})

    async def receive(self) -> None:
        """Take what the agent sends, until it ends or breaks the protocol."""
        async with anyio.create_task_group() as tasks:
            try:
                await self._receive(tasks)
            except AgentFailed as failure:
                self._failed(failure)
            tasks.cancel_scope.cancel()

    async def _receive(self, tasks: TaskGroup) -> None:
        buffer = bytearray()
        while True:
            searched = len(buffer)
            try:
                buffer += await self._output.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
                raise AgentEnded("the agent closed its output") from error
            self._received += len(buffer) - searched
            if self._received > MOST_BYTES:
                raise AgentFlooding(f"the agent sent more than {MOST_BYTES} bytes")
            while (end := buffer.find(b"\n", searched)) >= 0:
                line = bytes(buffer[:end])
                del buffer[: end + 1]
                searched = 0
                if line.strip():
                    self._take(line, tasks)
            if len(buffer) > MOST_LINE_BYTES:
                raise AgentFlooding(f"the agent sent a line of more than {MOST_LINE_BYTES} bytes")

    def _take(self, line: bytes, tasks: TaskGroup) -> None:
        try:
            message = msgspec.json.decode(line, type=wire.Incoming)
        except UNREADABLE as error:
            self._invalid += 1
            if self._invalid > MOST_INVALID_LINES:
                shown = escaped(line[:80].decode("utf-8", "replace"))
                raise AgentInvalid(f"the agent sends lines that are no messages: {shown}") from error
            return
        if message.method is None:
            if message.id in self._waiting:
                self._waiting[message.id](message)
        elif message.id is None:
            self._handler.notified(message.method, message.params)
        else:
            tasks.start_soon(self._answer, message.id, message.method, message.params)

    async def _answer(self, id: int | str, method: str, params: msgspec.Raw) -> None:
        answer: dict[str, Any]
        self._open += 1
        try:
            if self._open > MOST_OPEN:
                raise Refused(wire.INTERNAL, f"more than {MOST_OPEN} requests are open")
            answer = {"result": await self._handler.requested(method, params)}
        except Refused as refused:
            answer = {"error": {"code": refused.code, "message": refused.message}}
        except UNREADABLE as error:
            answer = {"error": {"code": wire.INVALID_PARAMS, "message": str(error)}}
        except OrchestratorError as error:
            message = f"{error.code}: {error.message}. {error.hint}".strip()
            answer = {"error": {"code": wire.INTERNAL, "message": message}}
        finally:
            self._open -= 1
        try:
            await self._send({"id": id, **answer})
        except AgentFailed as failure:
            self._failed(failure)

    async def _send(self, message: dict[str, Any]) -> None:
        line = msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n"
        async with self._sending:
            try:
                with anyio.fail_after(SEND_TIMEOUT_S):
                    await self._input.send(line)
            except TimeoutError as error:
                raise AgentTimeout(f"the agent did not read what it was sent for {SEND_TIMEOUT_S:g} s") from error
            except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
                raise AgentEnded("the agent closed its input") from error
