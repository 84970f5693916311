"""MCP for authenticated callers: the SDK's low-level server, in both protocol versions."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import anyio
import mcp_types as types
import msgspec
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage

from orchestrator.api.briefing import BRIEFING_URI, GET_BRIEFING
from orchestrator.api.conflicts import Conflicts
from orchestrator.api.framing import Preamble, Request, refusal
from orchestrator.api.line_stream import LineStream
from orchestrator.api.operations import BY_NAME
from orchestrator.api.results import ChangeAnswer, Notice
from orchestrator.api.toolsets import Toolset
from orchestrator.core.errors import AnswerTooLarge, OrchestratorError, UnknownOperation
from orchestrator.core.text.answer_space import UNBOUNDED, AnswerSpace, size
from orchestrator.engine.caller import Caller
from orchestrator.servers.answer_limits import json_within
from orchestrator.servers.blocks import fenced, notices_block, text_block
from orchestrator.servers.callable_hints import callable_hint, names_with
from orchestrator.servers.client_profiles import profile_of
from orchestrator.servers.dispatch import Dispatcher, OpenCalls
from orchestrator.servers.elicitation import Elicitor
from orchestrator.servers.mcp_lines import LineTransport
from orchestrator.servers.tools import INSTRUCTIONS, operations_of, tools
from orchestrator.servers.toolsets.drop_in import DROP_IN
from orchestrator.servers.toolsets.translator import Translator
from orchestrator.version import VERSION

_ENCODER = msgspec.json.Encoder()
FRAME_BYTES = 50
"""Between the blocks of one answer."""

BRIEFING = types.Resource(
    name="briefing",
    uri=BRIEFING_URI,
    description="What get_briefing answers: folders, documents, who works on what, what you have open.",
    mime_type="text/plain",
)

LISTED = "tools/list names all of them."
NOT_OFFERED = f"{LISTED[:-1]}; a person opens the others with `orchestrator mcp --toolset full`."
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
    transport = LineTransport(lines, caller, dispatcher)
    client = McpClient(caller, preamble, lines, transport.gone)
    server = McpHandlers(dispatcher, lambda context: client, stands_in=preamble.toolset in DROP_IN).server
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


class McpHandlers:
    """What the tools do, over any transport; the SDK's view of the client is for display only."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        client_of: Callable[[ServerRequestContext[Any]], McpClient],
        *,
        stands_in: bool,
    ) -> None:
        self._dispatcher, self._client_of, self._elicitor = dispatcher, client_of, Elicitor(dispatcher)
        self._translator = Translator(dispatcher)
        self.server: Server[Any] = Server(
            "orchestrator",
            version=VERSION,
            instructions=None if stands_in else INSTRUCTIONS,  # whose prompts are another server's gets none
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=None if stands_in else self._list_resources,
            on_read_resource=None if stands_in else self._read_resource,
        )

    async def _list_resources(
        self, context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[BRIEFING] if self._briefs(self._client_of(context)) else [])

    async def _read_resource(
        self, context: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """What get_briefing answers, to the same caller under the same name."""
        if params.uri != BRIEFING.uri or not self._briefs(self._client_of(context)):
            raise MCPError(types.INVALID_PARAMS, f"there is no resource {params.uri}", {"uri": params.uri})
        call = types.CallToolRequestParams(name=GET_BRIEFING.name)
        answered = await self._call_tool(context, call)
        text = "\n".join(part.text for part in getattr(answered, "content", ()) if isinstance(part, types.TextContent))
        if getattr(answered, "is_error", False):
            raise MCPError(types.INTERNAL_ERROR, text)
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=BRIEFING.uri, mime_type=BRIEFING.mime_type, text=text)]
        )

    def _briefs(self, client: McpClient) -> bool:
        return GET_BRIEFING.name not in self._dispatcher.limits.switched_off(client.caller)

    async def _list_tools(
        self, context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        client = self._client_of(context)
        caller, preamble = client.caller, client.preamble
        offered = tools(preamble.toolset, structured=preamble.structured, reviewer=_reviews(caller))
        off = self._dispatcher.limits.switched_off(caller)
        if preamble.toolset in DROP_IN:
            off = DROP_IN[preamble.toolset].off(off)
        return types.ListToolsResult(tools=[tool for tool in offered if tool.name not in off])

    async def _call_tool(
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        name, client = params.name, self._client_of(context)
        caller, preamble, profile = client.caller, client.preamble, profile_of(context)
        drop_in = preamble.toolset in DROP_IN
        room = profile.room_for(preamble.max_answer_bytes, typed=preamble.structured, drop_in=drop_in)
        room = self._dispatcher.limits.room(caller, room)
        if drop_in:
            return await self._translator.call(
                params,
                caller,
                preamble,
                room=room,
                unescaped=profile.unescapes,
                call_id=_call_id(context),
                lines=client.lines,
                ask=lambda request, plain: self._elicitor.answer(context, params, caller, request, plain, client.gone),
            )
        most = known.most_bytes if (known := BY_NAME.get(name)) is not None else UNBOUNDED.bytes
        own, _, _ = self._dispatcher.parts(caller, room)
        form = partial(_answered, most=most, structured=preamble.structured, text_only=profile.text_only)

        def fits(result: Any) -> None:
            _check(name, form(result, (), own), own)

        try:
            if name in BY_NAME and name not in _offered(preamble.toolset, reviewer=_reviews(caller)):
                opened = preamble.toolset != "full" and BY_NAME[name].tool
                raise UnknownOperation(f"there is no tool {name} here", hint=NOT_OFFERED if opened else LISTED)
            raw = msgspec.Raw(_ENCODER.encode(params.arguments or {}))
            request = Request(method=name, params=raw, call_id=_call_id(context))
            most_room = room.at_most(most)
            respond = partial(
                self._dispatcher.respond,
                caller,
                lines=client.lines,
                room=most_room,
                fits=fits,
                unescaped=profile.unescapes,
            )
            answered = await self._elicitor.answer(context, params, caller, request, respond, client.gone)
        except OrchestratorError as error:
            if not error.journalled:
                await self._dispatcher.refuse(caller, name, error, _call_id(context))
            offered = _offered(preamble.toolset, reviewer=_reviews(caller))
            off = self._dispatcher.limits.switched_off(caller)
            error.hint = callable_hint(error.hint, names_with(offered - off))
            return _refused(error, room)
        if isinstance(answered, types.InputRequiredResult):
            return answered
        answer, notices = answered
        result = form(answer, notices, room)
        try:
            _check(name, result, room)
        except AnswerTooLarge as error:  # with its notices
            await self._dispatcher.refuse(caller, name, error, _call_id(context))
            return _refused(error, room)
        return result


def _check(name: str, result: types.CallToolResult, room: AnswerSpace) -> None:
    """Raises AnswerTooLarge."""
    texts = [part.text for part in result.content if isinstance(part, types.TextContent)]
    typed = len(_ENCODER.encode(result.structured_content)) if result.structured_content else 0
    if typed > room.bytes or not room.holds(*texts):
        raise AnswerTooLarge(name, size=max(typed, *map(len, texts)), most=room.bytes)


def _reviews(caller: Caller) -> bool:
    return caller.agent_class == "review"


@cache
def _offered(name: Toolset, *, reviewer: bool) -> frozenset[str]:
    return frozenset(operation.name for operation in operations_of(name, reviewer=reviewer))


def _answered(
    result: Any, notices: tuple[Notice, ...], room: AnswerSpace, *, most: int, structured: bool, text_only: bool
) -> types.CallToolResult:
    text = text_block(result)
    if text is not None and notices:
        text = f"{text}\n{notices_block(notices)}"
    image = getattr(result, "image", None)
    images: list[types.ContentBlock] = []
    if image is not None:
        data = b64encode(image.data).decode()
        images = [types.ImageContent(data=data, mime_type=image.media_type)]
        result = msgspec.structs.replace(result, image=None)
    if text is not None and not structured:
        return types.CallToolResult(content=[types.TextContent(text=text), *images])
    bare, blocks = _split(result)
    plain = msgspec.to_builtins(bare)
    plain.pop("shown", None)
    whole = plain | _noticed(notices)
    if text is not None:
        return types.CallToolResult(content=[types.TextContent(text=text), *images], structured_content=whole)
    if isinstance(result, Conflicts) and not room.holds(_text(whole), *blocks):
        blocks = []  # what they show is in the JSON, too
    answer = _result(bare, plain, blocks, notices, room, most)
    return answer.model_copy(update={"structured_content": None}) if text_only and not structured else answer


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
