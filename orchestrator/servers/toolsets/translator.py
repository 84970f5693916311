"""One call of a tool of another server: as calls of the catalogue, and as an answer that its clients know."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
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
from orchestrator.core.events.files import AnswerShown
from orchestrator.core.text.answer_space import AnswerSpace
from orchestrator.engine.caller import Caller, HeldNote
from orchestrator.servers.blocks import fenced, notices_block
from orchestrator.servers.callable_hints import callable_hint
from orchestrator.servers.dispatch import Dispatcher
from orchestrator.servers.toolsets.drop_in import DROP_IN
from orchestrator.servers.toolsets.tool import Calls, NotDone, ToolAnswer

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
        unescaped: bool,
        call_id: str | None,
        lines: LineStream | None,
        ask: Ask,
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Carry out a call of a tool."""
        entry = DROP_IN[preamble.toolset]
        name, given = entry.aliases(params.name, params.arguments or {})
        room, for_notices, _ = self._dispatcher.parts(caller, room)

        async def respond(request: Request, room: AnswerSpace, held: list[HeldNote]) -> Any:
            plain = partial(self._dispatcher.respond, caller, lines=lines, room=room, held=held, unescaped=unescaped)
            answered = await (ask(request, plain) if BY_NAME[request.method].writes else plain(request))
            if isinstance(answered, types.InputRequiredResult):
                raise InputNeeded(answered)
            return answered[0]

        names = entry.names - entry.off(self._dispatcher.limits.switched_off(caller))
        calls = Calls(self._dispatcher.root, caller.session, room, respond, call_id, preamble.settings, names)
        held: Sequence[HeldNote] = ()
        try:
            tool = entry.named(name)
            self._dispatcher.limits.check_switched_on(caller, name)
            answer = await tool.run(calls, parse_params(tool, msgspec.Raw(_ENCODER.encode(given))))
            texts = _texts(answer)
            if not room.holds(*texts):
                raise AnswerTooLarge(name, size=sum(map(len, texts)), most=room.bytes)
            held = calls.held
        except InputNeeded as needed:
            return needed.result
        except NotDone as not_done:
            answer = ToolAnswer(not_done.text, shown=not_done.answer.shown, failed=True)
            held = [_without_lines(note) for note in calls.held if isinstance(note.event, AnswerShown)]
        except OrchestratorError as error:
            if not error.journalled:
                await self._dispatcher.refuse(caller, name, error, call_id)
            error.hint = callable_hint(error.hint, calls.names)
            answer = ToolAnswer(entry.refused(error, calls.root), shown=error.shown, failed=True)
        return _result(answer, await self._dispatcher.release(caller, name, held, for_notices))


def _without_lines(note: HeldNote) -> HeldNote:
    return note._replace(event=msgspec.structs.replace(note.event, seen=()))


def _texts(answer: ToolAnswer) -> list[str]:
    return [*([] if answer.text is None else [answer.text]), *answer.notes, *_lines(answer.shown)]


def _result(answer: ToolAnswer, notices: tuple[Notice, ...]) -> types.CallToolResult:
    """Our own words stand behind the other server's, in blocks of their own, and in its typed text."""
    texts = [*_texts(answer), *([notices_block(notices)] if notices else [])]
    structured = answer.structured
    if structured is not None and isinstance(structured.get("content"), str):
        structured = {**structured, "content": "\n\n".join(texts)}
    return types.CallToolResult(
        content=[*answer.blocks, *(types.TextContent(text=text) for text in texts)],
        structured_content=structured,
        is_error=answer.failed,
    )


def _lines(shown: str | None) -> list[str]:
    """Lines of a file that an answer shows beside its words."""
    if not shown:
        return []
    head, _, body = shown.partition("\n")
    return [fenced(head, body)]
