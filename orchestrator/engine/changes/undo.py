"""revert and rollback: undo of one change, or of many as one; later work is kept."""

from __future__ import annotations

from typing import Literal

import anyio.lowlevel

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api import rollback as u
from orchestrator.core.change import PathChange, PermissionCheck
from orchestrator.core.decisions.commands import HistoryMoved, Undo
from orchestrator.core.decisions.decision import Apply
from orchestrator.core.decisions.undo_selection import UndoFilter, UndoSelection
from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.events.sessions import TaskBegun
from orchestrator.core.ids import SessionId, parse_seq, show
from orchestrator.core.timestamps import Timestamp, parse_timestamp
from orchestrator.engine.caller import Call, Caller, ChangeRequest
from orchestrator.engine.changes.answers import Answers
from orchestrator.engine.changes.diffs import Diffs
from orchestrator.engine.changes.facts import SLICE
from orchestrator.engine.changes.pipeline import CallerBusy, ChangePipeline, ChangeResult
from orchestrator.engine.changes.undo_selection import OUTSIDE, UndoSelector
from orchestrator.engine.services import Services
from orchestrator.ports.journal import EventFilter

TRIES = 5
SHOWN_DIFF_LINES = 600
"""Of all files of a rollback together; `get_diff` and a rollback of fewer files show the rest."""


