"""Conflicts: listed with all they are about, and settled by a person or a reviewer."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.conflicts.rebase import GapConflict, Side
from orchestrator.core.decisions.commands import Resolve
from orchestrator.core.decisions.rebase import not_encodable
from orchestrator.core.errors import (
    CallerError,
    NothingToChange,
    NotPermitted,
    ParameterInvalid,
    StaleBase,
    TextTooCostly,
    VersionUnknown,
)
from orchestrator.core.events.base import Event
from orchestrator.core.events.conflicts import ConflictFound, ConflictResolved
from orchestrator.core.events.reviews import ReviewRejected
from orchestrator.core.ids import Seq, parse_seq, show
from orchestrator.core.policy.routes import Route
from orchestrator.core.projections.pending import Conflict
from orchestrator.core.text.encoding import Document, NotEncodable, encode, new_document, replace_text
from orchestrator.engine.approver import ApproverGate
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.changes.answers import Answers, regions
from orchestrator.engine.changes.change_request import ChangeRequest
from orchestrator.engine.changes.pipeline import ChangePipeline
from orchestrator.engine.conflicts.authorization import authorize_resolution
from orchestrator.engine.conflicts.pages import ConflictPages
from orchestrator.engine.conflicts.preconditions import ConflictMoved, Preconditions, whole
from orchestrator.engine.conflicts.proposals import Proposals, ProposalUnfit
from orchestrator.engine.conflicts.rebase import Rebaser
from orchestrator.engine.conflicts.review_context import ReviewContext
from orchestrator.engine.conflicts.sides import Sides, chosen, sides_of, text
from orchestrator.engine.services import Services
from orchestrator.ports.reviewers import Party


class ConflictResolver:
    """The queue of changes that fitted nowhere."""

    def __init__(
        self,
        services: Services,
        changer: ChangePipeline,
        answers: Answers,
        gate: ApproverGate,
        proposals: Proposals,
        briefer: ReviewContext,
        route: Callable[[Conflict], Route | None],
        rebaser: Rebaser,
    ) -> None:
        self._s, self._changer, self._answers, self._gate = services, changer, answers, gate
        self._proposals, self._briefer, self._route = proposals, briefer, route
        self._rebaser, self._pages = rebaser, ConflictPages(services, rebaser, self._info)
        self._binder = Preconditions(services)

    async def list_conflicts(self, caller: Caller, call: Call, params: p.ListConflicts) -> r.Conflicts:
        return await self._pages.page(caller, params)

    async def resolve_conflict(self, caller: Caller, call: Call, params: p.ResolveConflict) -> r.ChangeAnswer:
        agent = caller.agent_class != "person"
        if agent and caller.agent_class != "review":
            raise NotPermitted(
                "conflicts are settled by reviewers and people", hint="Send your change again, or await_change."
            )
        if not agent:
            await self._gate.check(caller, params.approver)
        number = parse_seq(params.conflict, parameter="conflict")
        conflict = self._s.state.pending.conflict(number)
        if conflict is None:
            raise VersionUnknown(f"{show(number)} is no conflict", hint="list_conflicts names those that wait.")
        if conflict.state == "open":
            await self._rebaser.go_along(conflict)
            conflict = self._now(number)
        if conflict.state != "open":
            raise ConflictClosed(f"{show(number)} is {conflict.state} already", details={"conflict": show(number)})
        if agent:
            authorize_resolution(self._s, caller, conflict, params.choice)
        if params.choice == "content" and params.content is None:
            raise ParameterInvalid("content", "is required with choice 'content'")
        if params.choice == "review":
            return await self._accepted(caller, conflict, params)
        if params.choice != "content":
            await self._binder.same(conflict, params)
        if params.choice == "current":
            await self._settled(caller, call, conflict, params, change=None)
            return await self._answers.of_conflict(self._now(number))
        try:
            command = msgspec.structs.replace(await self._command(conflict, params), reviews=agent)
        except NotEncodable as error:
            raise not_encodable(error, conflict.found.path) from error
        if agent and command.chosen is not None:
            await self._check(conflict, command.chosen)
        wanted = ChangeRequest(caller=caller, call=call, reason=params.reason, resolves=number, pre_approved=not agent)
        try:
            answer = await self._changer.change(command, wanted)
        except NothingToChange:
            await self._settled(caller, call, conflict, params, change=None)
            return await self._answers.of_conflict(self._now(number))
        except StaleBase as error:
            raise ConflictMoved(conflict, f"{conflict.found.path} has changed meanwhile") from error
        if answer.status == "applied" and answer.change is not None:
            await self._settled(caller, call, conflict, params, change=parse_seq(answer.change))
        return self._pages.revived(conflict, answer)

    async def _accepted(self, caller: Caller, conflict: Conflict, params: p.ResolveConflict) -> r.ChangeAnswer:
        """A person says yes to what a reviewer proposes."""
        if caller.agent_class == "review":
            raise NotPermitted("a person accepts what a reviewer proposes")
        review = self._binder.review(conflict, params)
        if review is None:
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

    async def _command(self, conflict: Conflict, params: p.ResolveConflict) -> Resolve:
        """What was chosen, in place of what it was chosen for."""
        found = conflict.found
        if params.choice == "content":
            content, seen = params.content or "", await self._binder.seen(conflict, params)
            document = await self._answers.document(seen)
            chosen = encode(replace_text(document, content) if document else new_document(content))
            return Resolve(path=found.path, current=seen, chosen=chosen)
        if params.choice == "regions":
            return Resolve(path=found.path, current=found.current, chosen=await self._by_region(conflict, params))
        strict = whole(found, await sides_of(self._s.contents, found))
        chosen_side = await self._proposed(conflict)
        return Resolve(path=found.path, current=found.current, chosen=chosen_side, strict=strict)

    async def _proposed(self, conflict: Conflict) -> bytes | None:
        proposed = conflict.found.proposed
        if proposed is None:
            return None
        merged = await self._answers.proposed(conflict)
        if merged is not None:
            return encode(merged)
        return await self._s.contents.need(proposed, f"what {show(conflict.seq)} proposes")

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
            return await chosen(self._s.effort, sides, choices)
        except GapConflict as error:
            raise ParameterInvalid("choice", "the sides clash elsewhere too; choose one side, or content") from error

    async def _settled(
        self, caller: Caller, call: Call, conflict: Conflict, params: p.ResolveConflict, *, change: Seq | None
    ) -> None:
        choice = params.choice if params.choice in ("current", "proposed") else "content"
        settled = ConflictResolved(
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
        proposed = await self._shown_proposal(conflict) if readable else None
        recorded = await self._s.journal.event(conflict.seq)
        reason = recorded.event.reason if recorded and isinstance(recorded.event, ConflictFound) else ""
        diff, diff_truncated = await self._answers.conflict_diff(conflict) if readable else (None, False)
        review_diff, review_diff_truncated = await self._review_diff(conflict) if readable else (None, False)
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
            diff_truncated=diff_truncated,
            state=conflict.stage,
            fits=conflict.fits,
            same_symbol=found.same_symbol if readable else (),
            proposer=_party(await self._briefer.proposer(conflict)) if readable else None,
            holders=tuple(map(_party, await self._briefer.holders(conflict))) if readable else (),
            reviewer=review.reviewer if review is not None and asked else None,
            deadline=review.deadline if review is not None and review.state == "requested" else None,
            route=route.name if route is not None else None,
            reviews=await self._reviews(conflict, shown=readable),
            review_diff=review_diff,
            review_diff_truncated=review_diff_truncated,
            marked=await self._marked(sides) if sides is not None and sides.regions else None,
            moved_from=conflict.moved[-1].path if conflict.moved else None,
            moved_at=show(at) if conflict.moved and (at := conflict.moved[-1].at) is not None else None,
            deleted_at=await self._pages.deleted_at(conflict),
        )

    async def _marked(self, sides: Sides) -> str | None:
        """The file with markers; not where that takes too long."""
        if not sides.large:
            return sides.marked()
        try:
            return await self._s.effort.run(sides.marked)
        except TextTooCostly:
            return None

    async def _reviews(self, conflict: Conflict, *, shown: bool) -> tuple[r.ReviewLine, ...]:
        """Who was asked; what they say may quote the file."""
        lines = []
        for review in conflict.reviews:
            said = await self._proposals.answer(conflict, review) if review.verdict is not None else None
            failed = await self._proposals.failure(review) if review.state == "failed" else None
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
                    message=failed.message if failed is not None and shown else "",
                    hint=failed.hint if failed is not None else "",
                )
            )
        return tuple(lines)

    async def _shown_proposal(self, conflict: Conflict) -> Document | None:
        try:
            return await self._answers.proposed(conflict)
        except TextTooCostly:
            return None

    async def _review_diff(self, conflict: Conflict) -> tuple[str | None, bool]:
        """What accepting the reviewer's proposal would change."""
        review = conflict.review
        if review is None or review.state != "answered" or review.proposal is None:
            return None, False
        current, proposed = await text(self._s.contents, review.current), await text(self._s.contents, review.proposal)
        if current is None or proposed is None:
            return None, False
        return await self._answers.diffs.between(conflict.found.path, current, proposed)


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
