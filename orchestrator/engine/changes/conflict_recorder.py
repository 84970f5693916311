"""Changes that could not be applied: they wait as conflicts, until a later change of their author supersedes them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from orchestrator.api import results as r
from orchestrator.core.change import PermissionCheck, Provenance
from orchestrator.core.content import LargeContent, LineHunk, LineRange, SeenLines, digest_of
from orchestrator.core.decisions.commands import Command
from orchestrator.core.decisions.decision import Apply, ConflictOutcome, Facts
from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.conflicts import ConflictFound, ConflictSides, ConflictSuperseded
from orchestrator.core.events.files import ContentShown
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.core.policy.rules import NeedApproval
from orchestrator.core.positions import parse_seq
from orchestrator.core.projections.pending import Conflict
from orchestrator.core.text.answer_space import fit, render
from orchestrator.engine.caller import ChangeRequest
from orchestrator.engine.changes.change_answers import Answers
from orchestrator.engine.changes.diffs import Shows
from orchestrator.engine.leases import LeaseOverlap
from orchestrator.engine.reads.stale_read_notices import unseen_texts
from orchestrator.engine.services import Services
from orchestrator.ports.journal import AppendBatch, NewEvent

SHOWN_LINES, SHOWN_TOKENS = 60, 1_200
"""Current lines that a conflict shows; they fit beside its JSON in what every client passes on."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One try at a command: decided, and neither recorded nor carried out."""

    command: Command
    request: ChangeRequest
    facts: Mapping[WorkspacePath, Facts]
    provenance: Provenance
    permissions: tuple[PermissionCheck, ...]
    asks: tuple[NeedApproval, ...]  # what a person must say yes to, as far as policy goes by path and action
    crossing: LeaseOverlap
    shows: Shows


