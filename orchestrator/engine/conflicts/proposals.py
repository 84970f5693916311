"""What a reviewer proposes: made into a whole file, checked, and carried out like any other change."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Literal

import msgspec

from orchestrator.api.operations import RESOLVE_CONFLICT
from orchestrator.api.parameters import ResolveConflict
from orchestrator.api.results import ChangeAnswer
from orchestrator.core.conflicts.rebase import GapConflict, Side, within
from orchestrator.core.content import digest_of
from orchestrator.core.decisions.commands import Resolve
from orchestrator.core.decisions.costs import large
from orchestrator.core.errors import NothingToChange, OrchestratorError
from orchestrator.core.events.base import Event
from orchestrator.core.events.catalog import tag_of
from orchestrator.core.events.conflicts import ConflictResolved
from orchestrator.core.events.reviews import ReviewAccepted, ReviewAnswered, ReviewFailed
from orchestrator.core.ids import AgentName, Digest, SessionId, WorkspacePath, parse_seq, show
from orchestrator.core.policy.rules import Allow
from orchestrator.core.projections.pending import Conflict
from orchestrator.core.projections.reviews import Review
from orchestrator.core.text.encoding import Document, NotEncodable, decode, encode
from orchestrator.core.text.merge import ConflictingRegion, Merged, merge3
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.changes.change_request import ChangeRequest
from orchestrator.engine.changes.pipeline import ChangePipeline
from orchestrator.engine.conflicts.sides import chosen, sides_of, text
from orchestrator.engine.services import Services
from orchestrator.ports.checks import Checker
from orchestrator.ports.journal import EventFilter
from orchestrator.ports.reviewers import ReviewReply

_MARKER = re.compile(r"(<{7}|\|{7}|>{7})( |\Z)")


class ProposalUnfit(OrchestratorError):
    """What a reviewer gave is not to be applied; `code` says in which way."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code  # type: ignore[misc]  # one class for all the ways


