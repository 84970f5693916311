"""MCP elicitation: the person before a client is asked there about what a call of its agent waits for.

Until 2025-11-25 the call stays open while the client is asked (`elicitation/create`). Since 2026-07-28 it is answered
with `input_required`, and the client calls again with the answer and the sealed state that it was given. Whatever the
client makes of it, the request waits in the queue, and the call answers as it would without a question.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from orchestrator.api.framing import Request
from orchestrator.api.operations import AWAIT_CHANGE, BY_NAME
from orchestrator.api.results import ChangeAnswer, Notice
from orchestrator.core.errors import ApprovalRequired, Denied, OrchestratorError
from orchestrator.core.events.conflicts import ElicitationAction
from orchestrator.core.ids import Seq, show
from orchestrator.core.positions import parse_seq
from orchestrator.engine.caller import Caller
from orchestrator.engine.changes.elicitations import Question, person_before
from orchestrator.servers.dispatch import Dispatcher

ASK_S = 50.0
"""A person who takes longer answers in the queue; most clients give up on a call after a minute."""

KEY = "approval"
"""Of our one question in `inputRequests`."""

NOT_COUNTED = "what the client's form answered does not count"

_ENCODER = msgspec.json.Encoder(order="deterministic")

Answered = tuple[Any, tuple[Notice, ...]]
Respond = Callable[[Request], Awaitable[Answered]]
Context = ServerRequestContext[Any]


class Elicitor:
    """Answers a call, and asks in between."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    async def answer(
        self,
        context: Context,
        params: types.CallToolRequestParams,
        caller: Caller,
        request: Request,
        respond: Respond,
        gone: anyio.Event,
    ) -> Answered | types.InputRequiredResult:
        """The answer of a call, or the question that comes first. `gone`: set when the client's side has ended.

        Raises OrchestratorError.
        """
        if params.request_state is not None:
            return await self._resume(params, caller, request, respond)
        refused: ApprovalRequired | None = None
        answered: Answered = (None, ())
        try:
            answered = await respond(request)
            approval = _waits_for(request, answered[0])
        except ApprovalRequired as error:
            approval, refused = parse_seq(error.details.get("approval", "0"), parameter="approval"), error
        question = None
        if approval and _can_ask(context):
            question = await self._dispatcher.elicitations.ask(caller, approval)
        if question is not None and context.session.protocol_version in MODERN_PROTOCOL_VERSIONS:
            state = await self._dispatcher.elicitations.sealed(caller, question, _call_digest(params))
            return types.InputRequiredResult(
                input_requests={KEY: types.ElicitRequest(params=_form(question))}, request_state=state
            )
        if question is not None:
            counted, warning = await self._ask_now(context, caller, question, gone)
            if counted or warning:
                return await self._outcome(caller, question.approval, request, respond, warning)
        if refused is not None:
            raise refused
        return answered

    async def _resume(
        self, params: types.CallToolRequestParams, caller: Caller, request: Request, respond: Respond
    ) -> Answered:
        """The call again, with what the client made of the question."""
        approval, number = await self._dispatcher.elicitations.opened(
            caller, params.request_state or "", _call_digest(params)
        )
        response = (params.input_responses or {}).get(KEY)
        result = response if isinstance(response, types.ElicitResult) else None
        _, warning = await self._decide(caller, approval, number, result, result.action if result else "failed")
        return await self._outcome(caller, approval, request, respond, warning)

    async def _ask_now(
        self, context: Context, caller: Caller, question: Question, gone: anyio.Event
    ) -> tuple[bool, str]:
        """Have the client ask while the call waits, until it or somebody else answers, it ends, or it is too late."""
        result: types.ElicitResult | None = None
        action: ElicitationAction = "timeout"
        elicitations = self._dispatcher.elicitations
        async with anyio.create_task_group() as asking:

            async def elsewhere() -> None:
                await elicitations.answered(question.approval, ASK_S)
                asking.cancel_scope.cancel()

            async def ended() -> None:
                await gone.wait()
                asking.cancel_scope.cancel()

            asking.start_soon(elsewhere)
            asking.start_soon(ended)
            try:
                form = _form(question)
                result = await context.session.elicit_form(form.message, form.requested_schema, context.request_id)
                action = result.action
            except (MCPError, ValidationError):  # it can't after all, or its answer is none
                action = "failed"
            asking.cancel_scope.cancel()
        if action == "timeout" and not elicitations.waits(question.approval):
            await elicitations.close(caller, question.approval, question.number, "answered_elsewhere")
            return True, ""
        if action == "timeout" and gone.is_set():
            action = "failed"
        return await self._decide(caller, question.approval, question.number, result, action)

    async def _decide(
        self, caller: Caller, approval: Seq, number: Seq, result: types.ElicitResult | None, action: ElicitationAction
    ) -> tuple[bool, str]:
        """Whether the person decided it, and else why the answer does not count, if there is one."""
        if not await self._dispatcher.elicitations.close(caller, approval, number, action):
            return False, f"{NOT_COUNTED}: the question was answered, or asked anew, before"
        content = (result.content if result is not None else None) or {}
        decision, code = content.get("decision"), content.get("approver_code")
        if action != "accept" or decision not in ("approve", "deny"):
            return False, ""
        params = {"approval": show(approval), "approver": code if isinstance(code, str) else None}
        wish = Request(method=str(decision), params=msgspec.Raw(_ENCODER.encode(params)))
        try:
            await self._dispatcher.respond(person_before(caller), wish)
        except OrchestratorError as error:
            return False, f"{NOT_COUNTED}: {error.message}"
        return True, ""

    async def _outcome(
        self, caller: Caller, approval: Seq, request: Request, respond: Respond, warning: str
    ) -> Answered:
        """How the call is answered after the question: as one that comes now, but it asks for nothing anew."""
        elicitations = self._dispatcher.elicitations
        changes = (known := BY_NAME.get(request.method)) is not None and known.writes
        if not changes:
            present = await elicitations.present(caller, approval)
            if present.status == "denied":
                raise Denied(present.message, hint="Go on without it, or ask the person you work for why.")
            try:
                return await respond(request)
            except ApprovalRequired as error:
                error.hint = ". ".join(filter(None, (warning, error.hint)))
                raise
        answered: Answered = (await elicitations.present(caller, approval), ())
        if not elicitations.waits(approval):
            wait = {"id": show(approval), "timeout_s": 0}
            answered = await respond(Request(method=AWAIT_CHANGE.name, params=msgspec.Raw(_ENCODER.encode(wait))))
        answer, notices = answered
        if warning and isinstance(answer, ChangeAnswer):
            answer = msgspec.structs.replace(answer, warnings=(*answer.warnings, warning))
        return answer, notices