class ConflictRecorder:
    """Records conflicts, and closes them."""

    def __init__(self, services: Services, answers: Answers) -> None:
        self._s, self._answers = services, answers

    async def record(self, attempt: Attempt, outcome: ConflictOutcome) -> r.ChangeAnswer:
        """A change that could not be applied waits as a whole."""
        wanted, provenance, shows = attempt.request, attempt.provenance, attempt.shows
        here = attempt.facts[outcome.path]
        if wanted.preview:
            return r.ChangeAnswer(
                status="preview",
                success=True,
                would_be="conflict",
                message="nothing was changed; sent without preview, this would be a conflict",
                paths=(r.ChangedPath(path=outcome.path),),
                unseen=unseen_texts(provenance.unseen, shows),
            )
        shown = await self._current_lines(shows, outcome, here) if shows(outcome.path) else None
        session, origin = wanted.caller.session, wanted.caller.origin(wanted.call)
        seen = NewEvent(f"session:{session}", ContentShown(session=session, seen=shown[1])) if shown else None
        seq, known = await self._wait(provenance, outcome, here, origin, seen=(seen,) if seen else ())
        answer = await self._answers.of(seq, shows)
        return msgspec.structs.replace(answer, shown=shown[0]) if shown is not None and not known else answer

    async def record_partial(self, attempt: Attempt, plan: Apply) -> tuple[Seq, ...]:
        """The parts of an undo that wait for a person, beside those that fit."""
        seqs = list[Seq]()
        for outcome in plan.conflicts:
            claims = not plan.paths and not seqs  # a retry of the request finds the change, or else the first conflict
            origin = attempt.request.caller.origin(attempt.request.call if claims else None)
            here = attempt.facts[outcome.path]
            seqs.append((await self._wait(attempt.provenance, outcome, here, origin))[0])
        return tuple(seqs)

    async def _wait(
        self,
        provenance: Provenance,
        outcome: ConflictOutcome,
        here: Facts,
        origin: Origin,
        *,
        seen: tuple[NewEvent, ...] = (),
    ) -> tuple[Seq, bool]:
        """The conflict under which a change waits, and whether it did so already.

        It does where the same agent proposed the same, met by the same content.
        """
        found = found_of(provenance, outcome, here)
        proposed = found.sides.proposed
        for conflict in self._s.state.pending.open_conflicts(outcome.path):
            same = [*conflict.found.sides] == [*found.sides] and conflict.agent == origin.agent
            if same and (not here.content_hidden or conflict.found.sides.current_version == here.version):
                return conflict.seq, True
        events = (NewEvent(f"conflict:{outcome.path}", found), *seen)
        blobs = ((proposed, outcome.proposed),) if proposed and isinstance(outcome.proposed, bytes) else ()
        recorded = await self._s.journal.append(AppendBatch(events, origin, blobs))
        return recorded[0].seq, False

    async def _current_lines(self, shows: Shows, outcome: ConflictOutcome, here: Facts) -> tuple[str, SeenLines] | None:
        """The lines that the file holds where the change wanted to go."""
        if here.held is None or here.version is None or not outcome.regions or isinstance(here.held.data, LargeContent):
            return None
        document = await self._s.contents.text(here.held.digest, here.held.data)
        if document is None:
            return None
        first = max(1, outcome.regions[0].current.start - 2)
        last = min(document.line_count, outcome.regions[-1].current.end + 3, first + SHOWN_LINES - 1)
        current = await shows.text(outcome.path, here.held.digest, document)
        last = fit(current.lines, first, last, SHOWN_TOKENS)
        text, cut = render(current.lines[first - 1 : last], first)
        seen = SeenLines(
            path=outcome.path,
            version=here.version,
            ranges=current.hidden.without(LineRange(first, last)),
            total_lines=document.line_count,
            cut=bool(cut),
        )
        return f"{outcome.path} at {show(here.version)}, where the change conflicts:\n{text}", seen

    # --- conflicts that a change supersedes -----------------------------------------

    def named(self, command: Command, wanted: ChangeRequest) -> Seq | None:
        """The conflict that `supersedes` names. Raises ParameterInvalid."""
        if wanted.supersedes is None:
            return None
        number = parse_seq(wanted.supersedes, parameter="supersedes")
        conflict = self._s.state.pending.conflict(number)
        if conflict is None or conflict.found.path not in command.paths:
            raise ParameterInvalid("supersedes", f"{show(number)} is no conflict about {command.paths[0]}")
        if conflict.agent != wanted.caller.agent:
            raise ParameterInvalid("supersedes", f"{show(number)} is another agent's conflict")
        return number

    async def supersede(self, attempt: Attempt, change: Seq, plan: Apply) -> None:
        """Close the caller's own conflicts that the change names or covers."""
        wanted = attempt.request
        named = self._s.state.pending.open_conflict(attempt.provenance.supersedes or 0)
        closed = [named] if named is not None else []
        for item in plan.paths:
            for conflict in self._s.state.pending.open_conflicts(item.path):
                if conflict.agent != wanted.caller.agent or conflict in closed or conflict.seq == wanted.resolves:
                    continue
                if conflict.found.sides.current == item.before and _covers(conflict, item.hunks):
                    closed.append(conflict)
        if closed:
            origin = msgspec.structs.replace(wanted.caller.origin(), cause=change)
            events: list[tuple[str, Event]] = [
                (f"conflict:{c.found.path}", ConflictSuperseded(conflict=c.seq, change=change)) for c in closed
            ]
            await self._s.notes.append(origin, *events)


def found_of(provenance: Provenance, outcome: ConflictOutcome, here: Facts) -> ConflictFound:
    """The event of a conflict that a decision came to."""
    if outcome.reverts:
        provenance = msgspec.structs.replace(provenance, reverts=outcome.reverts, unseen=())
    return ConflictFound(
        provenance=provenance,
        path=outcome.path,
        sides=ConflictSides(
            base=outcome.base,
            current=here.held.digest if here.held else None,
            proposed=digest_of(outcome.proposed) if outcome.proposed is not None else None,
            base_version=outcome.base_version,
            current_version=here.version,
            regions=outcome.regions,
        ),
        why=outcome.why,
        mode=here.held.mode if here.held else None,
        names=outcome.names,
        fit=outcome.fit,
    )


def _covers(conflict: Conflict, hunks: tuple[LineHunk, ...]) -> bool:
    """Whether a change made to the very content of a conflict touches each of its regions."""
    return bool(conflict.found.sides.regions) and all(
        any(h.old_start <= region.current.end and region.current.start <= h.old_start + h.old_len for h in hunks)
        for region in conflict.found.sides.regions
    )
