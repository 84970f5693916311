"""Approvals: a person's yes or no, checked once more against policy and disk, then carried out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import anyio
import msgspec

from orchestrator.api import results as r
from orchestrator.api.administration import Approve, Deny
from orchestrator.core.change import PathChange, Provenance
from orchestrator.core.conflicts.resolution import ConflictClosed
from orchestrator.core.decisions.commands import Rebase
from orchestrator.core.decisions.decision import Apply, Base, ConflictOutcome, Facts, Held, NewContent
from orchestrator.core.errors import CallerError, Denied, NothingToChange
from orchestrator.core.events.base import Origin, Recorded
from orchestrator.core.events.conflicts import (
    ApprovalDenied,
    ApprovalExpired,
    ApprovalGranted,
    ExpiryCause,
)
from orchestrator.core.ids import Digest, Seq, WorkspacePath, show
from orchestrator.core.policy.rules import NeedApproval
from orchestrator.core.projections.pending import Approval
from orchestrator.engine.approver import ApproverGate
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.changes.approval_inbox import ApprovalInbox, check_seen
from orchestrator.engine.changes.conflict_recorder import found_of
from orchestrator.engine.changes.diffs import Shows
from orchestrator.engine.changes.effects import new_blobs
from orchestrator.engine.changes.pipeline import ChangePipeline, rules
from orchestrator.engine.changes.write_batch import RollbackIncomplete
from orchestrator.engine.external.observer import required_content
from orchestrator.engine.grants import GrantService, stream_of
from orchestrator.engine.services import Services
from orchestrator.ports.journal import AppendBatch, NewEvent
from orchestrator.ports.workspace import ChangedMeanwhile

TRIES = 3

MOST_NAMED = 5
"""Files that a message names."""


class ApprovalService:
    """Answers to changes that wait, and what follows from them."""

    def __init__(self, services: Services, pipeline: ChangePipeline, gate: ApproverGate, grants: GrantService) -> None:
        self._s, self._pipeline, self._gate, self._grants = services, pipeline, gate, grants
        self._answers, self._rules, self.inbox = pipeline.answers, pipeline.rules, ApprovalInbox(services)

    async def approve(self, caller: Caller, call: Call, params: Approve) -> r.ChangeAnswer:
        unseen, added = "", tuple[Recorded, ...]()
        async with self._answering(caller, params) as approval:
            now = self._s.clock.now_ms()
            if approval.request.expires_at <= now:
                await self._expire_due(approval, "timeout")
            elif self._revoked(approval):
                await self._expire_due(approval, "agent_revoked")
            else:
                unseen = check_seen(approval, caller, unseen=params.unseen and caller.is_person)
                until = now + self._s.permissions.policy.limits.granted_read_s * 1000 if approval.for_call else None
                granted = ApprovalGranted(
                    approval=approval.seq,
                    by=caller.agent,
                    expires_at=until,
                    digest=approval.request.digest,
                    unseen=bool(unseen),
                    via=caller.via,
                )
                wider = [(stream_of(grant), grant) for grant in await self._grants.wanted(caller, params, approval)]
                with anyio.CancelScope(shield=True):  # a call that is cancelled takes no yes back
                    added = (await self._s.notes.append(caller.origin(call), (approval.stream, granted), *wider))[1:]
                    if not approval.for_call:
                        await self._apply(approval)
        await self._recheck_beside(approval)
        answer = await self._answers.of(
            approval.seq, Shows(self._s.redaction, caller, partial(self.inbox.shows, caller))
        )
        given = tuple(show(recorded.seq) for recorded in added)
        warned = (*filter(None, (unseen,)), *answer.warnings)
        return msgspec.structs.replace(answer, warnings=warned, grants=(*answer.grants, *given))

    async def deny(self, caller: Caller, call: Call, params: Deny) -> r.Done:
        async with self._answering(caller, params) as approval:
            event = ApprovalDenied(approval=approval.seq, by=caller.agent, reason=params.reason, via=caller.via)
            await self._s.notes.append(caller.origin(call), (approval.stream, event))
        return r.Done(message=f"{show(approval.seq)} is denied; nothing was changed")

    async def expire(self) -> int | None:
        """Expire what is due or whose agent was revoked; the ms at which the next is due, if any has an end."""
        now = self._s.clock.now_ms()
        for approval in self._s.state.pending.expiring():
            due = approval.due is not None and approval.due <= now
            if due or self._revoked(approval):
                async with self._s.locks.alone(item.path for item in approval.request.paths):
                    present = self._s.state.pending.approval(approval.seq)
                    if present is not None and present.state == approval.state:
                        await self._expire_due(approval, "timeout" if due else "agent_revoked")
        return min((item.due for item in self._s.state.pending.expiring() if item.due is not None), default=None)

    async def resume(self) -> None:
        """Apply what was granted before a crash kept it from being applied."""
        for approval in self._s.state.pending.granted():
            async with self._s.locks.alone(item.path for item in approval.request.paths):
                await self._apply(approval)

    # --- carrying out -----------------------------------------------------------------

    async def _apply(self, approval: Approval) -> None:
        """Re-check policy and disk, then apply exactly what was shown, or ask again, or make it a conflict."""
        request = approval.request
        author = self._s.permissions.author(approval.agent, approval.session)
        try:
            await self._s.permissions.asks(author, request.permissions)
        except Denied as denial:
            await self._expire_due(approval, "policy_changed", denial.message)
            return
        if self._revoked(approval):  # before it was carried out, where a crash came between
            await self._expire_due(approval, "agent_revoked")
            return
        conflict = self._s.state.pending.conflict(request.provenance.resolves or 0)
        if conflict is not None and conflict.state != "open":
            await self._expire_due(approval, "error", ConflictClosed(conflict).message)
            return
        reason = await self.inbox.reason(approval.seq)
        provenance = msgspec.structs.replace(request.provenance, approval=approval.seq, reason=reason)
        for _ in range(TRIES):
            try:
                facts = await self._facts(approval)
                plan = await self._plan(approval, facts)
                if plan is None:
                    await self._ask_again(approval, provenance, facts)
                    return
                async with self._rules.alone(plan.paths):
                    asks = [ask for ask in self._rules.repository(plan, facts) if ask.reason not in request.rule]
                    if asks:  # others' changes made it so while the request waited; who granted it did not know
                        await self._renew(approval, provenance, plan, asks)
                        return
                    paths = [item.path for item in request.paths]
                    crossing = await self._pipeline.leases.crossing(author, paths, granted=True)
                    await self._pipeline.effects.carry_out(
                        crossing.warned(plan), provenance, self._origin(approval), leases=crossing.leases
                    )
            except (ChangedMeanwhile, RollbackIncomplete):
                continue
            except CallerError as error:
                await self._expire_due(approval, "error", error.message)
                return
            else:
                return
        await self._expire_due(approval, "base_changed", "the file changed again and again while it was written")

    async def _recheck_beside(self, approval: Approval) -> None:
        """Others that wait for what a granted change has changed: each is rebased and asked anew, or ends with why."""
        for other in self.inbox.beside(approval):
            async with self._s.locks.alone(item.path for item in other.request.paths):
                present = self._s.state.pending.approval(other.seq)
                if present is None or present.state != "waiting":
                    continue
                try:
                    facts = await self._facts(other)
                    if any(_differs(item, facts[item.path]) for item in other.request.paths):
                        reason = await self.inbox.reason(other.seq)
                        provenance = msgspec.structs.replace(
                            other.request.provenance, approval=other.seq, reason=reason
                        )
                        await self._ask_again(other, provenance, facts)
                except CallerError as error:
                    await self._expire_due(other, "error", error.message)

    async def _facts(self, approval: Approval) -> dict[WorkspacePath, Facts]:
        facts = {}
        for item in approval.request.paths:
            present = await self._pipeline.observer.keep(item.path, changing=True)
            held = None
            if present.stat is not None and not item.directory:
                _, digest, data = required_content(present)
                held = Held(data, digest, present.stat.mode)
            facts[item.path] = Facts(item.path, held, present.entry.version if present.entry else None)
        return facts

    async def _plan(self, approval: Approval, facts: dict[WorkspacePath, Facts]) -> Apply | None:
        """Exactly the change that was granted; None if the disk holds something else by now."""
        request = approval.request
        contents: dict[Digest, NewContent] = {}
        if any(_differs(item, facts[item.path]) for item in request.paths):
            return None
        for item in request.paths:
            if item.after is not None and not item.renamed:
                data = await self._s.contents.need(item.after, f"what {show(approval.seq)} proposes for {item.path}")
                contents[item.after] = NewContent(data)
        return Apply(paths=request.paths, contents=contents, fit=request.fit, directories=request.directories)

    async def _ask_again(self, approval: Approval, provenance: Provenance, facts: dict[WorkspacePath, Facts]) -> None:
        """The base moved: a new request if the change still fits, else a conflict."""
        item = approval.request.paths[0]
        here = facts[item.path]
        if not self._s.permissions.readable_to(approval.agent, *facts):
            # whether it still fits would show its author what the file holds
            await self._expire_due(approval, "base_changed", "the file changed while the request waited")
            return
        if len(approval.request.paths) > 1:  # all of it or nothing, as where it is asked for without an approval
            changed = [item.path for item in approval.request.paths if _differs(item, facts[item.path])]
            await self._expire_due(
                approval,
                "base_changed",
                f"{', '.join(changed[:MOST_NAMED])} changed while the request waited; nothing was changed",
            )
            return
        if item.after is None and here.held is None:
            await self._expire_due(approval, "base_changed", f"{item.path} is gone already")
            return
        outcome: Apply | ConflictOutcome | None = None
        old, new = await self._s.contents.kept_text(item.before), await self._s.contents.kept_text(item.after)
        version = approval.request.fit.base
        if old and new and item.before and here.held:
            onto = msgspec.structs.replace(here, base=Base(version or Seq(0), item.before))
            try:
                outcome = await self._pipeline.decide(Rebase(path=item.path, old=old, new=new), {item.path: onto})
            except NothingToChange as error:
                await self._expire_due(approval, "base_changed", error.message)
                return
        if isinstance(outcome, Apply):
            await self._renew(approval, provenance, outcome)
            return
        if outcome is None:
            proposed = await self._s.contents.get(item.after) if item.after is not None else None
            outcome = ConflictOutcome(path=item.path, base=item.before, base_version=version, proposed=proposed)
        found = found_of(provenance, outcome, here)
        expired = ApprovalExpired(
            approval=approval.seq, cause="conflict", message="the file changed where it wants to go"
        )
        await self._s.notes.append(self._origin(approval), (approval.stream, expired), (f"conflict:{item.path}", found))

    async def _renew(
        self, approval: Approval, provenance: Provenance, plan: Apply, asks: Sequence[NeedApproval] = ()
    ) -> None:
        """Ask again: the base moved and the change was rebased, or there is more to ask."""
        request = self._pipeline.request_of(
            plan,
            msgspec.structs.replace(provenance, approval=None),
            rule="; ".join((approval.request.rule, *filter(None, (rules(asks),)))),
            permissions=approval.request.permissions,
            renews=approval.seq,
        )
        rebased = "the file changed; the change was rebased and asks again"
        message = "there is more to ask by now" if asks else rebased
        expired = ApprovalExpired(approval=approval.seq, cause="base_changed", message=message)
        events = (NewEvent(approval.stream, expired), NewEvent(approval.stream, request))
        await self._s.journal.append(AppendBatch(events, self._origin(approval), new_blobs(plan)))

    async def _expire_due(self, approval: Approval, cause: ExpiryCause, message: str = "") -> None:
        if cause == "agent_revoked":
            message = f"{approval.agent} was revoked after it had asked"
        event = ApprovalExpired(approval=approval.seq, cause=cause, message=message)
        await self._s.notes.append(self._origin(approval), (approval.stream, event))

    # --- small things -------------------------------------------------------------------

    @asynccontextmanager
    async def _answering(self, caller: Caller, params: Approve | Deny) -> AsyncIterator[Approval]:
        """A request that the caller may answer, with the locks of its paths held, so that it is answered once.

        Raises ApproverCodeNeeded, VersionUnknown, ApprovalClosed, Denied, NotPermitted.
        """
        by_client = caller.via is not None and self.inbox.trusts_client(
            caller.via, await self.inbox.find(params.approval, waiting=True)
        )
        if caller.is_person and not by_client:
            await self._gate.check(caller, params.approver)
        approval = await self.inbox.find(params.approval, waiting=True)
        self.inbox.authorize(caller, approval)
        async with self._s.locks.alone(item.path for item in approval.request.paths):
            yield await self.inbox.find(params.approval, waiting=True)

    def _revoked(self, approval: Approval) -> bool:
        """Whether its author may not call any more."""
        author = self._s.state.identities.get(approval.agent or "")
        return author is not None and author.revoked

    def _origin(self, approval: Approval) -> Origin:
        return Origin(session=approval.session, agent=approval.agent, cause=approval.seq)


def _differs(item: PathChange, found: Facts) -> bool:
    """Whether the disk holds something else than the request was made on."""
    return (found.held.digest if found.held else None) != item.before
