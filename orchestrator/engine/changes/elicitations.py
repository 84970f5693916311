"""Requests put to the person before an agent's own client, where that client can ask and policy lets it.

Policy knows that person as `client:NAME`. Each showing by a client is a question of its own, named by its event, and
is answered once; whatever comes of it, the request waits in the queue for everybody else.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import anyio
import msgspec
from anyio import to_thread

from orchestrator.api import results as r
from orchestrator.api.administration import APPROVALS_SHOW, ApprovalInfo, ApprovalsShow
from orchestrator.core.errors import CallerError, RequestStateInvalid, escaped, plural
from orchestrator.core.events.conflicts import ElicitationAction, ElicitationAnswered
from orchestrator.core.ids import AgentName, Seq, SessionId, show
from orchestrator.core.projections.pending import Approval
from orchestrator.core.text.answer_space import AnswerSpace
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.changes.approval_inbox import ApprovalInbox
from orchestrator.engine.changes.change_answers import Answers
from orchestrator.engine.changes.diffs import Shows
from orchestrator.engine.changes.whole_changes import WholeChanges
from orchestrator.engine.services import Services
from orchestrator.ports.machine import Signer

FORM = AnswerSpace(bytes=12_000)
"""Of a request in a client's form; a larger one is approved where it is shown whole."""

_STATE = re.compile(r"([0-9]{1,18})\.([0-9]{1,18})\.([0-9a-f]{64})\Z", re.ASCII)


class Question(NamedTuple):
    """What a client is to show, and what it may offer as answers."""

    approval: Seq
    number: Seq
    message: str
    whole: bool
    with_code: bool


class Elicitations:
    """Asks, and knows which questions are open."""

    def __init__(self, services: Services, inbox: ApprovalInbox, answers: Answers, signer: Signer) -> None:
        self._s, self._inbox, self._answers, self._signer = services, inbox, answers, signer
        self._whole = WholeChanges(services)

    async def ask(self, caller: Caller, approval: Seq) -> Question | None:
        """A question about the caller's own request; None where its client is not to be asked, or was before."""
        request, person = self._s.state.pending.approval(approval), person_before(caller)
        if request is None or request.state != "waiting" or request.agent != caller.agent or caller.is_person:
            return None
        if request.shown_to(person.agent, person.via).asked:
            return None
        if not request.for_call and not await self._sees(caller, request):
            return None  # its client would be shown what is kept from the agent
        try:
            self._inbox.authorize(person, request)
        except CallerError:
            return None
        params = ApprovalsShow(approval=show(approval))
        call = Call(operation=APPROVALS_SHOW, params=params, room=FORM)
        info = await self._inbox.approvals_show(person, call, params)
        question = self._open(person, approval)
        if question is None:
            return None
        with_code = not self._inbox.trusts_client(caller.agent, request)
        return Question(approval, question, _message(caller, info), info.shown_whole, with_code)

    async def close(self, caller: Caller, approval: Seq, question: Seq, action: ElicitationAction) -> bool:
        """Note what its client made of a question; False where that was answered before, or asked anew.

        Raises Unauthorised for the client of an agent that may not call any more.
        """
        self._s.permissions.check_open(caller)
        request, person = self._s.state.pending.approval(approval), person_before(caller)
        if request is None or self._open(person, approval) != question:
            return False
        event = ElicitationAnswered(approval=approval, question=question, via=caller.agent, action=action)
        await self._s.notes.append(person.origin(), (request.stream, event))
        return True

    async def answered(self, approval: Seq, within_s: float) -> bool:
        """Wait until a request waits no more; False where it still does after that time."""
        with anyio.move_on_after(within_s):
            while self.waits(approval):
                moved = self._s.state_changes.next()
                if self.waits(approval):
                    await moved.wait()
        return not self.waits(approval)

    def waits(self, approval: Seq) -> bool:
        """Whether nobody has answered a request."""
        request = self._s.state.pending.approval(approval)
        return request is not None and request.state == "waiting"

    async def present(self, caller: Caller, approval: Seq) -> r.ChangeAnswer:
        """What became of a request, as its agent may see it."""
        return await self._answers.of(approval, Shows.readable(self._s, caller))

    async def _sees(self, caller: Caller, request: Approval) -> bool:
        """Whether nothing that the form for a change shows is kept from its agent."""
        if not all(self._s.access.shows(caller, path) for path in self._inbox.paths(request)):
            return False
        page = await self._whole.page(request.request, space=FORM)
        return self._s.redaction.text(caller, page.text) == page.text

    def _open(self, person: Caller, approval: Seq) -> Seq | None:
        request = self._s.state.pending.approval(approval)
        return request.shown_to(person.agent, person.via).question if request is not None else None

    # --- the state that a client keeps between two calls -----------------------------------

    async def sealed(self, caller: Caller, question: Question, call: bytes) -> str:
        """A text that names a question to `opened`, for the same agent and the same call alone; across restarts."""
        seal = await to_thread.run_sync(
            self._signer.seal, _covered(caller.agent, question.approval, question.number, call)
        )
        return f"{question.approval}.{question.number}.{seal.hex()}"

    async def opened(self, caller: Caller, state: str, call: bytes) -> tuple[Seq, Seq]:
        """The request and the question that it names. Raises RequestStateInvalid."""
        named = _STATE.match(state)
        if named is not None:
            approval, question = Seq(int(named[1])), Seq(int(named[2]))
            covered = _covered(caller.agent, approval, question, call)
            if await to_thread.run_sync(self._signer.sealed, covered, bytes.fromhex(named[3])):
                return approval, question
        raise RequestStateInvalid("this requestState was not given out for this call of this agent")


def person_before(caller: Caller) -> Caller:
    """Who answers what an agent's client asks: the owner of its process, by that client."""
    return msgspec.structs.replace(
        caller,
        agent=AgentName(f"person:{caller.owner}"),
        agent_class="person",
        session=SessionId(f"{caller.session}-person"),  # what a person sees is not what the agent has read
        asserted=False,
        token_hash=None,
        via=caller.agent,
    )


def _covered(agent: AgentName, approval: Seq, question: Seq, call: bytes) -> bytes:
    return b"orchestrator request state 1\n" + msgspec.json.encode((agent, approval, question, call))


def _message(caller: Caller, info: ApprovalInfo) -> str:
    """A request as far as it fits; nothing in it can pretend to be more of the form, or hide."""
    who = f"{caller.agent} (asserted)" if caller.asserted else caller.agent
    rows = [f"{who} asks for a yes: {info.operation}, {info.approval}"]
    rows += [f"why: {escaped(info.reason)}"] if info.reason else []
    rows += [f"asked because of: {escaped(info.rule)}"]
    if info.changed_since:
        rows.append(f"changed since by others: {', '.join(map(escaped, info.changed_since))}")
    if info.beside:
        rows.append(f"others wait for the same file: {', '.join(info.beside)}")
    rows += ["", *(escaped(line) for line in (info.diff or "").split("\n"))]
    if not info.shown_whole:
        where = f"`orchestrator approvals show {info.approval}`"
        rows.append(f"It is cut here ({plural(info.path_count, 'path')}), so it can't be approved here: use {where}.")
    return "\n".join(rows)
