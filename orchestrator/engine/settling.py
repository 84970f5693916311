"""Conflicts: listed with all three contents, and settled by a person or a reviewer."""

from __future__ import annotations

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.decisions.commands import Settle
from orchestrator.core.errors import CallerError, NothingToChange, NotPermitted, ParameterInvalid, VersionUnknown
from orchestrator.core.events.conflicts import ConflictFound, ConflictSettled
from orchestrator.core.ids import Seq, parse_seq, show
from orchestrator.core.projections.pending import Conflict
from orchestrator.core.text.encoding import encode, new_document, replace_text
from orchestrator.engine.answers import Answers, regions
from orchestrator.engine.approver import ApproverGate
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.changing import Changer
from orchestrator.engine.services import Services
from orchestrator.engine.wanted import Wanted


class Settler:
    """The queue of changes that fitted nowhere."""

    def __init__(self, services: Services, changer: Changer, answers: Answers, gate: ApproverGate) -> None:
        self._s, self._changer, self._answers, self._gate = services, changer, answers, gate

    async def list_conflicts(self, caller: Caller, call: Call, params: p.ListConflicts) -> r.Conflicts:
        found = [await self._info(caller, conflict) for conflict in self._s.state.pending.open_conflicts()]
        return r.Conflicts(conflicts=tuple(found))

    async def resolve_conflict(self, caller: Caller, call: Call, params: p.ResolveConflict) -> r.ChangeAnswer:
        if caller.agent_class not in ("person", "review"):
            raise NotPermitted(
                "conflicts are settled by reviewers and people", hint="Send your change again, or await_change."
            )
        if caller.agent_class != "review":
            await self._gate.check(params.approver)
        number = parse_seq(params.conflict, parameter="conflict")
        conflict = self._s.state.pending.conflict(number)
        if conflict is None:
            raise VersionUnknown(f"{show(number)} is no conflict", hint="list_conflicts names those that wait.")
        if conflict.state != "open":
            raise ConflictClosed(f"{show(number)} is {conflict.state} already", details={"conflict": show(number)})
        if params.choice == "content" and params.content is None:
            raise ParameterInvalid("content", "is required with choice 'content'")
        if params.choice == "current":
            await self._settled(caller, call, conflict, params, change=None)
            return await self._answers.of_conflict(self._now(number))
        chosen = await self._chosen(conflict, params)
        command = Settle(path=conflict.found.path, current=conflict.found.current, chosen=chosen)
        wanted = Wanted(
            caller=caller, call=call, reason=params.reason, settles=number, vouched=caller.agent_class == "person"
        )
        try:
            answer = await self._changer.change(command, wanted)
        except NothingToChange:
            await self._settled(caller, call, conflict, params, change=None)
            return await self._answers.of_conflict(self._now(number))
        if answer.status == "applied" and answer.change is not None:
            await self._settled(caller, call, conflict, params, change=parse_seq(answer.change))
        return answer

    async def _chosen(self, conflict: Conflict, params: p.ResolveConflict) -> bytes | None:
        found = conflict.found
        if params.choice == "proposed":
            if found.proposed is None:
                return None
            merged = await self._answers.proposed(conflict)
            if merged is not None:
                return encode(merged)
            return await self._s.contents.need(found.proposed, f"what {show(conflict.seq)} proposes")
        content = params.content or ""
        current = await self._answers.document(found.current)
        return encode(replace_text(current, content) if current else new_document(content))

    async def _settled(
        self, caller: Caller, call: Call, conflict: Conflict, params: p.ResolveConflict, *, change: Seq | None
    ) -> None:
        event = ConflictSettled(
            conflict=conflict.seq, choice=params.choice, by=caller.agent, change=change, reason=params.reason
        )
        await self._s.append(caller.origin(call), (f"conflict:{conflict.found.path}", event))

    def _now(self, number: Seq) -> Conflict:
        conflict = self._s.state.pending.conflict(number)
        if conflict is None:
            raise VersionUnknown(f"{show(number)} is no conflict")
        return conflict

    async def _info(self, caller: Caller, conflict: Conflict) -> r.ConflictInfo:
        found = conflict.found
        here = self._s.readable(caller, found.path)
        readable = here and all(self._s.readable(caller, name) for name in found.names)
        base = await self._answers.document(found.base) if readable else None
        current = await self._answers.document(found.current) if here else None
        proposed = await self._answers.proposed(conflict) if readable else None
        recorded = await self._s.journal.event(conflict.seq)
        reason = recorded.event.reason if recorded and isinstance(recorded.event, ConflictFound) else ""
        diff = (await self._answers.conflict_diff(conflict))[0] if readable else None
        return r.ConflictInfo(
            conflict=show(conflict.seq),
            path=found.path,
            agent=conflict.agent,
            session=conflict.session,
            task=show(found.task) if found.task else None,
            since=conflict.at,
            operation=found.operation,
            reason=reason,
            base_version=show(found.base_version) if found.base_version else None,
            current_version=show(found.current_version) if found.current_version else None,
            regions=regions(found.regions),
            base=base.text if base else None,
            current=current.text if current else None,
            proposed=proposed.text if proposed else None,
            diff=diff,
        )


class ConflictClosed(CallerError):
    """The conflict was settled or superseded before."""

    code = "conflict_closed"
