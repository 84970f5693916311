"""MCP for authenticated callers: the SDK's low-level server, in both protocol versions; and our lines under it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any, Literal

import anyio
import mcp_types as types
import msgspec
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from orchestrator.api.conflicts import Conflicts
from orchestrator.api.framing import MAX_FRAME_BYTES, Preamble, Request, refusal
from orchestrator.api.line_stream import LineStream
from orchestrator.api.operations import BY_NAME, toolset
from orchestrator.api.results import ChangeAnswer, Notice
from orchestrator.core.errors import AnswerTooLarge, FrameInvalid, OrchestratorError, UnknownOperation
from orchestrator.core.text.answer_space import UNBOUNDED, AnswerSpace, size
from orchestrator.engine.caller import Caller
from orchestrator.servers.answer_limits import json_within, room_for
from orchestrator.servers.blocks import fenced, notices_block, text_block
from orchestrator.servers.dispatch import Dispatcher, OpenCalls
from orchestrator.servers.elicitation import Elicitor
from orchestrator.servers.tools import INSTRUCTIONS, tools
from orchestrator.version import VERSION

_ENCODER = msgspec.json.Encoder()
FRAME_BYTES = 50
"""Between the blocks of one answer."""

NOT_OFFERED = "tools/list names all of them; a person opens the others with `orchestrator mcp --toolset full`."
_CALL_IDS = ("claudecode/toolUseId", "callId")
"""Where clients put their own id of a tool call."""


class McpClient(msgspec.Struct, frozen=True, eq=False):
    """Who calls by MCP, how its answers shall be, and what they go to, where that is a line of ours."""

    caller: Caller
    preamble: Preamble
    lines: LineStream | None = None
    gone: anyio.Event = msgspec.field(default_factory=anyio.Event)
    """Set when nothing more comes from the client, where that is known."""


async def serve_mcp(lines: LineStream, caller: Caller, preamble: Preamble, dispatcher: Dispatcher) -> None:
    """Until the client ends its side."""
    client = McpClient(caller, preamble, lines)
    transport = _LineTransport(lines, client, dispatcher)
    server = McpHandlers(dispatcher, lambda context: client).server
    open_calls = OpenCalls(dispatcher)
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](16)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](16)
    try:
        async with anyio.create_task_group() as receiving:
            receiving.start_soon(transport.receive, to_server, open_calls)
            async with anyio.create_task_group() as sending:  # left when the last queued reply is written
                sending.start_soon(transport.send, from_server, open_calls)
                async with incoming, outgoing:
                    await server.run(incoming, outgoing, server.create_initialization_options())
            receiving.cancel_scope.cancel()
    finally:
        open_calls.close()


class _LineTransport:
    """The lines of one connection, as the SDK reads and writes them.

    The SDK counts its own requests from 1 on. On the line their ids are this connection's alone, so that a client that
    answers what a daemon asked before it ended does not answer another question of the next one.
    """

    def __init__(self, lines: LineStream, client: McpClient, dispatcher: Dispatcher) -> None:
        self._lines, self._client, self._dispatcher = lines, client, dispatcher
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
                        self._client.gone.set()
                        await open_calls.none()
                        return
                    if not line.strip():
                        continue
                    message = _message(line, open_calls)
                except FrameInvalid as error:
                    await self._dispatcher.refuse(self._client.caller, "?", error)
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


class McpHandlers:
    """What the tools do, over any transport; the SDK's view of the client is for display only."""

    def __init__(self, dispatcher: Dispatcher, client_of: Callable[[ServerRequestContext[Any]], McpClient]) -> None:
        self._dispatcher, self._client_of, self._elicitor = dispatcher, client_of, Elicitor(dispatcher)
        self.server: Server[Any] = Server(
            "orchestrator",
            version=VERSION,
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )

    async def _list_tools(
        self, context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        client = self._client_of(context)
        caller, preamble = client.caller, client.preamble
        offered = tools(preamble.toolset, structured=preamble.structured, reviewer=_reviews(caller))
        off = self._dispatcher.switched_off(caller)
        return types.ListToolsResult(tools=[tool for tool in offered if tool.name not in off])

    async def _call_tool(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        name, client = params.name, self._client_of(context)
        caller, preamble = client.caller, client.preamble
        room = self._dispatcher.room(caller, _room(context, preamble))
        most = known.most_bytes if (known := BY_NAME.get(name)) is not None else UNBOUNDED.bytes
        try:
            if name in BY_NAME and name not in _offered(preamble.toolset, reviewer=_reviews(caller)):
                error = UnknownOperation(f"there is no tool {name} here", hint=NOT_OFFERED)
                await self._dispatcher.refuse(caller, name, error)
                raise error
            raw = msgspec.Raw(_ENCODER.encode(params.arguments or {}))
            request = Request(method=name, params=raw, call_id=_call_id(context))
            respond = partial(self._dispatcher.respond, caller, lines=client.lines, room=room.at_most(most))
            answered = await self._elicitor.answer(context, params, caller, request, respond, client.gone)
        except OrchestratorError as error:
            return _refused(error, room)
        if isinstance(answered, types.InputRequiredResult):
            return answered
        answer, notices = answered
        result = _answered(answer, notices, room, most, structured=preamble.structured)
        texts = [part.text for part in result.content if isinstance(part, types.TextContent)]
        typed = len(_ENCODER.encode(result.structured_content)) if result.structured_content else 0
        if typed > room.bytes or not room.holds(*texts):
            return _refused(AnswerTooLarge(name, size=max(typed, *map(len, texts)), most=room.bytes), room)
        return result


def _reviews(caller: Caller) -> bool:
    return caller.agent_class == "review"


@cache
def _offered(name: Literal["core", "full"], *, reviewer: bool) -> frozenset[str]:
    return frozenset(operation.name for operation in toolset(name, reviewer=reviewer))


def _room(context: ServerRequestContext[Any], preamble: Preamble) -> AnswerSpace:
    """What this client passes on of an answer; its name is its own claim, and decides nothing else."""
    client = context.session.client_params
    name = client.client_info.name if client is not None and client.client_info is not None else ""
    return room_for(name, preamble.max_answer_bytes, typed=preamble.structured)


def _answered(
    result: Any, notices: tuple[Notice, ...], room: AnswerSpace, most: int, *, structured: bool
) -> types.CallToolResult:
    text = text_block(result)
    if text is not None and notices:
        text = f"{text}\n{notices_block(notices)}"
    if text is not None and not structured:
        return types.CallToolResult(content=[types.TextContent(text=text)])
    bare, blocks = _split(result)
    plain = msgspec.to_builtins(bare)
    plain.pop("shown", None)
    whole = plain | _noticed(notices)
    if text is not None:
        return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=whole)
    if isinstance(result, Conflicts) and not room.holds(_text(whole), *blocks):
        blocks = []  # what they show is in the JSON, too
    return _result(bare, plain, blocks, notices, room, most)


def _refused(error: OrchestratorError, room: AnswerSpace) -> types.CallToolResult:
    plain: dict[str, Any] = msgspec.to_builtins(refusal(error))
    blocks = [_shown(text)] if (text := plain.pop("shown", None)) else []
    return _result(None, plain, blocks, error.notices, room)


def _result(
    result: Any,
    plain: dict[str, Any],
    blocks: list[str],
    notices: tuple[Notice, ...],
    room: AnswerSpace,
    most: int = UNBOUNDED.bytes,
) -> types.CallToolResult:
    """JSON, cut to what `blocks` and `notices` leave of the room; without a result a refusal."""
    noticed = _noticed(notices)
    taken = sum(map(size, (*blocks, _text(noticed)))) + FRAME_BYTES
    plain = json_within(result, plain, room.less(taken).at_most(most)) | noticed
    return types.CallToolResult(
        content=[types.TextContent(text=text) for text in (_text(plain), *blocks)],
        structured_content=plain if result is not None else None,
        is_error=result is None,
    )


def _split(result: Any) -> tuple[Any, list[str]]:
    """The answer without whole texts, and the lines it shows, each part under a head line of its own.

    The diff stays in the answer: some clients give their model nothing but the structured content.
    """
    match result:
        case ChangeAnswer(shown=shown):
            return msgspec.structs.replace(result, shown=None), [_shown(shown)] if shown else []
        case Conflicts(conflicts=waiting):
            whole = {"base": None, "current": None, "proposed": None, "marked": None}
            bare = [msgspec.structs.replace(c, **whole) for c in waiting]
            head = "from what the file holds to what is proposed"
            parts = [_shown(f"{c.conflict} {c.path}, {head}\n{c.diff}") for c in waiting if c.diff]
            return msgspec.structs.replace(result, conflicts=tuple(bare)), parts
        case _:
            return result, []


def _noticed(notices: tuple[Notice, ...]) -> dict[str, Any]:
    return {"notices": msgspec.to_builtins(notices)} if notices else {}


def _text(plain: dict[str, Any]) -> str:
    return _ENCODER.encode(plain).decode()


def _shown(text: str) -> str:
    head, _, body = text.partition("\n")
    return fenced(head, body)


def _call_id(context: ServerRequestContext[Any]) -> str | None:
    meta: Any = context.meta
    given = [meta.get(key) for key in _CALL_IDS] if isinstance(meta, dict) else []
    return next((value[:200] for value in given if isinstance(value, str)), None)


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
