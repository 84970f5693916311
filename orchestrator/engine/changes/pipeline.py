"""A change from its command to its answer, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import TypeVar, assert_never

import msgspec
from anyio import to_thread

from orchestrator.api import results as r
from orchestrator.core.change import PermissionCheck, Provenance, UnseenChange
from orchestrator.core.conflicts.resolution import ConflictClosed, held_for_review
from orchestrator.core.content import Content, SplicedContent
from orchestrator.core.decisions.commands import Command
from orchestrator.core.decisions.costs import costly, size_of
from orchestrator.core.decisions.decision import Apply, ConflictOutcome, Facts, Need, Outcome, Source
from orchestrator.core.decisions.passages import quote
from orchestrator.core.errors import ApprovalRequired, CallerError, Denied
from orchestrator.core.events.base import Origin
from orchestrator.core.events.conflicts import ApprovalRequested
from orchestrator.core.events.files import ChangeApplied
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.policy.rules import Deny, NeedApproval
from orchestrator.core.splices import ToSplice
from orchestrator.core.text.symbols import Outline
from orchestrator.engine.caller import Caller, ChangeRequest
from orchestrator.engine.changes.change_answers import Answers
from orchestrator.engine.changes.change_rules import ChangeRules
from orchestrator.engine.changes.conflict_recorder import Attempt, ConflictRecorder
from orchestrator.engine.changes.diffs import Shows
from orchestrator.engine.changes.effects import Effects, new_blobs
from orchestrator.engine.changes.facts import FactFinder
from orchestrator.engine.changes.large_edits import LargeEdits
from orchestrator.engine.changes.secret_lines import SecretLines
from orchestrator.engine.changes.write_batch import RollbackIncomplete
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.leases import LeaseOverlap, Leases
from orchestrator.engine.limits import bytes_brought
from orchestrator.engine.reads.read_regions import ReadSets
from orchestrator.engine.reads.stale_read_notices import unseen_texts
from orchestrator.engine.services import OFF_LOOP_BYTES, Services
from orchestrator.ports.journal import AppendBatch, NewEvent
from orchestrator.ports.workspace import ChangedMeanwhile

T = TypeVar("T")

TRIES = 3


class ChangeResult(msgspec.Struct, frozen=True):
    """What became of a command; no plan where it is a conflict as a whole."""

    answer: r.ChangeAnswer
    plan: Apply | None = None
    conflicts: tuple[Seq, ...] = ()  # found beside what was applied


class Outrun(Exception):
    """A path holds something else than the facts say by now: decide again."""


class ChangePipeline:
    """Carries commands through: facts, permission, decision, then approval or conflict or effects, and the answer."""

    def __init__(
        self, services: Services, observer: Observer, effects: Effects, answers: Answers, leases: Leases
    ) -> None:
        self._s, self.observer, self.effects, self.answers = services, observer, effects, answers
        self._facts, self._recorder = FactFinder(services, observer), ConflictRecorder(services, answers)
        self._large = LargeEdits(services)
        self.leases, self._sets = leases, ReadSets(services)  # of its own: notices count as reads here
        self.rules = ChangeRules(services.permissions, services.workspace, SecretLines(services.redaction))

    async def change(self, command: Command, request: ChangeRequest) -> r.ChangeAnswer:
        """Decide and carry out. Raises CallerError; a conflict and a wait are answers, not errors."""
        return (await self.execute(command, request)).answer

    async def execute(self, command: Command, request: ChangeRequest) -> ChangeResult:
        """As `change`, with the plan that was decided."""
        supersedes = self._recorder.named(command, request)
        await self.leases.wait(request.caller, command.paths, preview=request.preview)
        async with AsyncExitStack() as locks:
            await locks.enter_async_context(self._s.locks.hold(command.paths, shared=request.preview))
            self._s.permissions.check_open(request.caller)  # it may have waited long
            for _ in range(TRIES):
                try:
                    return await self._once(command, request, supersedes, locks)
                except (ChangedMeanwhile, RollbackIncomplete, Outrun):
                    continue
        raise CallerBusy(command.paths[0])

    async def _once(
        self, command: Command, request: ChangeRequest, supersedes: Seq | None, locks: AsyncExitStack
    ) -> ChangeResult:
        caller = request.caller
        shows = Shows(self._s.redaction, caller, partial(self._s.access.shows, caller))
        self._refuse_hidden(command, caller)
        conflict = self._s.state.pending.conflict(request.resolves) if request.resolves is not None else None
        if conflict is not None and conflict.state != "open":  # others chose while this waited for the file
            raise ConflictClosed(conflict)
        try:
            facts = await self._facts.find(command, request)
            if not request.pre_approved:
                await self._require_shown(command, request, facts)
        except ApprovalRequired as waits:
            return ChangeResult(_waits_for_read(waits))
        if request.preview:
            await locks.aclose()  # nothing is changed, and to decide may take long
        permissions = command.required_permissions(facts)
        asked = await self._s.permissions.asks(caller, permissions)
        crossing = await self.leases.crossing(caller, command.paths, preview=request.preview)
        outcome, secrets = await self._outcome(command, facts, request)
        sized = self.rules.sized(permissions, outcome, facts)
        if sized is not permissions:
            permissions, asked = sized, await self._s.permissions.asks(caller, sized)
        provenance = await self._provenance(command, request, outcome, supersedes, asked.grants)
        if request.resolves is None and not request.pre_approved:
            outcome = held_for_review(
                outcome,
                facts,
                self._s.permissions.policy,
                provenance.unseen,
                agent=caller.agent,
                agent_class=caller.agent_class,
            )
        if not request.preview and not await self._keep_hidden(facts):
            raise Outrun
        attempt = Attempt(
            command=command,
            request=request,
            facts=facts,
            provenance=provenance,
            permissions=permissions,
            asks=(*asked.asks, *secrets, *self.rules.uncovers(caller, command.paths)),
            crossing=crossing,
            shows=shows,
        )
        match outcome:
            case ConflictOutcome():
                return await self._as_conflict(attempt, outcome)
            case Apply() if request.preview:
                return await self._as_preview(attempt, outcome)
            case Apply():
                async with self.rules.alone(outcome.paths):
                    return await self._as_change(attempt, outcome)
            case _:
                assert_never(outcome)

    async def _outcome(
        self, command: Command, facts: dict[WorkspacePath, Facts], request: ChangeRequest
    ) -> tuple[Apply | ConflictOutcome, tuple[NeedApproval, ...]]:
        """What is decided; and of a change of large files what it asks for the secrets that it brings."""
        looked = await self._large.excerpted(command, facts)
        if looked is None:
            return await self._decided(command, facts, request), ()
        try:
            outcome = await self._decided(looked.command, looked.facts, request)
        except CallerError as error:
            raise looked.of_file(error) from None
        if isinstance(outcome, ConflictOutcome):
            return outcome, ()  # never: an excerpt is of what the file holds
        return await self._large.applied(looked, outcome), await self._asks_for_secrets(outcome)

    async def _decided(
        self, command: Command, facts: dict[WorkspacePath, Facts], request: ChangeRequest
    ) -> Apply | ConflictOutcome:
        """As `decide`; a refusal shows the lines that the next try needs."""
        try:
            return await self._guarded(await self.decide(command, facts), facts, request)
        except CallerError as error:
            here = facts[error.quotes] if error.quotes is not None else None
            if here is not None and here.held is not None and isinstance(here.held.data, bytes):
                document = here.held.document or await self._s.contents.text(here.held.digest, here.held.data)
                if document is not None:
                    shown = self._s.redaction.shown(request.caller, here.path, here.held.digest, document)
                    quote(error, here.path, here.version, await shown)
            raise

    async def _guarded(
        self, outcome: Apply | ConflictOutcome, facts: Mapping[WorkspacePath, Facts], request: ChangeRequest
    ) -> Apply | ConflictOutcome:
        if not isinstance(outcome, Apply) or request.pre_approved:
            return outcome
        return await self.rules.secrets.guarded(request.caller, outcome, facts)

    # --- what its passages show --------------------------------------------------------

    def _refuse_hidden(self, command: Command, caller: Caller) -> None:
        """Raises Denied."""
        for path in command.paths if command.reads else ():
            if isinstance(self._s.permissions.verdict(caller, "read", path), Deny):
                raise Denied(
                    f"{path}: its content is not shown, so it can't be changed by passages of it",
                    hint="write_file can propose a whole new content, which a person then sees and decides on.",
                    details={"path": path},
                )

    async def _require_shown(
        self, command: Command, request: ChangeRequest, facts: Mapping[WorkspacePath, Facts]
    ) -> None:
        """Raises ApprovalRequired: whether a passage fits tells of what is there, and a person decides on that."""
        for path in command.paths if command.reads else ():
            here = facts[path]
            if here.held is not None and here.version is not None:
                access = self._s.access.content(request.caller, request.call, path)
                await access.confirm(here.version, here.held.digest)

    # --- deciding -------------------------------------------------------------------

    async def decide(self, command: Command, facts: dict[WorkspacePath, Facts]) -> Apply | ConflictOutcome:
        """Raises CallerError. Large texts are compared in a thread or a worker."""
        contents: dict[Digest, Content] = {}
        outlines: dict[Digest, Outline | None] = {}
        spliced: dict[ToSplice, SplicedContent] = {}
        what = f"an earlier version of {command.paths[0]}"
        while True:
            look = partial(_decided_cheaply, command, facts)
            outcome = await to_thread.run_sync(look) if size_of(facts) > OFF_LOOP_BYTES else look()
            if outcome is None:
                outcome = await self._s.workers.run(partial(command.decide, facts))
            if not isinstance(outcome, Need):
                return outcome
            for digest in outcome.digests:
                contents[digest] = await self._s.contents.need(digest, what)
            outlines |= await self._outlines(outcome.outlines)
            spliced |= {wanted: await self._large.made(wanted) for wanted in outcome.spliced}
            facts = {
                path: msgspec.structs.replace(here, contents=contents, outlines=outlines, spliced=spliced)
                for path, here in facts.items()
            }

    async def _provenance(
        self,
        command: Command,
        request: ChangeRequest,
        outcome: Apply | ConflictOutcome,
        supersedes: Seq | None,
        grants: tuple[Seq, ...],
    ) -> Provenance:
        session = self._s.state.sessions.get(request.caller.session)
        unseen: tuple[UnseenChange, ...] = ()
        if not outcome.reverts and request.resolves is None:  # who undoes or resolves did not work from reading
            shown = tuple(path for path in command.paths if self._s.permissions.readable(request.caller, path))
            unseen = await self._sets.unseen(request.caller.session, shown)
        return Provenance(
            operation=request.call.operation.name,
            task=session.task if session else None,
            reason=request.reason,
            reverts=outcome.reverts,
            supersedes=supersedes,
            resolves=request.resolves,
            grants=grants,
            accepted_by=request.accepted_by,
            unseen=unseen,
            brought=bytes_brought(request.call.params),
        )

    async def _keep_hidden(self, facts: Mapping[WorkspacePath, Facts]) -> bool:
        """Keep what nobody may read, now that it is to be changed: undo needs it. False if it is otherwise by now."""
        for path, here in facts.items():
            if here.held is None or not self._s.permissions.hidden_from_all(path):
                continue
            present = await self.observer.keep(path, changing=True)
            if present.entry is None or present.entry.digest != here.held.digest:
                return False
        return True

    async def _asks(self, attempt: Attempt, plan: Apply) -> tuple[NeedApproval, ...]:
        """All that a person must say yes to, unless one made the request."""
        if attempt.request.pre_approved:
            return ()
        caller, facts, unseen = attempt.request.caller, attempt.facts, attempt.provenance.unseen
        look = partial(self.rules.asks, caller, plan, facts, unseen)
        large = max(size_of(facts), *(len(content.data) for content in plan.contents.values()), 0) > OFF_LOOP_BYTES
        asked = await to_thread.run_sync(look) if large else look()
        return (*attempt.asks, *asked, *await self._asks_for_secrets(plan))

    async def _asks_for_secrets(self, plan: Apply) -> tuple[NeedApproval, ...]:
        return await self.rules.secrets.asks(plan) if self._s.permissions.policy.edits.secrets == "ask" else ()

    # --- outcomes -------------------------------------------------------------------

    async def _as_conflict(self, attempt: Attempt, outcome: ConflictOutcome) -> ChangeResult:
        answer = await self._recorder.record(attempt, outcome)
        return ChangeResult(_warned(answer, attempt.crossing))

    async def _as_preview(self, attempt: Attempt, plan: Apply) -> ChangeResult:
        would_be = "waiting" if await self._asks(attempt, plan) else "applied" if plan.paths else "conflict"
        person = attempt.request.caller.is_person
        planned = attempt.crossing.warned(plan)
        preview = await self.answers.of_plan(planned, attempt.shows, would_be=would_be, whole=person)
        unseen = unseen_texts(attempt.provenance.unseen, attempt.shows)
        return ChangeResult(msgspec.structs.replace(preview, unseen=unseen), plan)

    async def _as_change(self, attempt: Attempt, plan: Apply) -> ChangeResult:
        """Apply it, or ask a person first; what of an undo does not fit waits beside it."""
        request, shows = attempt.request, attempt.shows
        asks = await self._asks(attempt, plan)
        applied: tuple[Seq, ChangeApplied] | None = None
        if plan.paths and not asks:
            crossed, leases = attempt.crossing.warned(plan), attempt.crossing.leases
            applied = await self.effects.carry_out(crossed, attempt.provenance, _caused(request), leases=leases)
        conflicts = await self._recorder.record_partial(attempt, plan)
        if applied is not None:
            version, event = applied
            await self._recorder.supersede(attempt, event.change, plan)
            answer = await self.answers.of_applied(version, event, shows, warnings=event.fit.warnings)
        elif plan.paths:
            answer = _warned(await self._ask(attempt, plan, asks), attempt.crossing)
        else:
            answer = await self.answers.of(conflicts[0], shows)
        return ChangeResult(answer, plan, conflicts)

    async def _ask(self, attempt: Attempt, plan: Apply, asks: tuple[NeedApproval, ...]) -> r.ChangeAnswer:
        """Put a plan before a person, and answer `waiting`."""
        asked = self.request_of(plan, attempt.provenance, rule=rules(asks), permissions=attempt.permissions)
        event = NewEvent(f"approval:{plan.paths[0].path}", asked)
        recorded = await self._s.journal.append(AppendBatch((event,), _caused(attempt.request), new_blobs(plan)))
        return await self.answers.of(recorded[0].seq, attempt.shows)

    def request_of(
        self,
        plan: Apply,
        provenance: Provenance,
        *,
        rule: str,
        permissions: tuple[PermissionCheck, ...],
        renews: Seq | None = None,
    ) -> ApprovalRequested:
        """The event that asks a person for a plan."""
        return ApprovalRequested(
            provenance=provenance,
            paths=plan.paths,
            rule=rule,
            permissions=permissions,
            expires_at=self._s.clock.now_ms() + self._s.permissions.policy.limits.approval_ttl_s * 1000,
            fit=plan.fit,
            directories=plan.directories,
            renews=renews,
        )

    async def _outlines(self, sources: Iterable[Source]) -> dict[Digest, Outline | None]:
        """The outlines that a decision asks for, by content."""
        outline = partial(self._s.parser.outline, compiled=True)
        return {source.digest: await outline(source.path, source.digest, source.data) for source in sources}


def rules(asks: Iterable[NeedApproval]) -> str:
    """The rules that ask, and why, in words."""
    return "; ".join(dict.fromkeys(f"{ask.rule}: {ask.reason}" for ask in asks))


def _waits_for_read(waits: ApprovalRequired) -> r.ChangeAnswer:
    """The answer to a change of what its author has to be shown first."""
    message = f"nothing was changed: {waits.message}. {waits.hint}"
    return r.ChangeAnswer(
        status="waiting",
        message=message,
        approval=waits.details["approval"],
        paths=(r.ChangedPath(path=waits.details["path"]),),
    )


class CallerBusy(CallerError, code="changed_while_written", hint="Try again; another program is writing this file."):
    """Something else keeps changing the file between our look and our write."""

    def __init__(self, path: WorkspacePath) -> None:
        super().__init__(f"{path} changed again and again while it was written", details={"path": path})


def _caused(request: ChangeRequest) -> Origin:
    """A change that resolves a conflict is caused by it."""
    origin = request.caller.origin(request.call)
    return origin if request.resolves is None else msgspec.structs.replace(origin, cause=request.resolves)


def _decided_cheaply(command: Command, facts: Mapping[WorkspacePath, Facts]) -> Outcome | None:
    """What is decided; None where that may take long, and is for a worker."""
    return None if costly(command, facts) else command.decide(facts)


def _warned(answer: r.ChangeAnswer, crossing: LeaseOverlap) -> r.ChangeAnswer:
    """The answer, with warnings of others' leases."""
    return msgspec.structs.replace(answer, warnings=(*answer.warnings, *crossing.warnings))