class Undoer:
    """Finds what is to be undone, and has its inverse made."""

    def __init__(self, services: Services, changer: ChangePipeline, answers: Answers) -> None:
        self._s, self._changer = services, changer
        self._chooser, self._diffs = UndoSelector(services, answers), Diffs(services.contents)

    async def revert(self, caller: Caller, call: Call, params: p.Revert) -> r.ChangeAnswer:
        chosen = await self._chooser.one(parse_seq(params.change, parameter="change"))
        carried = await self._carry(caller, call, params, chosen)
        return carried.answer if len(chosen.authors) == 1 else await self._told(caller, carried)

    async def rollback(self, caller: Caller, call: Call, params: u.Rollback) -> u.RollbackAnswer:
        span = self._span(params)
        await self._known(span)
        chosen = await self._chooser.span(span)
        return await self._told(caller, await self._carry(caller, call, params, chosen))

    def _span(self, params: u.Rollback) -> UndoFilter:
        head = self._s.journal.head
        span = UndoFilter(
            agent=params.agent,
            session=params.session,
            task=parse_seq(params.task, parameter="task") if params.task is not None else None,
            globs=params.globs,
            since=parse_timestamp(params.since, parameter="since", head=head) if params.since is not None else None,
            until=parse_timestamp(params.until, parameter="until", head=head) if params.until is not None else None,
        )
        if span == UndoFilter():
            raise ParameterInvalid(
                "agent",
                "is missing, and so is everything else that says what to roll back",
                hint="Give at least one of agent, session, task, globs, since, until.",
            )
        return span

    async def _known(self, span: UndoFilter) -> None:
        """A misspelt name must not read as "nothing to undo"."""
        if span.agent not in (None, OUTSIDE) and not any(
            name == span.agent for name in (agent.name for agent in self._s.state.identities)
        ):
            raise ParameterInvalid(
                "agent", f"{span.agent!r} never called here", hint="Agents are named as `blame` shows them."
            )
        journal = self._s.journal
        if span.session is not None and not await journal.newest(EventFilter(session=SessionId(span.session)), limit=1):
            raise ParameterInvalid(
                "session", f"{span.session!r} did nothing here", hint="`orchestrator log --json` names sessions."
            )
        if span.task is not None:
            begun = await journal.event(span.task)
            if begun is None or not isinstance(begun.event, TaskBegun):
                raise ParameterInvalid(
                    "task", f"{show(span.task)} is no task", hint="`orchestrator log --kind task_begun`"
                )
        for name, moment in (("since", span.since), ("until", span.until)):
            self._not_ahead(name, moment)

    def _not_ahead(self, name: str, moment: Timestamp | None) -> None:
        head = self._s.journal.head
        if moment is not None and moment.seq is not None and moment.seq > head:
            raise ParameterInvalid(name, f"{show(moment.seq)} is ahead of the journal, which ends at {show(head)}")

    async def _carry(
        self, caller: Caller, call: Call, params: p.Revert | u.Rollback, chosen: UndoSelection
    ) -> ChangeResult:
        others = frozenset(path for path, agents in chosen.authors.items() if agents != {caller.agent})
        touched = tuple(sorted(chosen.authors))
        self._changer.permissions.refuse_early(
            caller, *(PermissionCheck("revert", path, path in others) for path in touched)
        )
        wanted = ChangeRequest(caller=caller, call=call, preview=params.preview, reason=params.reason)
        for _ in range(TRIES):
            histories = await self._chooser.histories(chosen)
            command = Undo(
                histories=histories,
                modes=await self._s.journal.modes(histories.keys()),
                chosen=chosen.keys,
                others_work=others,
                touched=touched,
                folders=chosen.folders,
            )
            try:
                return await self._changer.execute(command, wanted)
            except HistoryMoved:
                continue
        raise CallerBusy(touched[0])

    # --- what is told -----------------------------------------------------------------

    async def _told(self, caller: Caller, carried: ChangeResult) -> u.RollbackAnswer:
        plan = carried.plan
        fields = {name: getattr(carried.answer, name) for name in carried.answer.__struct_fields__}
        if plan is None:
            return u.RollbackAnswer(**fields, conflicts=tuple(filter(None, (carried.answer.conflict,))))
        conflicts = tuple(map(show, carried.conflicts))
        if conflicts and carried.answer.status in ("applied", "waiting"):
            fields["message"] += f"; {len(conflicts)} files overlap with later work and wait as conflicts"
        return u.RollbackAnswer(
            **fields,
            changes=tuple(map(show, plan.reverts)),
            files=await self._files(caller, plan, conflicts),
            dependencies=tuple(
                u.Dependency(
                    path=item.path,
                    change=show(item.change),
                    agent=item.agent or OUTSIDE,
                    on=tuple(map(show, item.on)),
                    overlaps=item.overlaps,
                )
                for item in plan.dependencies
            ),
            conflicts=conflicts,
        )

    async def _files(self, caller: Caller, plan: Apply, conflicts: tuple[str, ...]) -> tuple[u.UndoneFile, ...]:
        files: list[u.UndoneFile] = []
        left = {change.moved_from for change in plan.paths}
        held = {change.path: change.before for change in plan.paths}
        room = SHOWN_DIFF_LINES
        for number, change in enumerate(plan.paths, 1):
            if change.path in left and change.after is None:
                continue
            if number % SLICE == 0:
                await anyio.lowlevel.checkpoint()
            names = (change.path, *plan.names.get(change.path, ()))
            readable = all(self._s.readable(caller, name) for name in names)
            shown = None
            if readable and room > 0 and not change.binary:
                shown = await self._diffs.of_one(change, held.get(change.moved_from or change.path), plan.contents)
            room -= shown.count("\n") if shown else 0
            files.append(
                u.UndoneFile(
                    path=change.path,
                    status=_status(change),
                    added=sum(hunk.new_len for hunk in change.hunks) if readable else None,
                    removed=sum(hunk.old_len for hunk in change.hunks) if readable else None,
                    diff=shown,
                    moved_from=change.moved_from,
                )
            )
        for number, clash in enumerate(plan.conflicts):
            conflict = conflicts[number] if number < len(conflicts) else None
            files.append(u.UndoneFile(path=clash.path, status="conflict", conflict=conflict))
        return tuple(sorted(files, key=lambda item: item.path))


def _status(change: PathChange) -> Literal["changed", "created", "deleted", "moved"]:
    if change.moved_from is not None:
        return "moved"
    if change.before is None:
        return "created"
    return "deleted" if change.after is None else "changed"
