"""What reviewers and people choose for a conflict: made into a whole file, checked, and carried out as a change."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Literal

import msgspec

from orchestrator.api.conflicts import RESOLVE_CONFLICT, ResolveConflict
from orchestrator.api.results import ChangeAnswer
from orchestrator.core.conflicts.resolution import ConflictClosed, ProposalUnfit, check_lines, choices_of
from orchestrator.core.conflicts.sides import GapConflict
from orchestrator.core.content import digest_of
from orchestrator.core.decisions.commands import Resolve
from orchestrator.core.errors import NothingToChange
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.conflicts import ConflictResolved, ReviewAccepted, ReviewRejected
from orchestrator.core.ids import AgentName, SessionId, show
from orchestrator.core.policy.rules import Allow
from orchestrator.core.positions import parse_seq
from orchestrator.core.projections.pending import Conflict, Review
from orchestrator.core.text.encoding import NotEncodable, decode, encode
from orchestrator.core.text.merge import LineMerge, Merged
from orchestrator.engine.caller import REVIEWER, Call, Caller, ChangeRequest
from orchestrator.engine.changes.diffs import Shows
from orchestrator.engine.changes.pipeline import ChangePipeline
from orchestrator.engine.conflicts.open_conflicts import answer_of, side, sides_of
from orchestrator.engine.services import Services
from orchestrator.ports.reviewers import Checker, ReviewReply

Choice = Literal["current", "proposed", "content"]


class Proposals:
    """Checks what reviewers propose, and carries out what is chosen."""

    def __init__(self, services: Services, pipeline: ChangePipeline, checker: Checker) -> None:
        self._s, self._pipeline, self._checker = services, pipeline, checker

    async def assembled(self, conflict: Conflict, reply: ReviewReply) -> bytes | None:
        """The whole file as a reply would have it; None for one that rejects. Raises ProposalUnfit."""
        if reply.verdict == "reject":
            return None
        sides = await sides_of(self._s.contents, conflict.found.sides)
        if sides is None:
            raise ProposalUnfit("not_text", "one side of the conflict is no text")
        choices = choices_of(reply.verdict, {item.region: item.lines for item in reply.regions}, sides)
        try:
            return await self._s.contents.computed(partial(sides.chosen, choices), *sides)
        except GapConflict as error:
            raise ProposalUnfit("conflict_moved", "the sides conflict elsewhere by now") from error
        except NotEncodable as error:
            raise ProposalUnfit("not_encodable", str(error)) from error

    async def check(self, conflict: Conflict, data: bytes) -> None:
        """Whether a whole file may count as an answer: its place, its text, its syntax, the check command.

        It touches the conflict's regions only; no markers are left; it parses, if what the file holds
        does; and the policy's check passes. Raises ProposalUnfit.
        """
        sides = await sides_of(self._s.contents, conflict.found.sides)
        document = decode(data)
        if sides is None or document is None:
            raise ProposalUnfit("not_text", "the proposal, or a side of the conflict, is no text")
        try:
            between = await self._s.contents.computed(sides.gaps, *sides)
        except GapConflict as error:
            raise ProposalUnfit("conflict_moved", "the sides conflict elsewhere by now") from error
        check_lines(sides, between, document)
        await self._check_syntax(conflict, data)
        await self._run_checks(conflict, data)

    async def _check_syntax(self, conflict: Conflict, data: bytes) -> None:
        """No new syntax errors. Raises ProposalUnfit."""
        path, current = conflict.found.path, conflict.found.sides.current
        held = await self._s.contents.get(current) if current is not None else None
        if held is None or current is None:
            return
        before = await self._s.parser.outline(path, current, held, compiled=True)
        after = await self._s.parser.outline(path, digest_of(data), data, compiled=True)
        if before and after and before.parsed and after.parsed and after.errors > before.errors:
            raise ProposalUnfit("does_not_parse", f"{after.errors - before.errors} new syntax errors")

    async def _run_checks(self, conflict: Conflict, data: bytes) -> None:
        """The check command of the policy. Raises ProposalUnfit."""
        checks = self._s.permissions.policy.checks
        if not checks.command:
            return
        author = self._s.permissions.author(conflict.agent, conflict.session)  # what it may not read is not shown
        files = (path for path in self._s.state.registry.paths() if path != conflict.found.path)
        readable = [path for path in files if self._s.permissions.readable(author, path)]
        report = await self._checker.check(checks, conflict.found.path, data, readable)
        if not report.passed:
            raise ProposalUnfit("check_failed", report.message)

    # --- carrying out -----------------------------------------------------------------

    async def resolve(
        self,
        conflict: Conflict,
        command: Resolve | None,
        wanted: ChangeRequest,
        *,
        choice: Choice,
        by: str,
        origin: Origin,
        accepted: Review | None = None,
        accepted_because: str = "",
    ) -> ChangeAnswer:
        """Apply what was chosen, and close the conflict once that is on disk, or where nothing is to be changed.

        `accepted`: the review whose proposal it is, and why; another one's is rejected with it. Raises CallerError.
        """
        answer: ChangeAnswer | None = None
        if command is not None:
            with suppress(NothingToChange):
                answer = await self._pipeline.change(command, wanted)
        if answer is not None and answer.status != "applied":
            return answer
        change = parse_seq(answer.change) if answer is not None and answer.change is not None else None
        seq, reason, review = conflict.seq, wanted.reason, conflict.review
        events: list[Event] = [ConflictResolved(conflict=seq, choice=choice, by=by, change=change, reason=reason)]
        if accepted is not None:
            yes = ReviewAccepted(review=accepted.seq, conflict=seq, by=by, change=change, reason=accepted_because)
            events.insert(0, yes)
        elif review is not None and review.state == "answered":
            events.insert(0, ReviewRejected(review=review.seq, conflict=seq, by=by, reason=reason))
        closing = [(conflict.stream, event) for event in events]
        if answer is not None:
            await self._s.notes.append(origin, *closing)
            return answer
        async with self._s.locks.alone((conflict.found.path,)):  # others may close it, too
            if self._s.state.pending.open_conflict(seq) is None:
                raise ConflictClosed(self._s.state.pending.conflict(seq) or conflict)
            await self._s.notes.append(origin, *closing)
        decided = Shows(self._s.redaction, wanted.caller, lambda _: True)  # it was shown to who decided on it
        return await self._pipeline.answers.of(seq, decided)

    async def accept(
        self, conflict: Conflict, review: Review, *, by: str, pre_approved: bool, because: str = ""
    ) -> ChangeAnswer:
        """Carry a proposal out, as the reviewer's change.

        `pre_approved`: a person says yes, so that what policy would ask about is answered. Raises CallerError,
        ProposalUnfit.
        """
        data = await self._onto_present(conflict, review)
        answer = await answer_of(self._s.notes, review)
        choice: Choice = review.verdict if review.verdict in ("current", "proposed") else "content"
        params = ResolveConflict(conflict=show(conflict.seq), choice=choice, reason=f"review {show(review.seq)}")
        wanted = ChangeRequest(
            caller=reviewer_caller(review.reviewer),
            call=Call(operation=RESOLVE_CONFLICT, params=params),
            reason=answer.reason if answer is not None else "",
            resolves=conflict.seq,
            pre_approved=pre_approved,
            accepted_by=by if pre_approved else None,
        )
        return await self.resolve(
            conflict,
            Resolve(path=conflict.found.path, current=conflict.found.sides.current, chosen=data, strict=True),
            wanted,
            choice=choice,
            by=by,
            origin=msgspec.structs.replace(wanted.caller.origin(), cause=review.seq),
            accepted=review,
            accepted_because=because,
        )

    def automatic(self, conflict: Conflict) -> bool:
        """Whether the agent itself might change the path without asking; else, or to revive it, a person accepts."""
        if conflict.gone:
            return False
        author = self._s.permissions.author(conflict.agent, conflict.session)
        verdict = self._s.permissions.verdict(author, "write", conflict.found.path, on_disk=True)
        return isinstance(verdict, Allow)

    async def _onto_present(self, conflict: Conflict, review: Review) -> bytes:
        """The proposal on what the file holds now: other places may have changed since. Raises ProposalUnfit."""
        current = conflict.found.sides.current
        if review.proposal is None:
            raise ProposalUnfit("review_reply_invalid", f"{review.reviewer} proposes nothing")
        data = await self._s.contents.need_bytes(review.proposal, f"what {review.reviewer} proposes")
        if review.current == current:
            return data
        old, now = await side(self._s.contents, review.current), await side(self._s.contents, current)
        new, sides = decode(data), await sides_of(self._s.contents, conflict.found.sides)
        if old and now and new and sides:
            work = LineMerge(old.lines, now.lines, new.lines).merged
            merged = await self._s.contents.computed(work, old, now, new)
            if isinstance(merged, Merged):
                data = encode(sides.current_with(merged.lines))
                await self.check(conflict, data)
                return data
        raise ProposalUnfit("conflict_moved", "the file has changed where the proposal wants to go")


def reviewer_caller(name: str) -> Caller:
    """Whose changes those of a reviewer are."""
    return Caller(
        agent=AgentName(REVIEWER + name),
        agent_class="review",
        session=SessionId(f"review-{name}"),
        transport="daemon",
    )