def _waits_for(request: Request, result: Any) -> Seq | None:
    """The request for a yes that a call made, or met again."""
    known = BY_NAME.get(request.method)
    if isinstance(result, ChangeAnswer) and result.status == "waiting" and known is not None and known.writes:
        return parse_seq(result.approval, parameter="approval") if result.approval is not None else None
    return None


def _can_ask(context: Context) -> bool:
    """Whether the client says that it shows forms; one that says nothing more than `elicitation` does."""
    declared = context.session.client_capabilities
    elicitation = declared.elicitation if declared is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def _form(question: Question) -> types.ElicitRequestFormParams:
    choices = ["approve", "deny"] if question.whole else ["deny"]
    properties: dict[str, Any] = {"decision": {"type": "string", "title": "Your answer", "enum": choices}}
    if question.with_code:
        properties["approver_code"] = {
            "type": "string",
            "title": "Approver code",
            "description": "Yours, not the agent's: `orchestrator up` showed it once. Decline to answer elsewhere.",
        }
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    return types.ElicitRequestFormParams(message=question.message, requested_schema=schema)


def _call_digest(params: types.CallToolRequestParams) -> bytes:
    """Of the tool and its arguments; a transport gives each call a `request_id` of its own."""
    arguments = {name: value for name, value in (params.arguments or {}).items() if name != "request_id"}
    return hashlib.sha256(_ENCODER.encode((params.name, arguments))).digest()
