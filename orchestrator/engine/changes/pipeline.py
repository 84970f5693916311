"""Changes: from a command to an answer, by way of base, policy, decision, approval or conflict, and disk."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import TypeVar

import anyio.lowlevel
import msgspec
from anyio import to_thread

from orchestrator.api import results as r
from orchestrator.core.conflicts.route import held_for_review
from orchestrator.core.content import RUNGS, IntendedPath
from orchestrator.core.decisions.commands import Command, PermissionCheck
from orchestrator.core.decisions.costs import costly, decided, portable, size_of
from orchestrator.core.decisions.decision import Apply, ConflictOutcome, Facts, Need, Outcome
from orchestrator.core.errors import (
    CallerError,
    Denied,
)
from orchestrator.core.events.base import Origin
from orchestrator.core.events.conflicts import ApprovalRequested
from orchestrator.core.events.notices import UnseenChange
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.policy.rules import Deny, NeedApproval
from orchestrator.core.projections.pending import Conflict
from orchestrator.engine.caller import Caller
from orchestrator.engine.changes.answers import Answers, Shows
from orchestrator.engine.changes.change_request import ChangeRequest
from orchestrator.engine.changes.conflict_recorder import ConflictRecorder
from orchestrator.engine.changes.effects import Effects, Intent
from orchestrator.engine.changes.facts import SLICE, FactFinder
from orchestrator.engine.changes.repositories import RepositoryGuard
from orchestrator.engine.changes.write_batch import RollbackIncomplete
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.leases import LeaseOverlap, Reservations
from orchestrator.engine.permissions import denied
from orchestrator.engine.reads.read_sets import ReadSets, unseen_in_words, unseen_texts
from orchestrator.engine.services import OFF_LOOP_BYTES, Services
from orchestrator.ports.journal import NewEvent, Unit
from orchestrator.ports.workspace import Displaced

Told = TypeVar("Told", Apply, r.ChangeAnswer)

TRIES = 3


class ChangeResult(msgspec.Struct, frozen=True):
    """What became of a command; no plan where it is a conflict as a whole."""

    answer: r.ChangeAnswer
    plan: Apply | None = None
    conflicts: tuple[Seq, ...] = ()  # found beside what was applied


class ChangePipeline:
    """Carries commands through."""

    def __init__(self, services: Services, observer: Observer, effects: Effects, answers: Answers) -> None:
        self._s, self._effects, self._answers, self._observer = services, effects, answers, observer
        self._finder, self._clashing = FactFinder(services, observer), ConflictRecorder(services, answers)
        self.reservations, self._sets = Reservations(services), ReadSets(services)
        self.repositories = RepositoryGuard(services.workspace)

    async def change(self, command: Command, wanted: ChangeRequest) -> r.ChangeAnswer:
        """Decide and carry out. Raises CallerError; a conflict and a wait are answers, not errors."""
        return (await self.execute(command, wanted)).answer

    async def execute(self, command: Command, wanted: ChangeRequest) -> ChangeResult:  # noqa: C901, PLR0912  # the steps of a change, read from top to bottom
        """As `change`, with the plan that was decided."""
        superseded = self._clashing.named(command, wanted)
        await self.reservations.wait(wanted.caller, command.paths, preview=wanted.preview)
        async with AsyncExitStack() as locks:
            await locks.enter_async_context(self._s.locks.hold(command.paths, shared=wanted.preview))
            directories = await locks.enter_async_context(AsyncExitStack())
            for _ in range(TRIES):
                shows = partial(self._s.readable, wanted.caller)
                if command.reads and not all(map(shows, command.paths)):
                    hidden = next(path for path in command.paths if not shows(path))
                    raise Denied(
                        f"{hidden}: its content is not shown, so it can't be changed by passages of it",
                        hint="write_file can propose a whole new content, which a person then sees and decides on.",
                        details={"path": hidden},
                    )
                facts = await self._finder.find(command, wanted)
                if wanted.preview:
                    await locks.aclose()  # nothing is changed, and to decide may take long
                asks = await self._judge(command, wanted, facts)
                crossing = await self.reservations.crossing(wanted.caller, command.paths, preview=wanted.preview)
                outcome = await self._decide(command, facts)
                unseen = await self._unseen(command, wanted, outcome)
                if not wanted.resolves and not wanted.pre_approved:
                    author, policy = wanted.caller, self._s.policy
                    outcome = held_for_review(
                        outcome, facts, policy, unseen, agent=author.agent, agent_class=author.agent_class
                    )
                if not wanted.preview and not await self._keep_hidden(facts):
                    continue
                if isinstance(outcome, ConflictOutcome):
                    answer = await self._clashing.record(command, wanted, outcome, facts, shows=shows, unseen=unseen)
                    return ChangeResult(_warned(answer, crossing))
                outcome = _warned(outcome, crossing)
                asks = (*asks, *self._unsure(outcome, wanted), *self._stale(unseen, wanted))
                await directories.aclose()  # of the try before
                if not wanted.preview:
                    await directories.enter_async_context(self.repositories.alone(outcome.parts))
                if not wanted.pre_approved:
                    asks = (*asks, *self.repositories.asks(outcome.parts, facts))
                if wanted.preview:
                    would_be = "waiting" if asks else "applied" if outcome.parts else "conflict"
                    preview = await self._answers.of_plan(outcome, would_be=would_be, shows=shows)
                    return ChangeResult(msgspec.structs.replace(preview, unseen=unseen_texts(unseen, shows)), outcome)
                intent = self._intent(command, wanted, superseded, leases=crossing.leases, unseen=unseen)
                if outcome.reverts:
                    intent = msgspec.structs.replace(intent, reverts=outcome.reverts)
                if asks and outcome.parts:
                    conflicts = await self._clashing.record_partial(command, wanted, outcome, facts)
                    waiting = await self.request(outcome, intent, asks, shows=shows)
                    return ChangeResult(_warned(waiting, crossing), outcome, conflicts)
                if not outcome.parts:
                    conflicts = await self._clashing.record_partial(command, wanted, outcome, facts)
                    return ChangeResult(await self._answers.of(conflicts[0], shows=shows), outcome, conflicts)
                try:
                    applied = await self._effects.carry_out(outcome, intent)
                except (Displaced, RollbackIncomplete):
                    continue
                conflicts = await self._clashing.record_partial(command, wanted, outcome, facts)
                await self._clashing.supersede(wanted, applied, outcome, superseded)
                answer = await self._answers.of_applied(
                    applied.recorded,
                    applied.event,
                    shows=shows,
                    intended=applied.intended,
                    warnings=applied.warnings,
                )
                return ChangeResult(answer, outcome, conflicts)
        raise CallerBusy(command.paths[0])

    # --- judging and deciding -------------------------------------------------------

    async def _judge(
        self, command: Command, wanted: ChangeRequest, facts: Mapping[WorkspacePath, Facts]
    ) -> tuple[NeedApproval, ...]:
        """What a person must say yes to. Raises Denied."""
        asks = []
        for number, check in enumerate(command.required_permissions(facts), 1):
            if number % SLICE == 0:
                await anyio.lowlevel.checkpoint()
            verdict = self._s.verdict(
                wanted.caller, check.action, check.path, others_work=check.others_work, on_disk=True
            )
            if isinstance(verdict, Deny):
                raise denied(check.action, check.path, verdict)
            if isinstance(verdict, NeedApproval):
                asks.append(verdict)
        hidden = [path for path in command.paths if not self._s.readable(wanted.caller, path)]
        if 0 < len(hidden) < len(command.paths):
            asks.append(NeedApproval("builtin.uncover", f"it brings what {hidden[0]} hides to a path that is shown"))
        return () if wanted.pre_approved else tuple(asks)

    def _unsure(self, plan: Apply, wanted: ChangeRequest) -> tuple[NeedApproval, ...]:
        """What a person must say yes to because of how the change came to fit."""
        lowest = self._s.policy.edits.lowest_rung
        if wanted.pre_approved or plan.reverts or RUNGS.index(plan.rung) <= RUNGS.index(lowest):
            return ()
        reason = f"it fits as {plan.rung} (score {plan.score:g}), and below {lowest} a person decides"
        return (NeedApproval("edits.lowest_rung", reason),)

    async def _keep_hidden(self, facts: Mapping[WorkspacePath, Facts]) -> bool:
        """Keep what nobody may read, now that it is to be changed: undo needs it. False if it is otherwise by now."""
        for path, here in facts.items():
            if here.held is None or not self._s.hidden_from_all(path):
                continue
            present = await self._observer.refresh(path, content=True, changing=True)
            if present.entry is None or present.entry.digest != here.held.digest:
                return False
        return True

    async def _unseen(
        self, command: Command, wanted: ChangeRequest, plan: Apply | ConflictOutcome
    ) -> tuple[UnseenChange, ...]:
        """What the author read and has not seen since; one who undoes or settles did not work from reading."""
        if plan.reverts or wanted.resolves is not None:
            return ()
        shown = tuple(path for path in command.paths if self._s.readable(wanted.caller, path))
        return await self._sets.unseen(wanted.caller.session, shown)

    def _stale(self, unseen: tuple[UnseenChange, ...], wanted: ChangeRequest) -> tuple[NeedApproval, ...]:
        """What a person must say yes to because the author has not seen what others did."""
        if not unseen or wanted.pre_approved or self._s.policy.edits.stale_reads == "allow":
            return ()
        return (NeedApproval("edits.stale_reads", unseen_in_words(unseen)),)

    def refuse_early(self, caller: Caller, *required_permissions: PermissionCheck) -> None:
        """Refuse by name what policy denies whatever is there, before anything is opened. Raises Denied."""
        for check in required_permissions:
            verdict = self._s.verdict(caller, check.action, check.path, others_work=check.others_work)
            if isinstance(verdict, Deny):
                raise denied(check.action, check.path, verdict)

    def refuse_unseen(self, caller: Caller, *required_permissions: PermissionCheck) -> None:
        """Refuse what policy denies whichever of these it turns out to be, before looking. Raises Denied."""
        verdicts = [self._s.verdict(caller, check.action, check.path) for check in required_permissions]
        denials = [verdict for verdict in verdicts if isinstance(verdict, Deny)]
        if len(denials) == len(required_permissions):
            raise denied(required_permissions[0].action, required_permissions[0].path, denials[0])

    async def _decide(self, command: Command, facts: dict[WorkspacePath, Facts]) -> Apply | ConflictOutcome:
        while True:
            if costly(command, facts):
                outcome: Outcome = await self._s.effort.run(partial(decided, command, portable(facts)))
            elif size_of(facts) > OFF_LOOP_BYTES:
                outcome = await to_thread.run_sync(partial(command.decide, facts))
            else:
                outcome = command.decide(facts)
            if not isinstance(outcome, Need):
                return outcome
            fetched: dict[Digest, bytes] = {}
            for digest in outcome.digests:
                fetched[digest] = await self._s.contents.need(digest, f"an earlier version of {command.paths[0]}")
            parsed = await self._s.outlines(outcome.outlines)
            facts = {
                path: msgspec.structs.replace(f, contents={**f.contents, **fetched}, outlines={**f.outlines, **parsed})
                for path, f in facts.items()
            }

    # --- outcomes -------------------------------------------------------------------

    def _intent(
        self,
        command: Command,
        wanted: ChangeRequest,
        superseded: Conflict | None,
        *,
        leases: tuple[Seq, ...],
        unseen: tuple[UnseenChange, ...],
    ) -> Intent:
        session = self._s.state.sessions.get(wanted.caller.session)
        return Intent(
            operation=wanted.call.operation.name,
            origin=_caused(wanted),
            reverts=command.reverts,
            supersedes=superseded.seq if superseded else None,
            settles=wanted.resolves,
            task=session.task if session else None,
            reason=wanted.reason,
            leases=leases,
            unseen=unseen,
        )

    async def request(
        self, plan: Apply, intent: Intent, asks: tuple[NeedApproval, ...], *, shows: Shows
    ) -> r.ChangeAnswer:
        """Put a plan before a person, and answer `waiting`."""
        request = approval_request(
            plan,
            intent,
            rule="; ".join(dict.fromkeys(f"{ask.rule}: {ask.reason}" for ask in asks)),
            expires_at=self._s.clock.now_ms() + self._s.policy.limits.approval_ttl_s * 1000,
        )
        blobs = tuple((part.after, part.data) for part in plan.parts if part.after and part.data is not None)
        event = NewEvent(f"approval:{plan.parts[0].path}", request)
        recorded = await self._s.journal.append(Unit((event,), intent.origin, blobs))
        return await self._answers.of(recorded[0].seq, shows=shows)


def approval_request(
    plan: Apply, intent: Intent, *, rule: str, expires_at: int, renews: Seq | None = None
) -> ApprovalRequested:
    """What a person is asked: exactly these contents, in place of exactly those."""
    return ApprovalRequested(
        operation=intent.operation,
        paths=tuple(
            IntendedPath(
                path=part.path,
                before=part.before,
                after=part.after,
                mode=part.mode,
                moved_from=part.moved_from,
                renamed_from=part.renamed_from,
                directory=part.directory,
                encoding=part.encoding,
            )
            for part in plan.parts
        ),
        rule=rule,
        expires_at=expires_at,
        base=plan.base,
        renews=renews,
        reverts=intent.reverts,
        supersedes=intent.supersedes,
        settles=intent.settles,
        on_seen_whole=plan.on_seen_whole,
        task=intent.task,
        reason=intent.reason,
        emptied=plan.emptied,
        unmade=plan.unmade,
        unseen=intent.unseen,
        rung=plan.rung,
        score=plan.score,
        settled=plan.settled,
        same_symbol=plan.same_symbol,
    )


class CallerBusy(CallerError):
    """Something else keeps changing the file between our look and our write."""

    code = "changed_while_written"
    hint = "Try again; another program is writing this file."

    def __init__(self, path: WorkspacePath) -> None:
        super().__init__(f"{path} changed again and again while it was written", details={"path": path})


def _caused(wanted: ChangeRequest) -> Origin:
    """A change that settles a conflict is caused by it."""
    origin = wanted.caller.origin(wanted.call)
    return origin if wanted.resolves is None else msgspec.structs.replace(origin, cause=wanted.resolves)


def _warned(told: Told, crossing: LeaseOverlap) -> Told:
    """A plan or an answer, with what is to be said of others' leases."""
    if not crossing.warnings:
        return told
    return msgspec.structs.replace(told, warnings=(*told.warnings, *crossing.warnings))
