"""The conflict queue at work: conflicts follow their files, go to reviewers by policy, and their answers come in.

One duty looks at every open conflict whenever something moved or a deadline is due, and takes the next
step that its state in the journal asks for. So a restart needs no memory of what was under way.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

import anyio
import anyio.abc

from orchestrator.core.conflicts.route import Asking, Matter, lines_of, next_reviewer, route_of
from orchestrator.core.errors import CallerError, OrchestratorError
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.reviews import (
    ConflictExpired,
    ReviewRejected,
    ReviewRequested,
)
from orchestrator.core.ids import Digest, Seq, show
from orchestrator.core.policy.routes import Route
from orchestrator.core.projections.pending import Conflict
from orchestrator.core.projections.reviews import Review
from orchestrator.engine.conflicts import review_replies
from orchestrator.engine.conflicts.proposals import Proposals, ProposalUnfit, proposal_of, reviewer_caller
from orchestrator.engine.conflicts.rebase import Rebaser
from orchestrator.engine.conflicts.review_context import ReviewContext
from orchestrator.engine.services import Services
from orchestrator.logs import logger
from orchestrator.ports.journal import NewEvent, Unit
from orchestrator.ports.reviewers import Reviewer, ReviewReply

LOOK_S = 60.0
"""How often, at least, deadlines are looked at: the wall clock may jump."""

Work = Callable[[], Coroutine[Any, Any, int | None]]

PATIENCE = 2
"""A reviewer that is past its deadline is let go on for as long again: a late answer is noted, and ignored."""


class Reviewing:
    """Puts conflicts before reviewers."""

    def __init__(
        self,
        services: Services,
        rebaser: Rebaser,
        proposals: Proposals,
        briefer: ReviewContext,
        reviewers: Mapping[str, Reviewer],
    ) -> None:
        self._s, self._rebaser, self._proposals, self._briefer = services, rebaser, proposals, briefer
        self._reviewers = reviewers
        self._tasks: anyio.abc.TaskGroup | None = None
        self._weighed: set[Seq] = set()  # answers that were checked since the start
        self._tried: dict[Seq, Digest | None] = {}  # the content for which a conflict that fits was not applied
        self._log = logger("reviews")

    async def resume(self) -> None:
        """Who was asked when the last daemon ended answers nobody now."""
        for conflict in self._s.state.pending.open_conflicts():
            review = conflict.review
            if review is not None and review.state == "requested":
                await self._fail(conflict, review, "daemon_restarted", "the daemon ended while this was under review")

    async def run(self) -> None:
        """Until cancelled."""
        async with anyio.create_task_group() as self._tasks:
            while True:
                moved = self._s.next_move()
                due = await self.look()
                wait_s = LOOK_S
                if due is not None:
                    wait_s = min(wait_s, max(0.0, (due - self._s.clock.now_ms()) / 1000))
                with anyio.move_on_after(wait_s):
                    await moved.wait()

    async def look(self) -> int | None:
        """Take the next step of every open conflict; the ms at which the next deadline is due."""
        dues = []
        for conflict in self._s.state.pending.open_conflicts():
            due = await self._fenced(conflict.seq, None, partial(self._step, conflict.seq))
            if due is not None:
                dues.append(due)
        return min(dues, default=None)

    async def _step(self, seq: Seq) -> int | None:
        conflict = self._s.state.pending.conflict(seq)
        if conflict is None or conflict.state != "open":
            return None
        await self._rebaser.follow(conflict)
        conflict = self._s.state.pending.conflict(seq)
        if conflict is None or conflict.state != "open":
            return None
        now, lapses = self._s.clock.now_ms(), self._lapses_at(conflict)
        if lapses is not None and lapses <= now:
            await self._expire_due(conflict)
            return None
        if conflict.fits:
            await self._fit(conflict)
            return lapses
        due = await self._review(conflict)
        return min(filter(None, (due, lapses)), default=None)

    def _lapses_at(self, conflict: Conflict) -> int | None:
        after_s = self._s.policy.conflicts.expire_after_s
        return conflict.at + after_s * 1000 if after_s else None

    async def _expire_due(self, conflict: Conflict) -> None:
        event = ConflictExpired(conflict=conflict.seq, cause="expired", message="nobody settled it in time")
        await self._s.append(Origin(cause=conflict.seq), (_stream(conflict), event))

    async def _fit(self, conflict: Conflict) -> None:
        """What clashes with nothing any more is applied, where policy wants that: once for each content."""
        if self._s.policy.conflicts.when_it_fits != "apply" or conflict.found.reverts:
            return
        if self._tried.get(conflict.seq, ()) == conflict.found.current or self._asked_a_person(conflict):
            return
        self._tried[conflict.seq] = conflict.found.current
        try:
            await self._proposals.fit(conflict)
        except CallerError as error:
            self._log.info("a change that fits again waits", conflict=show(conflict.seq), error=error.message)

    def _asked_a_person(self, conflict: Conflict) -> bool:
        return any(item.request.settles == conflict.seq for item in self._s.state.pending.waiting())

    # --- asking -----------------------------------------------------------------------

    def route(self, conflict: Conflict) -> Route | None:
        """The route that a conflict takes by the present policy; None: a person settles it."""
        agent = self._s.state.identities.get(conflict.agent) if conflict.agent is not None else None
        matter = Matter(
            path=conflict.found.path,
            agent=conflict.agent,
            agent_class=agent.agent_class if agent else None,
            lines=lines_of(conflict.found.regions),
            same_symbol=bool(conflict.found.same_symbol),
        )
        return route_of(self._s.policy.routes, matter)

    async def _review(self, conflict: Conflict) -> int | None:
        review = conflict.review
        if review is not None and review.state == "requested":
            if review.deadline > self._s.clock.now_ms():
                return review.deadline
            await self._fail(conflict, review, "reviewer_timeout", "no answer before the deadline")
            return None  # what was appended wakes the duty again
        route = self.route(conflict)
        if route is None:
            return None
        if review is not None and review.state == "answered":
            if review.seq not in self._weighed and not self._asked_a_person(conflict):
                self._weighed.add(review.seq)
                self._spawn(conflict, review.seq, partial(self._weigh, conflict.seq, review.seq))
            return None
        asking = next_reviewer(route, conflict.reviews)
        if asking is not None:
            await self._ask(conflict, route, asking)
        return None

    async def _ask(self, conflict: Conflict, route: Route, asking: Asking) -> None:
        deadline = self._s.clock.now_ms() + route.deadline_s * 1000
        event = ReviewRequested(
            conflict=conflict.seq,
            reviewer=asking.reviewer,
            route=route.name,
            place=asking.place,
            attempt=asking.attempt,
            deadline=deadline,
            current=conflict.found.current,
        )
        recorded = await self._s.append(Origin(cause=conflict.seq), (_stream(conflict), event))
        number = recorded[0].seq
        self._spawn(conflict, number, partial(self._call, conflict.seq, number, route.deadline_s))

    def _spawn(self, conflict: Conflict, number: Seq, work: Work) -> None:
        if self._tasks is None:
            raise RuntimeError("reviews are not running")
        self._tasks.start_soon(self._fenced, conflict.seq, number, work)

    async def _fenced(self, seq: Seq, number: Seq | None, work: Work) -> int | None:
        """One conflict's trouble is not the others', nor the daemon's."""
        try:
            return await work()
        except OrchestratorError as error:
            self._log.error("a review could not be noted", conflict=show(seq), error=error.message)
            await self._give_up(seq, number, error, of=("requested",))
        except Exception as error:  # noqa: BLE001
            # The one place where anything is caught: what a service, a program or a plugin says is read in
            # these tasks, and a defect in that must cost this review and not the daemon. Logged, never hidden.
            self._log.error("a review failed unforeseen", conflict=show(seq), trace=review_replies.trace_of(error))
            await self._give_up(seq, number, error, of=("requested", "answered"))
        return None

    async def _give_up(self, seq: Seq, number: Seq | None, error: Exception, *, of: tuple[str, ...]) -> None:
        """A review that ended without a word fails, so that the next reviewer is asked."""
        conflict, review = self._find(seq, number) if number is not None else (None, None)
        if conflict is None or review is None or review.state not in of:
            return
        try:
            await self._fail(conflict, review, *review_replies.failure_of(error))
        except OrchestratorError as again:
            self._log.error("a failed review could not be noted", conflict=show(seq), error=again.message)

    async def _call(self, seq: Seq, number: Seq, deadline_s: int) -> None:
        """Ask one reviewer, and take its answer."""
        conflict, review = self._find(seq, number)
        if conflict is None or review is None:
            return
        reviewer = self._reviewers.get(review.reviewer)
        caller = reviewer_caller(review.reviewer)
        if reviewer is None:
            await self._fail(conflict, review, "unknown_reviewer", f"no reviewer is called {review.reviewer}")
            return
        if not all(self._s.readable(caller, path) for path in (conflict.found.path, *conflict.found.names)):
            await self._fail(conflict, review, "denied", "policy does not let a reviewer read the file")
            return
        brief = await self._briefer.brief(conflict)
        if brief is None:
            await self._fail(conflict, review, "not_text", "there are no lines that a reviewer could choose")
            return
        with anyio.move_on_after(deadline_s * PATIENCE):
            try:
                reply = await reviewer.review(brief)
            except OrchestratorError as error:
                if self._find(seq, number)[1] == review:
                    await self._fail(conflict, review, *review_replies.failure_of(error))
                return
            await self.answered(seq, number, reply)

    # --- answers ----------------------------------------------------------------------

    async def answered(self, seq: Seq, number: Seq, reply: ReviewReply) -> None:
        """Take an answer in; one that is late, double, or to no question of ours is noted and ignored."""
        conflict = self._s.state.pending.conflict(seq)
        if conflict is None:
            return
        review = next((item for item in conflict.reviews if item.seq == number), None)
        ignored = review_replies.ignored_as(conflict, review)
        data: bytes | None = None
        unfit: ProposalUnfit | None = None
        if not ignored:
            try:
                data = await self._proposals.assembled(conflict, reply)
            except ProposalUnfit as error:
                unfit = error
            ignored = review_replies.ignored_as(*self._find(seq, number))
        digest, blobs = proposal_of(data)
        asked = review.reviewer if review is not None else ""
        said = review_replies.answered(conflict, number, asked, reply, digest, ignored)
        events: list[Event] = [said]
        if not ignored and unfit is not None and review is not None:
            events.append(review_replies.failed(conflict, review, *review_replies.failure_of(unfit)))
        elif not ignored and reply.verdict == "reject":
            events.append(ReviewRejected(review=number, conflict=seq, by=said.reviewer, reason=said.reason))
        origin = Origin(agent=reviewer_caller(said.reviewer).agent, cause=number)
        await self._s.journal.append(Unit(tuple(NewEvent(_stream(conflict), e) for e in events), origin, blobs))

    async def _weigh(self, seq: Seq, number: Seq) -> None:
        """Check an answer; then it counts by policy, or waits for a person."""
        conflict, review = self._find(seq, number)
        if conflict is None or review is None or review.proposal is None:
            return
        try:
            data = await self._s.contents.need(review.proposal, f"what {review.reviewer} proposes")
            await self._proposals.checked(conflict, data)
            conflict, review = self._find(seq, number)
            if conflict is None or review is None or review.state != "answered":
                return
            route = self.route(conflict)
            if route is not None and route.accept == "auto" and self._proposals.automatic(conflict):
                await self._proposals.accept(conflict, review, by="policy", vouched=False)
        except ProposalUnfit as error:
            conflict, review = self._find(seq, number)
            if conflict is not None and review is not None and review.state == "answered":
                await self._fail(conflict, review, *review_replies.failure_of(error))
        except CallerError as error:  # the file moved on, or is reserved: looked at again when it stands
            self._log.info("a proposal waits", conflict=show(seq), error=error.message)
            if error.code == "stale_base":
                self._weighed.discard(number)

    def _find(self, seq: Seq, number: Seq) -> tuple[Conflict | None, Review | None]:
        """A conflict that is open, and the review of this number."""
        conflict = self._s.state.pending.conflict(seq)
        if conflict is None or conflict.state != "open":
            return None, None
        return conflict, next((item for item in conflict.reviews if item.seq == number), None)

    async def _fail(self, conflict: Conflict, review: Review, code: str, message: str, hint: str = "") -> None:
        event = review_replies.failed(conflict, review, code, message, hint)
        await self._s.append(Origin(cause=review.seq), (_stream(conflict), event))


def _stream(conflict: Conflict) -> str:
    return f"conflict:{conflict.found.path}"
