"""The review queue: conflicts follow their files, go to reviewers by policy, and their answers come in.

One task looks at every open conflict whenever something moved or a deadline is due, and takes the next
step that its state in the journal asks for. So a restart needs no memory of what was under way.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final

import anyio
import anyio.abc

from orchestrator.core.conflicts.resolution import ProposalUnfit, ignored_as, next_reviewer, route_for
from orchestrator.core.content import digest_of
from orchestrator.core.errors import CallerError, OrchestratorError, escaped
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.conflicts import (
    ConflictExpired,
    ReviewAnswered,
    ReviewFailed,
    ReviewRejected,
    ReviewRequested,
    ReviewUsage,
)
from orchestrator.core.ids import Seq, show
from orchestrator.core.policy.rules import Route
from orchestrator.core.projections.pending import Conflict, Review
from orchestrator.engine.conflicts.conflict_views import ConflictViews
from orchestrator.engine.conflicts.open_conflicts import Rebaser
from orchestrator.engine.conflicts.proposals import Proposals, reviewer_caller
from orchestrator.engine.services import Services
from orchestrator.logs import logger
from orchestrator.ports.journal import AppendBatch, NewEvent
from orchestrator.ports.reviewers import Reviewer, ReviewFailure, ReviewReply

Work = Callable[[], Coroutine[Any, Any, int | None]]

PATIENCE = 2
"""A reviewer that is past its deadline may go on for as long again: a late answer is recorded, and ignored."""

MOST_MESSAGE = 2000
"""Characters of a reviewer's words that are kept."""

NOT_APPLIED: Final = (
    "Nothing is applied. A reviewer that did nothing wrong is asked once more, else the next of the route; after the "
    "last, a person decides."
)


