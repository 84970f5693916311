"""revert and rollback: undo of one change, or of many as one; later work is kept."""

from __future__ import annotations

from typing import Literal

import anyio.lowlevel

from orchestrator.api import history as u
from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.change import PathChange, PermissionCheck
from orchestrator.core.decisions.decision import Apply
from orchestrator.core.decisions.lineage import UndoFilter, UndoSelection
from orchestrator.core.decisions.undo import HistoryMoved, Undo
from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.events.sessions import TaskBegun
from orchestrator.core.ids import SessionId, Timestamp, parse_seq, parse_timestamp, show
from orchestrator.engine.caller import Call, Caller, ChangeRequest
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

    def __init__(self, services: Services, pipeline: ChangePipeline) -> None:
        self._s, self._pipeline = services, pipeline
        self._selector = UndoSelector(services.journal, services.notes)

    async def revert(self, caller: Caller, call: Call, params: p.Revert) -> r.ChangeAnswer:
        selection = await self._selector.one(parse_seq(params.change, parameter="change"))
        result = await self._undo(caller, call, params, selection)
        return result.answer if len(selection.authors) == 1 else await self._described(caller, result)

    async def rollback(self, caller: Caller, call: Call, params: u.Rollback) -> u.RollbackAnswer:
        selection = await self._selector.span(await self._filter(params))
        return await self._described(caller, await self._undo(caller, call, params, selection))

    async def _filter(self, params: u.Rollback) -> UndoFilter:
        """What is to be undone; a misspelt name must not read as "nothing to undo". Raises ParameterInvalid."""
        wanted = UndoFilter(
            agent=params.agent,
            session=params.session,
            task=parse_seq(params.task, parameter="task") if params.task is not None else None,
            globs=params.globs,
            since=self._moment(params.since, "since"),
            until=self._moment(params.until, "until"),
        )
        if wanted == UndoFilter():
            raise ParameterInvalid(
                "agent",
                "is missing, and so is everything else that says what to roll back",
                hint="Give at least one of agent, session, task, globs, since, until.",
            )
        agent, session, task = wanted.agent, wanted.session, wanted.task
        if agent not in (None, OUTSIDE) and all(known.name != agent for known in self._s.state.identities):
            raise ParameterInvalid(
                "agent", f"{agent!r} never called here", hint="Agents are named as `blame` shows them."
            )
        did = EventFilter(session=SessionId(session)) if session is not None else None
        if did is not None and not await self._s.journal.newest(did, limit=1):
            hint = "`orchestrator log --json` names sessions."
            raise ParameterInvalid("session", f"{session!r} did nothing here", hint=hint)
        if task is not None and await self._s.notes.event(task, TaskBegun) is None:
            raise ParameterInvalid("task", f"{show(task)} is no task", hint="`orchestrator log --kind task_begun`")
        return wanted

    def _moment(self, raw: p.Version | str | None, parameter: str) -> Timestamp | None:
        if raw is None:
            return None
        head = self._s.journal.head
        moment = parse_timestamp(raw, parameter=parameter, head=head)
        if moment.seq is not None and moment.seq > head:
            ahead = f"{show(moment.seq)} is ahead of the journal, which ends at {show(head)}"
            raise ParameterInvalid(parameter, ahead)
        return moment

    async def _undo(
        self, caller: Caller, call: Call, params: p.Revert | u.Rollback, chosen: UndoSelection
    ) -> ChangeResult:
        others = frozenset(path for path, agents in chosen.authors.items() if agents != {caller.agent})
        touched = tuple(sorted(chosen.authors))
        self._s.permissions.refuse_early(caller, *(PermissionCheck("revert", path, path in others) for path in touched))
        request = ChangeRequest(caller=caller, call=call, preview=params.preview, reason=params.reason)
        for _ in range(TRIES):
            histories = await self._selector.histories(chosen)
            command = Undo(
                histories=histories,
                modes=await self._s.journal.modes(histories.keys()),
                chosen=chosen.keys,
                others_work=others,
                touched=touched,
                folders=chosen.folders,
            )
            try:
                return await self._pipeline.execute(command, request)
            except HistoryMoved:
                continue
        raise CallerBusy(touched[0])

    # --- answers ----------------------------------------------------------------------

    async def _described(self, caller: Caller, result: ChangeResult) -> u.RollbackAnswer:
        plan, answer = result.plan, result.answer
        fields = {name: getattr(answer, name) for name in answer.__struct_fields__}
        if plan is None:
            return u.RollbackAnswer(**fields, conflicts=tuple(filter(None, (answer.conflict,))))
        conflicts = tuple(map(show, result.conflicts))
        if conflicts and answer.status in ("applied", "waiting"):
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
        diffs, left = self._pipeline.answers.diffs, {change.moved_from for change in plan.paths}
        held = {change.path: change.before for change in plan.paths}
        room = SHOWN_DIFF_LINES
        for number, change in enumerate(plan.paths, 1):
            if change.path in left and change.after is None:
                continue
            if number % SLICE == 0:
                await anyio.lowlevel.checkpoint()
            names = (change.path, *plan.names.get(change.path, ()))
            readable = all(self._s.permissions.readable(caller, name) for name in names)
            shown = None
            if readable and room > 0 and not change.binary:
                shown = await diffs.of_one(change, held.get(change.moved_from or change.path), plan.contents)
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
        for number, outcome in enumerate(plan.conflicts):
            conflict = conflicts[number] if number < len(conflicts) else None
            files.append(u.UndoneFile(path=outcome.path, status="conflict", conflict=conflict))
        return tuple(sorted(files, key=lambda item: item.path))


def _status(change: PathChange) -> Literal["changed", "created", "deleted", "moved"]:
    if change.moved_from is not None:
        return "moved"
    if change.before is None:
        return "created"
    return "deleted" if change.after is None else "changed"
