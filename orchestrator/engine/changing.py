"""Changes: from a command to an answer, by way of base, policy, decision, approval or conflict, and disk."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TypeVar

import msgspec
from anyio import to_thread

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.content import IntendedPath, LineHunk, LineRange, digest_of
from orchestrator.core.decisions.bases import implied_base
from orchestrator.core.decisions.commands import Command, Wish
from orchestrator.core.decisions.decision import Apply, Base, Clash, Facts, Held, Need, Outcome
from orchestrator.core.errors import (
    CallerError,
    Denied,
    ParameterInvalid,
    StaleBase,
    VersionNotKept,
)
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.conflicts import ApprovalRequested, ConflictFound, ConflictSuperseded
from orchestrator.core.events.files import SeenLines, SessionNoted
from orchestrator.core.ids import Digest, Seq, SessionId, WorkspacePath, parse_digest, parse_seq, show
from orchestrator.core.policy.rules import Deny, NeedApproval
from orchestrator.core.projections.pending import Conflict
from orchestrator.core.text.excerpt import render
from orchestrator.engine.answers import Answers, Shows
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.effects import Applied, Effects, Intent
from orchestrator.engine.landings import Apart
from orchestrator.engine.observing import Observer, Present, required
from orchestrator.engine.reservations import Crossing, Reservations
from orchestrator.engine.services import OFF_LOOP_BYTES, Services, denied
from orchestrator.ports import Displaced, NewEvent, Unit

Told = TypeVar("Told", Apply, r.ChangeAnswer)

TRIES = 3
SHOWN_LINES = 60
"""Current lines that a conflict shows."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A change as its caller wants it, apart from what it does."""

    caller: Caller
    call: Call
    base: p.Version | None = None
    preview: bool = False
    supersedes: p.Version | None = None
    reason: str = ""
    settles: Seq | None = None
    vouched: bool = False  # a person with the approver code stands behind it: ask counts as allow


class Carried(msgspec.Struct, frozen=True):
    """What became of a command; no plan where it is a conflict as a whole."""

    answer: r.ChangeAnswer
    plan: Apply | None = None
    conflicts: tuple[Seq, ...] = ()  # found beside what was applied