class Reviewing:
    """Puts conflicts before reviewers."""

    def __init__(
        self,
        services: Services,
        rebaser: Rebaser,
        proposals: Proposals,
        views: ConflictViews,
        reviewers: Mapping[str, Reviewer],
    ) -> None:
        self._s, self._rebaser, self._proposals, self._views = services, rebaser, proposals, views
        self._reviewers = reviewers
        self._tasks: anyio.abc.TaskGroup | None = None
        self._weighed: set[Seq] = set()  # answers that were checked since the start
        self._log = logger("reviews")

    async def resume(self) -> None:
        """Who was asked when the last daemon ended answers nobody now."""
        for conflict in self._s.state.pending.open_conflicts():
            review = conflict.review
            if review is not None and review.state == "requested":
                await self._fail(
                    conflict,
                    _failed(conflict, review, "daemon_restarted", "the daemon ended while this was under review"),
                )

    async def run(self) -> None:
        """Until cancelled."""
        async with anyio.create_task_group() as self._tasks:
            while True:
                moved = self._s.state_changes.next()
                due = await self.look()
                await self._s.state_changes.until(moved, due)

    async def look(self) -> int | None:
        """Take the next step of every open conflict; the ms at which the next deadline is due."""
        dues = []
        for conflict in self._s.state.pending.open_conflicts():
            due = await self._fenced(conflict.seq, None, partial(self._step, conflict.seq))
            if due is not None:
                dues.append(due)
        return min(dues, default=None)

    async def _step(self, seq: Seq) -> int | None:
        conflict = self._s.state.pending.open_conflict(seq)
        if conflict is None or (conflict := await self._rebaser.follow(conflict)) is None:
            return None
        after_s = self._s.permissions.policy.conflicts.expire_after_s
        expires = conflict.at + after_s * 1000 if after_s else None
        if expires is not None and expires <= self._s.clock.now_ms():
            event = ConflictExpired(conflict=seq, cause="timeout", message="nobody resolved it in time")
            await self._s.notes.append(Origin(cause=seq), (conflict.stream, event))
            return None
        due = await self._review(conflict) if not conflict.fits else None
        return min(filter(None, (due, expires)), default=None)

    def _asked_a_person(self, conflict: Conflict) -> bool:
        return any(item.request.provenance.resolves == conflict.seq for item in self._s.state.pending.waiting())

    # --- asking -----------------------------------------------------------------------

    async def _review(self, conflict: Conflict) -> int | None:
        review = conflict.review
        if review is not None and review.state == "requested":
            if review.deadline > self._s.clock.now_ms():
                return review.deadline
            await self._fail(conflict, _failed(conflict, review, "reviewer_timeout", "no answer before the deadline"))
            return None  # what was appended wakes the duty again
        route = route_for(conflict, self._s.permissions.policy, self._s.state.identities)
        if route is None:
            return None
        if review is not None and review.state == "answered":
            if review.seq not in self._weighed and not self._asked_a_person(conflict):
                self._weighed.add(review.seq)
                self._spawn(conflict, review.seq, partial(self._weigh, conflict.seq, review.seq))
            return None
        reviewer = next_reviewer(route, conflict.reviews)
        if reviewer is not None:
            await self._ask(conflict, route, reviewer)
        return None

    async def _ask(self, conflict: Conflict, route: Route, reviewer: str) -> None:
        deadline = self._s.clock.now_ms() + route.deadline_s * 1000
        known, question = self._reviewers.get(reviewer), await self._views.context.request(conflict)
        event = ReviewRequested(
            conflict=conflict.seq,
            reviewer=reviewer,
            route=route.name,
            deadline=deadline,
            asked=known.asked(question) if known is not None and question is not None else ReviewUsage(),
        )
        (recorded,) = await self._s.notes.append(Origin(cause=conflict.seq), (conflict.stream, event))
        self._spawn(conflict, recorded.seq, partial(self._call, conflict.seq, recorded.seq, route.deadline_s))

    def _spawn(self, conflict: Conflict, number: Seq, work: Work) -> None:
        if self._tasks is None:
            raise RuntimeError("reviews are not running")
        self._tasks.start_soon(self._fenced, conflict.seq, number, work)

    async def _fenced(self, seq: Seq, number: Seq | None, work: Work) -> int | None:
        """Run work on one conflict; what it raises ends the review of this number, and nothing else."""
        try:
            return await work()
        except Exception as error:  # noqa: BLE001
            # The one place where anything is caught: what a program answers is read in
            # these tasks, and a defect in that must cost this review and not the daemon. Logged, never hidden.
            ended = ["requested", "answered"]
            if not isinstance(error, OrchestratorError):
                self._log.error("a review failed unforeseen", conflict=show(seq), trace=_trace_of(error))
            elif not isinstance(error, ProposalUnfit):
                self._log.info("a review ended", conflict=show(seq), code=error.code)
                ended.remove("answered")
            found = self._find(seq, number)
            if found is not None and found[1].state in ended:
                try:
                    await self._fail(found[0], _failed(found[0], found[1], *_failure_of(error)))
                except OrchestratorError as again:
                    self._log.error("a failed review was not recorded", conflict=show(seq), error=again.message)
        return None

    async def _call(self, seq: Seq, number: Seq, deadline_s: int) -> None:
        """Ask one reviewer, and take its answer. Raises ProposalUnfit, and as the reviewer does."""
        if (found := self._find(seq, number)) is None:
            return
        conflict, review = found
        reviewer, caller = self._reviewers.get(review.reviewer), reviewer_caller(review.reviewer)
        if reviewer is None:
            raise ProposalUnfit("unknown_reviewer", f"no reviewer is called {review.reviewer}")
        if not all(self._s.permissions.readable(caller, path) for path in (conflict.found.path, *conflict.found.names)):
            raise ProposalUnfit("denied", "policy does not let a reviewer read the file")
        request = await self._views.context.request(conflict)
        if request is None:
            raise ProposalUnfit("not_text", "there are no lines that a reviewer could choose")
        with anyio.move_on_after(deadline_s * PATIENCE):
            await self.answered(seq, number, await reviewer.review(request))

    # --- answers ----------------------------------------------------------------------

    async def answered(self, seq: Seq, number: Seq, reply: ReviewReply) -> None:
        """Take an answer in; one that is late, double, or to no question of ours is noted and ignored."""
        conflict = self._s.state.pending.conflict(seq)
        if conflict is None:
            return
        review = next((item for item in conflict.reviews if item.seq == number), None)
        ignored = ignored_as(conflict, review)
        data: bytes | None = None
        unfit: ProposalUnfit | None = None
        if not ignored:
            try:
                data = await self._proposals.assembled(conflict, reply)
            except ProposalUnfit as error:
                unfit = error
            conflict = self._s.state.pending.conflict(seq) or conflict
            review = next((item for item in conflict.reviews if item.seq == number), None)
            ignored = ignored_as(conflict, review)
        name = review.reviewer if review is not None else ""
        answer = ReviewAnswered(
            review=number,
            conflict=seq,
            reviewer=name,
            verdict=reply.verdict,
            proposal=digest_of(data) if data is not None else None,
            current=conflict.found.sides.current,
            usage=reply.usage,
            reason=escaped(reply.reason[:MOST_MESSAGE])[:MOST_MESSAGE],
            ignored=ignored,
        )
        blobs = ((answer.proposal, data),) if answer.proposal is not None and data is not None else ()
        events: list[Event] = [answer]
        if not ignored and unfit is not None and review is not None:
            events.append(_failed(conflict, review, *_failure_of(unfit)))
        elif not ignored and reply.verdict == "reject":
            events.append(ReviewRejected(review=number, conflict=seq, by=name, reason=answer.reason))
        origin = Origin(agent=reviewer_caller(name).agent, cause=number)
        await self._s.journal.append(AppendBatch(tuple(NewEvent(conflict.stream, e) for e in events), origin, blobs))

    async def _weigh(self, seq: Seq, number: Seq) -> None:
        """Check an answer; then it counts by policy, or waits for a person. Raises ProposalUnfit."""
        found = self._find(seq, number)
        if found is None or (proposal := found[1].proposal) is None:
            return
        conflict, review = found
        try:
            data = await self._s.contents.need_bytes(proposal, f"what {review.reviewer} proposes")
            await self._proposals.check(conflict, data)
            found = self._find(seq, number)
            if found is None or found[1].state != "answered":
                return
            route = route_for(found[0], self._s.permissions.policy, self._s.state.identities)
            if route is not None and route.accept == "auto" and self._proposals.automatic(found[0]):
                await self._proposals.accept(*found, by="policy", pre_approved=False)
        except CallerError as error:  # the file moved on, or is reserved: checked again then
            self._log.info("a proposal waits", conflict=show(seq), error=error.message)
            if error.code == "stale_base":
                self._weighed.discard(number)

    def _find(self, seq: Seq, number: Seq | None) -> tuple[Conflict, Review] | None:
        """A conflict that is open, with the review of this number."""
        conflict = self._s.state.pending.open_conflict(seq)
        return next(((conflict, item) for item in conflict.reviews if item.seq == number), None) if conflict else None

    async def _fail(self, conflict: Conflict, failed: ReviewFailed) -> None:
        await self._s.notes.append(Origin(cause=failed.review), (conflict.stream, failed))


def _failed(
    conflict: Conflict, review: Review, code: str, message: str, hint: str = "", usage: ReviewUsage | None = None
) -> ReviewFailed:
    return ReviewFailed(
        review=review.seq,
        conflict=conflict.seq,
        code=code,
        message=escaped(message[:MOST_MESSAGE])[:MOST_MESSAGE],
        hint=hint or NOT_APPLIED,
        usage=usage or review.asked,
    )


def _failure_of(error: Exception) -> tuple[str, str, str, ReviewUsage | None]:
    """Code, message and hint of what ended a review, and what it took all the same.

    Of an unforeseen error only the kind is reported: its words may hold content, or a key.
    """
    if isinstance(error, OrchestratorError):
        return error.code, error.message, error.hint, error.usage if isinstance(error, ReviewFailure) else None
    return ReviewFailure.code, f"an unforeseen {type(error).__name__} ended it", ReviewFailure.hint, None


def _trace_of(error: BaseException) -> str:
    """Where it was raised, for the log: places and kinds, without the words."""
    return f"{''.join(traceback.format_tb(error.__traceback__))}{type(error).__qualname__}"