class Proposals:
    """Weighs what reviewers propose, and carries out what is accepted."""

    def __init__(self, services: Services, changer: ChangePipeline, checker: Checker | None) -> None:
        self._s, self._changer, self._checker = services, changer, checker

    async def assembled(self, conflict: Conflict, reply: ReviewReply) -> bytes | None:
        """The whole file as a reply would have it; None for one that rejects. Raises ProposalUnfit."""
        if reply.verdict == "reject":
            return None
        sides = await sides_of(self._s.contents, conflict.found)
        if sides is None:
            raise ProposalUnfit("not_text", "one side of the conflict is no text")
        choices: dict[int, Side | tuple[str, ...]]
        if reply.verdict == "content":
            choices = {item.region - 1: item.lines for item in reply.regions}
            unknown = sorted(number + 1 for number in choices if number not in range(len(sides.regions)))
            if unknown or not choices:
                raise ProposalUnfit(
                    "review_reply_invalid", f"the conflict has no region {unknown}: 1 to {len(sides.regions)}"
                )
            if any("\n" in line or "\r" in line for item in reply.regions for line in item.lines):
                raise ProposalUnfit("review_reply_invalid", "a line holds a line end")
        else:
            choices = sides.all_of(reply.verdict)
        try:
            return await chosen(self._s.effort, sides, choices)
        except GapConflict as error:
            raise ProposalUnfit("conflict_moved", "the sides clash elsewhere by now") from error
        except NotEncodable as error:
            raise ProposalUnfit("not_encodable", str(error)) from error

    async def checked(self, conflict: Conflict, data: bytes) -> None:
        """Whether a whole file may count as an answer: its place, its text, its syntax, the check command.

        It touches the conflict's regions only; no markers are left; it parses, if what the file holds
        does; and the policy's check passes. Raises ProposalUnfit.
        """
        sides = await sides_of(self._s.contents, conflict.found)
        document = decode(data)
        if sides is None or document is None:
            raise ProposalUnfit("not_text", "the proposal, or a side of the conflict, is no text")
        try:
            between = await self._s.effort.run(sides.gaps) if sides.large else sides.gaps()
        except GapConflict as error:
            raise ProposalUnfit("conflict_moved", "the sides clash elsewhere by now") from error
        if sides.regions and not within(between, document.lines):
            raise ProposalUnfit("outside_regions", "it changes lines outside the regions of the conflict")
        marked = next((n for n, line in enumerate(document.lines, 1) if _MARKER.match(line)), None)
        if marked is not None and not any(_MARKER.match(line) for line in sides.current.lines):
            raise ProposalUnfit("markers_left", f"line {marked} is a conflict marker")
        await self._parses(conflict, data)
        await self._passes(conflict, data)

    async def _parses(self, conflict: Conflict, data: bytes) -> None:
        """No new errors of syntax. Raises ProposalUnfit."""
        found = conflict.found
        held = await self._s.contents.get(found.current) if found.current is not None else None
        if held is None or found.current is None:
            return
        before = await self._s.parser.outline(found.path, found.current, held)
        after = await self._s.parser.outline(found.path, digest_of(data), data)
        if before is None or after is None or not (before.parsed and after.parsed):
            return
        if after.errors > before.errors:
            raise ProposalUnfit("does_not_parse", f"{after.errors - before.errors} new errors of syntax")

    async def _passes(self, conflict: Conflict, data: bytes) -> None:
        """The check command of the policy. Raises ProposalUnfit."""
        checks = self._s.policy.checks
        if not checks.command:
            return
        if self._checker is None:
            raise ProposalUnfit("check_failed", "the policy has a check command, and nothing to run it")
        report = await self._checker.check(checks, conflict.found.path, data, self._files(conflict))
        if not report.passed:
            raise ProposalUnfit("check_failed", report.message)

    def _files(self, conflict: Conflict) -> Sequence[WorkspacePath]:
        """What a check's tree holds beside the file: what its author may read, so no secrets."""
        author, path = self.author(conflict), conflict.found.path
        files = (entry.path for entry in self._s.state.registry.files() if entry.path != path)
        return [other for other in files if self._s.readable(author, other)]

    # --- carrying out -----------------------------------------------------------------

    def automatic(self, conflict: Conflict) -> bool:
        """Whether the agent itself might change the path without asking; else, or to revive it, a person accepts."""
        if conflict.gone:
            return False
        verdict = self._s.verdict(self.author(conflict), "write", conflict.found.path, on_disk=True)
        return isinstance(verdict, Allow)

    def author(self, conflict: Conflict) -> Caller:
        """Who wanted the change that waits."""
        name = conflict.agent or AgentName("unnamed")
        agent = self._s.state.identities.get(name)
        return Caller(
            agent=name,
            agent_class=agent.agent_class if agent else "cloud",
            session=conflict.session or SessionId("daemon"),
            door="daemon",
        )

    async def accept(self, conflict: Conflict, review: Review, *, by: str, vouched: bool) -> ChangeAnswer | None:
        """Carry a proposal out, as the reviewer's change; None where nothing was to be changed.

        `vouched`: a person says yes, so that what policy would ask about is answered. Raises CallerError,
        ProposalUnfit.
        """
        found = conflict.found
        accepted = await self._onto_present(conflict, review)
        command = Resolve(path=found.path, current=found.current, chosen=accepted, strict=True)
        said = await self.answer(conflict, review)
        wanted = ChangeRequest(
            caller=reviewer_caller(review.reviewer),
            call=settling(conflict, review),
            reason=said.reason if said is not None else "",
            resolves=conflict.seq,
            pre_approved=vouched,
        )
        answer: ChangeAnswer | None = None
        with suppress(NothingToChange):
            answer = await self._changer.change(command, wanted)
        if answer is not None and answer.status != "applied":
            return answer
        change = parse_seq(answer.change) if answer is not None and answer.change is not None else None
        stream = f"conflict:{found.path}"
        events: list[tuple[str, Event]] = [
            (stream, ReviewAccepted(review=review.seq, conflict=conflict.seq, by=by, change=change)),
            (
                stream,
                ConflictResolved(
                    conflict=conflict.seq,
                    choice=_choice(review),
                    by=by,
                    change=change,
                    reason=wanted.reason,
                ),
            ),
        ]
        origin = msgspec.structs.replace(wanted.caller.origin(), cause=review.seq)
        await self._s.append(origin, *events)
        return answer

    async def fit(self, conflict: Conflict) -> ChangeAnswer | None:
        """Apply a change that clashes with nothing any more, as its author's. Raises CallerError."""
        found = conflict.found
        sides = await sides_of(self._s.contents, found)
        data = await chosen(self._s.effort, sides, {}) if sides is not None else None
        if conflict.gone or (sides is None and found.proposed is not None):
            return None
        call = Call(
            operation=RESOLVE_CONFLICT,
            params=ResolveConflict(conflict=show(conflict.seq), choice="proposed"),
        )
        reason = "nothing clashes with it any more"
        wanted = ChangeRequest(caller=self.author(conflict), call=call, reason=reason, resolves=conflict.seq)
        command = Resolve(path=found.path, current=found.current, chosen=data, strict=True)
        answer = await self._changer.change(command, wanted)
        if answer.status == "applied" and answer.change is not None:
            event = ConflictResolved(
                conflict=conflict.seq, choice="proposed", by="policy", change=parse_seq(answer.change), reason=reason
            )
            await self._s.append(wanted.caller.origin(), (f"conflict:{found.path}", event))
        return answer

    async def _onto_present(self, conflict: Conflict, review: Review) -> bytes | None:
        """The proposal on what the file holds now: other places may have changed since. Raises ProposalUnfit."""
        found = conflict.found
        if review.proposal is None:
            raise ProposalUnfit("review_reply_invalid", f"{review.reviewer} proposes nothing")
        data = await self._s.contents.need(review.proposal, f"what {review.reviewer} proposes")
        if review.current == found.current:
            return data
        old, now = await text(self._s.contents, review.current), await text(self._s.contents, found.current)
        new = decode(data)
        merged = await self._merged(old, now, new) if old and now and new else None
        sides = await sides_of(self._s.contents, found)
        if not isinstance(merged, Merged) or sides is None:
            raise ProposalUnfit("conflict_moved", "the file has changed where the proposal wants to go")
        data = encode(sides.current_with(merged.lines))
        await self.checked(conflict, data)
        return data

    async def _merged(self, old: Document, now: Document, new: Document) -> Merged | ConflictingRegion:
        """Raises TextTooCostly."""
        work = partial(merge3, old.lines, now.lines, new.lines)
        return await self._s.effort.run(work) if large(old, now, new) else work()

    async def answer(self, conflict: Conflict, review: Review) -> ReviewAnswered | None:
        """What a reviewer said, as the journal has it."""
        wanted = EventFilter(tags=(tag_of(ReviewAnswered),), after=review.seq)  # its file may have moved since
        async for recorded in self._s.journal.events(wanted, batch=20):
            event = recorded.event
            if isinstance(event, ReviewAnswered) and event.review == review.seq and not event.ignored:
                return event
        return None

    async def failure(self, review: Review) -> ReviewFailed | None:
        """In which way a review failed, as the journal has it; its conflict may have moved since."""
        wanted = EventFilter(tags=(tag_of(ReviewFailed),), after=review.seq)
        async for recorded in self._s.journal.events(wanted, batch=20):
            event = recorded.event
            if isinstance(event, ReviewFailed) and event.review == review.seq:
                return event
        return None


def reviewer_caller(name: str) -> Caller:
    """Whose changes those of a reviewer are."""
    return Caller(
        agent=AgentName(f"reviewer:{name}"),
        agent_class="review",
        session=SessionId(f"review-{name}"),
        door="daemon",
    )


def _choice(review: Review) -> Literal["current", "proposed", "content"]:
    match review.verdict:
        case "current" | "proposed" as side:
            return side
        case "content" | "reject" | None:
            return "content"


def settling(conflict: Conflict, review: Review) -> Call:
    """The call by which a reviewer would have settled a conflict itself."""
    params = ResolveConflict(conflict=show(conflict.seq), choice=_choice(review), reason=f"review {show(review.seq)}")
    return Call(operation=RESOLVE_CONFLICT, params=params)


def proposal_of(data: bytes | None) -> tuple[Digest | None, tuple[tuple[Digest, bytes], ...]]:
    """The digest of a proposal, and the blob to be kept."""
    if data is None:
        return None, ()
    digest = digest_of(data)
    return digest, ((digest, data),)