class Changer:
    """Carries commands through."""

    def __init__(self, services: Services, observer: Observer, effects: Effects, answers: Answers) -> None:
        self._s, self._observer, self._effects, self._answers = services, observer, effects, answers
        self.reservations = Reservations(services)

    async def change(self, command: Command, wanted: Wanted) -> r.ChangeAnswer:
        """Decide and carry out. Raises CallerError; a conflict and a wait are answers, not errors."""
        return (await self.carry(command, wanted)).answer

    async def carry(self, command: Command, wanted: Wanted) -> Carried:
        """As `change`, with the plan that was decided."""
        superseded = self._superseded(command, wanted)
        await self.reservations.wait(wanted.caller, command.paths, preview=wanted.preview)
        async with self._s.locks.alone(command.paths):
            for _ in range(TRIES):
                facts = await self._facts(command, wanted)
                asks = self._judge(command, wanted, facts)
                shows = partial(self._s.readable, wanted.caller)
                if command.reads and not all(map(shows, command.paths)):
                    hidden = next(path for path in command.paths if not shows(path))
                    raise Denied(
                        f"{hidden}: its content is not shown, so it can't be changed by passages of it",
                        hint="write_file can propose a whole new content, which a person then sees and decides on.",
                        details={"path": hidden},
                    )
                crossing = await self.reservations.crossing(wanted.caller, command.paths, preview=wanted.preview)
                outcome = await self._decide(command, facts)
                if isinstance(outcome, Clash):
                    answer = await self._conflict(command, wanted, outcome, facts, shows=shows)
                    return Carried(_warned(answer, crossing))
                outcome = _warned(outcome, crossing)
                if wanted.preview:
                    would_be = "waiting" if asks else "applied" if outcome.parts else "conflict"
                    return Carried(await self._answers.of_plan(outcome, would_be=would_be, shows=shows), outcome)
                intent = self._intent(command, wanted, superseded, leases=crossing.leases)
                if outcome.reverts:
                    intent = msgspec.structs.replace(intent, reverts=outcome.reverts)
                if asks and outcome.parts:
                    conflicts = await self._conflicts(command, wanted, outcome, facts)
                    waiting = await self.request(outcome, intent, asks, shows=shows)
                    return Carried(_warned(waiting, crossing), outcome, conflicts)
                if not outcome.parts:
                    conflicts = await self._conflicts(command, wanted, outcome, facts)
                    return Carried(await self._answers.of(conflicts[0], shows=shows), outcome, conflicts)
                try:
                    applied = await self._effects.carry_out(outcome, intent)
                except (Displaced, Apart):
                    continue
                conflicts = await self._conflicts(command, wanted, outcome, facts)
                await self._supersede(wanted, applied, outcome, superseded)
                answer = await self._answers.of_applied(
                    applied.recorded,
                    applied.event,
                    shows=shows,
                    intended=applied.intended,
                    warnings=applied.warnings,
                )
                return Carried(answer, outcome, conflicts)
        raise CallerBusy(command.paths[0])

    # --- facts ----------------------------------------------------------------------

    async def _facts(self, command: Command, wanted: Wanted) -> dict[WorkspacePath, Facts]:
        facts = {}
        for path in command.paths:
            present = await self._observer.look(path, content=True)
            base = await self._base(command, wanted, present)
            version = present.entry.version if present.entry else None
            blind = not self._s.readable(wanted.caller, path)
            facts[path] = Facts(path, self._held(present), version, base, blind=blind)
        return facts

    def _held(self, present: Present) -> Held | None:
        if present.stat is None:
            return None
        _, digest, data = required(present)
        return Held(data, digest, present.stat.mode, self._s.contents.document(digest, data))

    async def _base(self, command: Command, wanted: Wanted, present: Present) -> Base | None:
        """The base of CONTRACT's three rules; the third, the present content, is None here."""
        path = present.path
        if path not in command.based:
            return None
        if wanted.base is not None and len(command.based) > 1 and not _is_version(wanted.base):
            raise ParameterInvalid("base", "must be '@N' for a change of several files")
        if wanted.base is not None:
            return await self._named_base(wanted.base, path, readable=self._s.readable(wanted.caller, path))
        session = self._s.state.sessions.get(wanted.caller.session)
        implied = implied_base(command.base_rule, session.seen.get(path) if session else None)
        if implied is None:
            return None
        version, whole = implied
        entry = present.entry
        if entry is not None and entry.version == version and entry.digest is not None:
            return Base(version, entry.digest, True, whole)
        row = await self._s.journal.version_at(path, version)
        if row is None or row.digest is None:
            return None
        return Base(version, row.digest, True, whole)

    async def _named_base(self, raw: p.Version, path: WorkspacePath, *, readable: bool) -> Base:
        digest = parse_digest(raw) if isinstance(raw, str) else None
        if digest is not None and not readable:
            raise Denied(  # a guessed content could be tried by its hash
                f"{path}: its content is not shown, so its hash is no base",
                hint="Send the version_id of file_info as base.",
                details={"path": path},
            )
        if digest is not None:
            row = await self._s.journal.version_with(path, digest)
            if row is None:
                raise StaleBase(f"{path} never had the content {digest}", details={"path": path})
            return Base(row.seq, digest)
        at = parse_seq(raw, parameter="base")
        if at > self._s.journal.head:
            raise ParameterInvalid("base", f"{show(at)} is ahead of the journal")
        row = await self._s.journal.version_at(path, at)
        if row is None or not row.present:
            raise StaleBase(f"{path} was not there at {show(at)}", details={"path": path, "base": show(at)})
        if row.digest is None:
            raise VersionNotKept(f"the content of {path} at {show(at)} was never hashed")
        return Base(row.seq, row.digest)

    # --- judging and deciding -------------------------------------------------------

    def _judge(
        self, command: Command, wanted: Wanted, facts: Mapping[WorkspacePath, Facts]
    ) -> tuple[NeedApproval, ...]:
        """What a person must say yes to. Raises Denied."""
        asks = []
        for wish in command.wishes(facts):
            verdict = self._s.verdict(wanted.caller, wish.action, wish.path, others_work=wish.others_work, on_disk=True)
            if isinstance(verdict, Deny):
                raise denied(wish.action, wish.path, verdict)
            if isinstance(verdict, NeedApproval):
                asks.append(verdict)
        hidden = [path for path in command.paths if not self._s.readable(wanted.caller, path)]
        if 0 < len(hidden) < len(command.paths):
            asks.append(NeedApproval("builtin.uncover", f"it brings what {hidden[0]} hides to a path that is shown"))
        return () if wanted.vouched else tuple(asks)

    def refuse_early(self, caller: Caller, *wishes: Wish) -> None:
        """Refuse by name what policy denies whatever is there, before anything is opened. Raises Denied."""
        for wish in wishes:
            verdict = self._s.verdict(caller, wish.action, wish.path, others_work=wish.others_work)
            if isinstance(verdict, Deny):
                raise denied(wish.action, wish.path, verdict)

    async def _decide(self, command: Command, facts: dict[WorkspacePath, Facts]) -> Apply | Clash:
        while True:
            size = max((len(f.held.data) for f in facts.values() if f.held), default=0)
            if size > OFF_LOOP_BYTES:
                outcome: Outcome = await to_thread.run_sync(partial(command.decide, facts))
            else:
                outcome = command.decide(facts)
            if not isinstance(outcome, Need):
                return outcome
            fetched: dict[Digest, bytes] = {}
            for digest in outcome.digests:
                fetched[digest] = await self._s.contents.need(digest, f"{command.paths[0]} ({digest[:19]}…)")
            facts = {path: msgspec.structs.replace(f, contents={**f.contents, **fetched}) for path, f in facts.items()}

    # --- outcomes -------------------------------------------------------------------

    def _intent(
        self, command: Command, wanted: Wanted, superseded: Conflict | None, *, leases: tuple[Seq, ...] = ()
    ) -> Intent:
        session = self._s.state.sessions.get(wanted.caller.session)
        return Intent(
            operation=wanted.call.operation.name,
            origin=wanted.caller.origin(wanted.call),
            reverts=command.reverts,
            supersedes=superseded.seq if superseded else None,
            settles=wanted.settles,
            task=session.task if session else None,
            reason=wanted.reason,
            leases=leases,
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

    async def _conflict(
        self, command: Command, wanted: Wanted, clash: Clash, facts: Mapping[WorkspacePath, Facts], *, shows: Shows
    ) -> r.ChangeAnswer:
        here = facts[clash.path]
        if wanted.preview:
            return r.ChangeAnswer(
                status="preview",
                success=True,
                would_be="conflict",
                message="nothing was changed; sent without preview, this would be a conflict",
                paths=(r.ChangedPath(path=clash.path),),
            )
        known = self._known_conflict(wanted, clash, here)
        if known is not None:
            return await self._answers.of(known.seq, shows=shows)
        events: list[NewEvent] = [self._found(command, wanted, clash, here)]
        shown = self._current_lines(clash, here) if shows(clash.path) else None
        if shown is not None:
            events.append(NewEvent(f"session:{wanted.caller.session}", _noted(wanted.caller.session, shown[1])))
        blobs = ((digest_of(clash.proposed), clash.proposed),) if clash.proposed is not None else ()
        recorded = await self._s.journal.append(Unit(tuple(events), wanted.caller.origin(wanted.call), blobs))
        answer = await self._answers.of(recorded[0].seq, shows=shows)
        return msgspec.structs.replace(answer, shown=shown[0]) if shown is not None else answer

    def _found(self, command: Command, wanted: Wanted, clash: Clash, here: Facts) -> NewEvent:
        session = self._s.state.sessions.get(wanted.caller.session)
        found = ConflictFound(
            path=clash.path,
            base=clash.base,
            base_version=clash.base_version,
            current=here.held.digest if here.held else None,
            current_version=here.version,
            proposed=digest_of(clash.proposed) if clash.proposed is not None else None,
            regions=clash.regions,
            mode=here.held.mode if here.held else None,
            operation=wanted.call.operation.name,
            reason=wanted.reason,
            task=session.task if session else None,
            reverts=clash.reverts or command.reverts,
        )
        return NewEvent(f"conflict:{clash.path}", found)

    async def _conflicts(
        self, command: Command, wanted: Wanted, plan: Apply, facts: Mapping[WorkspacePath, Facts]
    ) -> tuple[Seq, ...]:
        """The parts of an undo that wait for a person, beside those that fit."""
        seqs = []
        for clash in plan.clashes:
            known = self._known_conflict(wanted, clash, facts[clash.path])
            if known is not None:
                seqs.append(known.seq)
                continue
            blobs = ((digest_of(clash.proposed), clash.proposed),) if clash.proposed is not None else ()
            event = self._found(command, wanted, clash, facts[clash.path])
            claims = not plan.parts and not seqs  # a retry of the request finds the change, or else the first conflict
            origin = wanted.caller.origin(wanted.call if claims else None)
            recorded = await self._s.journal.append(Unit((event,), origin, blobs))
            seqs.append(recorded[0].seq)
        return tuple(seqs)

    def _known_conflict(self, wanted: Wanted, clash: Clash, here: Facts) -> Conflict | None:
        """The same change by the same agent, met by the same content: it waits already."""
        current = here.held.digest if here.held else None
        proposed = digest_of(clash.proposed) if clash.proposed is not None else None
        for conflict in self._s.state.pending.open_conflicts(clash.path):
            found = conflict.found
            same = (found.base, found.current, found.proposed) == (clash.base, current, proposed)
            if same and conflict.agent == wanted.caller.agent and wanted.call.request_id is None:
                return conflict
        return None

    def _current_lines(self, clash: Clash, here: Facts) -> tuple[str, SeenLines] | None:
        """The lines that the file holds where the change wanted to go."""
        if here.held is None or here.version is None or not clash.regions:
            return None
        document = self._s.contents.document(here.held.digest, here.held.data)
        if document is None:
            return None
        first = max(1, clash.regions[0].current_start - 2)
        region = clash.regions[-1]
        last = min(document.line_count, region.current_start + region.current_len + 3, first + SHOWN_LINES - 1)
        text, cut = render(document.lines[first - 1 : last], first)
        seen = SeenLines(
            path=clash.path,
            version=here.version,
            ranges=(LineRange(first, last),),
            total_lines=document.line_count,
            cut=bool(cut),
        )
        return f"{clash.path} at {show(here.version)}, where the change clashes:\n{text}", seen

    # --- conflicts that a change makes moot -----------------------------------------

    def _superseded(self, command: Command, wanted: Wanted) -> Conflict | None:
        if wanted.supersedes is None:
            return None
        number = parse_seq(wanted.supersedes, parameter="supersedes")
        conflict = self._s.state.pending.conflict(number)
        if conflict is None or conflict.found.path not in command.paths:
            raise ParameterInvalid("supersedes", f"{show(number)} is no conflict about {command.paths[0]}")
        if conflict.agent != wanted.caller.agent:
            raise ParameterInvalid("supersedes", f"{show(number)} is another agent's conflict")
        return conflict

    async def _supersede(self, wanted: Wanted, applied: Applied, plan: Apply, named: Conflict | None) -> None:
        """Close the caller's own conflicts that the change names or covers."""
        closed = [named] if named is not None and named.state == "open" else []
        for part in plan.parts:
            for conflict in self._s.state.pending.open_conflicts(part.path):
                if conflict.agent != wanted.caller.agent or conflict in closed or conflict.seq == wanted.settles:
                    continue
                if conflict.found.current == part.before and _covers(conflict, part.hunks):
                    closed.append(conflict)
        if closed:
            origin = Origin(
                session=wanted.caller.session,
                agent=wanted.caller.agent,
                owner=wanted.caller.owner,
                cause=applied.change,
            )
            events: list[tuple[str, Event]] = [
                (f"conflict:{c.found.path}", ConflictSuperseded(conflict=c.seq, change=applied.change)) for c in closed
            ]
            await self._s.append(origin, *events)


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
                directory=part.directory,
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
    )


class CallerBusy(CallerError):
    """Something else keeps changing the file between our look and our write."""

    code = "changed_while_written"
    hint = "Try again; another program is writing this file."

    def __init__(self, path: WorkspacePath) -> None:
        super().__init__(f"{path} changed again and again while it was written", details={"path": path})


def _warned(told: Told, crossing: Crossing) -> Told:
    """A plan or an answer, with what is to be said of others' leases."""
    if not crossing.warnings:
        return told
    return msgspec.structs.replace(told, warnings=(*told.warnings, *crossing.warnings))


def _covers(conflict: Conflict, hunks: tuple[LineHunk, ...]) -> bool:
    """Whether a change made to the very content of a conflict touches each of its regions."""
    return bool(conflict.found.regions) and all(
        any(
            h.old_start <= region.current_start + region.current_len and region.current_start <= h.old_start + h.old_len
            for h in hunks
        )
        for region in conflict.found.regions
    )


def _noted(session: SessionId, seen: SeenLines) -> SessionNoted:
    return SessionNoted(session=session, seen=seen)


def _is_version(raw: p.Version) -> bool:
    return not isinstance(raw, str) or parse_digest(raw) is None
