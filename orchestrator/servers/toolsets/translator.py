"""One call of a tool of another server: as calls of the catalogue, and as an answer that its clients know."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import mcp_types as types
import msgspec

from orchestrator.api.failures import parse_params
from orchestrator.api.framing import Preamble, Request
from orchestrator.api.line_stream import LineStream
from orchestrator.api.operations import BY_NAME
from orchestrator.api.results import Notice
from orchestrator.core.errors import AnswerTooLarge, OrchestratorError
from orchestrator.core.text.answer_space import AnswerSpace
from orchestrator.engine.caller import Caller
from orchestrator.servers.blocks import fenced, notices_block
from orchestrator.servers.dispatch import Dispatcher
from orchestrator.servers.toolsets.drop_in import DROP_IN
from orchestrator.servers.toolsets.tool import Calls, NotDone, ToolAnswer, ToolsetEntry

_ENCODER = msgspec.json.Encoder()

Answered = tuple[Any, tuple[Notice, ...]]
Ask = Callable[[Request, Callable[[Request], Awaitable[Answered]]], Awaitable[Answered | types.InputRequiredResult]]
"""Has the client ask its person about a change that waits."""


class InputNeeded(Exception):
    """The client asks its person first, and makes the same call again."""

    def __init__(self, result: types.InputRequiredResult) -> None:
        super().__init__("input required")
        self.result = result


class Translator:
    """Runs the tools of the sets that stand in for other servers."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    async def call(  # what is known of one call
        self,
        params: types.CallToolRequestParams,
        caller: Caller,
        preamble: Preamble,
        *,
        room: AnswerSpace,
        call_id: str | None,
        lines: LineStream | None,
        ask: Ask,
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Carry out a call of a tool."""
        entry = DROP_IN[preamble.toolset]
        name, given = entry.aliases(params.name, params.arguments or {})

        async def respond(request: Request, room: AnswerSpace) -> Answered:
            plain = partial(self._dispatcher.respond, caller, lines=lines, room=room)
            if not BY_NAME[request.method].writes:
                return await plain(request)
            answered = await ask(request, plain)
            if isinstance(answered, types.InputRequiredResult):
                raise InputNeeded(answered)
            return answered

        calls = Calls(self._dispatcher.root, caller.session, room, respond, call_id, preamble.settings)
        try:
            tool = entry.named(name)
            self._dispatcher.check_switched_on(caller, name)
            answer = await tool.run(calls, parse_params(tool, msgspec.Raw(_ENCODER.encode(given))))
            result = _result(answer, tuple(calls.notices))
            texts = [part.text for part in result.content if isinstance(part, types.TextContent)]
            if not room.holds(*texts):
                raise AnswerTooLarge(name, size=sum(map(len, texts)), most=room.bytes)
        except InputNeeded as needed:
            return needed.result
        except NotDone as not_done:
            blocks = [not_done.text, *_lines(not_done.answer.shown)]
            return types.CallToolResult(content=[types.TextContent(text=text) for text in blocks], is_error=True)
        except OrchestratorError as error:
            if not error.journalled:
                await self._dispatcher.refuse(caller, name, error)
            return _refused(entry, error, calls)
        return result


def _result(answer: ToolAnswer, notices: tuple[Notice, ...]) -> types.CallToolResult:
    """Our own words stand behind the other server's, in blocks of their own, and in its typed text."""
    notes = [*answer.notes, *_lines(answer.shown), *([notices_block(notices)] if notices else [])]
    texts = ([] if answer.text is None else [answer.text]) + notes
    structured = answer.structured
    if structured is not None and notes and isinstance(structured.get("content"), str):
        structured = {**structured, "content": "\n\n".join((structured["content"], *notes))}
    return types.CallToolResult(
        content=[*answer.blocks, *(types.TextContent(text=text) for text in texts)],
        structured_content=structured,
        is_error=answer.failed,
    )


def _refused(entry: ToolsetEntry, error: OrchestratorError, calls: Calls) -> types.CallToolResult:
    texts = [entry.refused(error, calls.root), *_lines(error.shown)]
    notices = (*calls.notices, *error.notices)
    texts += [notices_block(notices)] if notices else []
    return types.CallToolResult(content=[types.TextContent(text=text) for text in texts], is_error=True)


def _lines(shown: str | None) -> list[str]:
    """Lines of a file that an answer shows beside its words."""
    if not shown:
        return []
    head, _, body = shown.partition("\n")
    return [fenced(head, body)]
