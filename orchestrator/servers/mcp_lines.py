"""The lines of an MCP connection on the socket, as the SDK reads and writes them."""

from __future__ import annotations

import json
import secrets
from contextlib import suppress
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from orchestrator.api.framing import MAX_FRAME_BYTES
from orchestrator.api.line_stream import LineStream
from orchestrator.core.errors import FrameInvalid
from orchestrator.engine.caller import Caller
from orchestrator.servers.dispatch import Dispatcher, OpenCalls


class LineTransport:
    """The lines of one connection, as the SDK reads and writes them.

    The SDK counts its own requests from 1 on. On the line their ids are this connection's alone, so that a client that
    answers what a daemon asked before it ended does not answer another question of the next one.
    """

    def __init__(self, lines: LineStream, caller: Caller, dispatcher: Dispatcher) -> None:
        self._lines, self._caller, self._dispatcher = lines, caller, dispatcher
        self.gone = anyio.Event()
        """Set when the client has closed its side."""
        self._own = f"{secrets.token_hex(8)}-"

    async def send(self, from_server: Any, open_calls: OpenCalls) -> None:
        """Write what the SDK sends, until it ends."""
        async with from_server:
            async for item in from_server:
                message = item.message
                match message:
                    case types.JSONRPCRequest(id=id):
                        message = message.model_copy(update={"id": f"{self._own}{id}"})
                    case types.JSONRPCNotification(method="notifications/cancelled", params=dict(params)):
                        params = {**params, "requestId": f"{self._own}{params.get('requestId')}"}
                        message = message.model_copy(update={"params": params})
                    case _:
                        pass
                text = message.model_dump_json(by_alias=True, exclude_unset=True)
                await self._lines.send(text.encode() + b"\n")
                if isinstance(message, types.JSONRPCResponse | types.JSONRPCError) and message.id is not None:
                    open_calls.close(coerce_request_id(message.id))

    async def receive(self, to_server: Any, open_calls: OpenCalls) -> None:
        """Pass the client's lines on to the SDK.

        The SDK cancels what is under way as soon as its input ends; a client that only closed its side of the pipe
        still waits for its answers, so the end is kept from the SDK until they are written.
        """
        async with to_server:
            while True:
                await open_calls.room()
                try:
                    line = await self._lines.receive(MAX_FRAME_BYTES)
                    if line is None:
                        self.gone.set()
                        await open_calls.none()
                        return
                    if not line.strip():
                        continue
                    message = _message(line, open_calls)
                except FrameInvalid as error:
                    await self._dispatcher.refuse(self._caller, "?", error)
                    await self._lines.send(_protocol_error(error))
                    continue
                match message:
                    case types.JSONRPCRequest(id=id):
                        open_calls.open(coerce_request_id(id), len(line))
                    case types.JSONRPCNotification(method="notifications/cancelled", params=params):
                        cancelled = cancelled_request_id_from_params(params)
                        if cancelled is not None:  # the SDK does not answer it
                            open_calls.close(coerce_request_id(cancelled))
                    case types.JSONRPCResponse(id=id) | types.JSONRPCError(id=id):
                        number = str(id).removeprefix(self._own)
                        if number == str(id) or not number.isdecimal():
                            continue  # nothing that was asked on this connection
                        message = message.model_copy(update={"id": int(number)})
                    case _:
                        pass
                await to_server.send(SessionMessage(message))


def _message(line: bytes, open_calls: OpenCalls) -> types.JSONRPCMessage:
    """Raises FrameInvalid, with the call's id as Python reads JSON: half a surrogate pair does not hide it."""
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as unread:
        error = FrameInvalid("the line is not a JSON-RPC message, or holds what is in no UTF-8 text")
        with suppress(ValueError, RecursionError, AttributeError):
            error.request_id = json.loads(line).get("id")
        raise error from unread
    match message:
        case types.JSONRPCRequest(id=id) if coerce_request_id(id) in open_calls:
            error = FrameInvalid("a call with this id is not answered yet", hint="Give each call an id of its own.")
        case types.JSONRPCNotification() if "id" in (given := json.loads(line)):  # such as 1.5: the SDK skips it
            error, id = FrameInvalid("a call's id is neither a whole number nor a text"), given["id"]
        case _:
            return message
    error.request_id = id
    raise error


def _protocol_error(error: FrameInvalid) -> bytes:
    """ASCII, so that an id goes back unchanged whatever it holds."""
    about = {"code": -32600, "message": f"{error.code}: {error.message}. {error.hint}"}
    reply = {"jsonrpc": "2.0", "id": error.request_id, "error": about}
    return json.dumps(reply, separators=(",", ":")).encode() + b"\n"
