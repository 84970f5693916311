"""Conflicts: listed with all they are about, and settled by a person or a reviewer."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.conflicts.rebase import GapClashes, Side
from orchestrator.core.decisions.commands import Settle
from orchestrator.core.errors import CallerError, NothingToChange, NotPermitted, ParameterInvalid, VersionUnknown
from orchestrator.core.events.base import Event
from orchestrator.core.events.conflicts import ConflictFound, ConflictSettled
from orchestrator.core.events.reviews import ReviewRejected
from orchestrator.core.ids import Digest, Seq, parse_seq, show
from orchestrator.core.policy.routes import Route
from orchestrator.core.projections.pending import Conflict
from orchestrator.core.text.encoding import encode, new_document, replace_text
from orchestrator.engine.answers import Answers, regions
from orchestrator.engine.approver import ApproverGate
from orchestrator.engine.briefing import Briefer
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.changing import Changer
from orchestrator.engine.diffs import diff_text
from orchestrator.engine.proposals import Proposals, ProposalUnfit
from orchestrator.engine.services import Services
from orchestrator.engine.sides import sides_of, text
from orchestrator.engine.wanted import Wanted
from orchestrator.ports.reviewing import Party


class Settler:
    """The queue of changes that fitted nowhere."""

    def __init__(
        self,
        services: Services,
        changer: Changer,
        answers: Answers,
        gate: ApproverGate,
        proposals: Proposals,
        briefer: Briefer,
        route: Callable[[Conflict], Route | None],
    ) -> None:
        self._s, self._changer, self._answers, self._gate = services, changer, answers, gate
        self._proposals, self._briefer, self._route = proposals, briefer, route

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
        if params.choice == "review":
            return await self._accepted(caller, conflict)
        if params.choice == "current":
            await self._settled(caller, call, conflict, params, change=None)
            return await self._answers.of_conflict(self._now(number))
        chosen = await self._chosen(conflict, params)
        if caller.agent_class == "review" and chosen is not None:
            await self._check(conflict, chosen)
        current = await self._seen(conflict, params)
        command = Settle(path=conflict.found.path, current=current, chosen=chosen)
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

    async def _accepted(self, caller: Caller, conflict: Conflict) -> r.ChangeAnswer:
        """A person says yes to what a reviewer proposes."""
        review = conflict.review
        if caller.agent_class == "review":
            raise NotPermitted("a person accepts what a reviewer proposes")
        if review is None or review.state != "answered":
            raise NoProposal(f"no reviewer proposes anything for {show(conflict.seq)}")
        try:
            answer = await self._proposals.accept(conflict, review, by=caller.agent, vouched=True)
        except ProposalUnfit as error:
            raise NoProposal(f"what {review.reviewer} proposes can't stand: {error.message}") from error
        return answer or await self._answers.of_conflict(self._now(conflict.seq))

    async def _check(self, conflict: Conflict, chosen: bytes) -> None:
        """A reviewer that calls by itself is held to the same. Raises ProposalRefused."""
        try:
            await self._proposals.checked(conflict, chosen)
        except ProposalUnfit as error:
            raise ProposalRefused(error.message, details={"why": error.code}) from error

    async def _seen(self, conflict: Conflict, params: p.ResolveConflict) -> Digest | None:
        """The content that the choice was made for."""
        found = conflict.found
        if params.on is None:
            return found.current
        version = parse_seq(params.on, parameter="on")
        row = await self._s.journal.version_at(found.path, version)
        if row is None or not row.present:
            raise ParameterInvalid("on", f"{found.path} has no version {show(version)}")
        return row.digest

    async def _chosen(self, conflict: Conflict, params: p.ResolveConflict) -> bytes | None:
        found = conflict.found
        if params.choice == "proposed":
            if found.proposed is None:
                return None
            merged = await self._answers.proposed(conflict)
            if merged is not None:
                return encode(merged)
            return await self._s.contents.need(found.proposed, f"what {show(conflict.seq)} proposes")
        if params.choice == "regions":
            return await self._by_region(conflict, params)
        content = params.content or ""
        current = await self._answers.document(found.current)
        return encode(replace_text(current, content) if current else new_document(content))

    async def _by_region(self, conflict: Conflict, params: p.ResolveConflict) -> bytes:
        """A side for each region. Raises ParameterInvalid."""
        sides = await sides_of(self._s.contents, conflict.found)
        named, count = params.regions or (), len(conflict.found.regions)
        if sides is None or not count:
            raise ParameterInvalid("choice", f"{show(conflict.seq)} has no regions: choose one side, or content")
        if len(named) != count:
            raise ParameterInvalid("regions", f"name a side for each of its {count} regions, in their order")
        choices: dict[int, Side | tuple[str, ...]] = dict(enumerate(named))
        try:
            return encode(sides.chosen(choices))
        except GapClashes as error:
            raise ParameterInvalid("choice", "the sides clash elsewhere too; choose one side, or content") from error

    async def _settled(
        self, caller: Caller, call: Call, conflict: Conflict, params: p.ResolveConflict, *, change: Seq | None
    ) -> None:
        choice = params.choice if params.choice in ("current", "proposed") else "content"
        settled = ConflictSettled(
            conflict=conflict.seq,
            choice=choice,
            by=caller.agent,
            change=change,
            reason=params.reason,
        )
        events: list[Event] = [settled]
        review = conflict.review
        if review is not None and review.state == "answered":
            rejected = ReviewRejected(review=review.seq, conflict=conflict.seq, by=caller.agent, reason=params.reason)
            events.insert(0, rejected)
        stream = f"conflict:{conflict.found.path}"
        await self._s.append(caller.origin(call), *((stream, event) for event in events))

    def _now(self, number: Seq) -> Conflict:
        conflict = self._s.state.pending.conflict(number)
        if conflict is None:
            raise VersionUnknown(f"{show(number)} is no conflict")
        return conflict

    # --- shown ------------------------------------------------------------------------

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
        review, route = conflict.review, self._route(conflict)
        asked = review is not None and review.state in ("requested", "answered")
        sides = await sides_of(self._s.contents, found) if readable else None
        return r.ConflictInfo(
            conflict=show(conflict.seq),
            path=found.path,
            agent=conflict.agent,
            session=conflict.session,
            task=show(found.task) if found.task else None,
            since=conflict.at,
            operation=found.operation,
            reason=reason if readable else "",
            base_version=show(found.base_version) if found.base_version else None,
            current_version=show(found.current_version) if found.current_version else None,
            regions=regions(found.regions) if readable else (),
            base=base.text if base else None,
            current=current.text if current else None,
            proposed=proposed.text if proposed else None,
            diff=diff,
            state=conflict.stage,
            fits=conflict.fits,
            same_symbol=found.same_symbol if readable else (),
            proposer=_party(await self._briefer.proposer(conflict)) if readable else None,
            holders=tuple(map(_party, await self._briefer.holders(conflict))) if readable else (),
            reviewer=review.reviewer if review is not None and asked else None,
            deadline=review.deadline if review is not None and review.state == "requested" else None,
            route=route.name if route is not None else None,
            reviews=await self._reviews(conflict, shown=readable),
            review_diff=await self._review_diff(conflict) if readable else None,
            marked=sides.marked() if sides is not None and sides.regions else None,
        )

    async def _reviews(self, conflict: Conflict, *, shown: bool) -> tuple[r.ReviewLine, ...]:
        """Who was asked; what they say may quote the file."""
        lines = []
        for review in conflict.reviews:
            said = await self._proposals.answer(conflict, review) if review.verdict is not None else None
            lines.append(
                r.ReviewLine(
                    review=show(review.seq),
                    reviewer=review.reviewer,
                    state=review.state,
                    deadline=review.deadline,
                    verdict=review.verdict,
                    reason=said.reason if said is not None and shown else "",
                    model=said.model if said is not None else "",
                    code=review.code,
                )
            )
        return tuple(lines)

    async def _review_diff(self, conflict: Conflict) -> str | None:
        """What accepting the reviewer's proposal would change."""
        review = conflict.review
        if review is None or review.state != "answered" or review.proposal is None:
            return None
        current, proposed = await text(self._s.contents, review.current), await text(self._s.contents, review.proposal)
        if current is None or proposed is None:
            return None
        return diff_text(conflict.found.path, current, proposed)[0]


def _party(party: Party) -> r.ConflictParty:
    return r.ConflictParty(agent=party.agent, task=party.task, reason=party.reason)


class ConflictClosed(CallerError):
    """The conflict was settled or superseded before."""

    code = "conflict_closed"


class NoProposal(CallerError):
    """There is no reviewer's proposal to accept."""

    code = "no_proposal"
    hint = "`orchestrator conflicts show @N` says how far the review is; choose a side, or give the content."


class ProposalRefused(CallerError):
    """A reviewer's content does not pass the checks that every proposal must."""

    code = "proposal_refused"
    hint = "Change only the lines of the conflict's regions, keep the syntax whole, and send it again."
