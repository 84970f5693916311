"""revert and rollback: which changes are to be undone, and their undo as one change; later work is kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal

import anyio.lowlevel
from anyio import to_thread

from orchestrator.api import history as u
from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.change import PathChange, PermissionCheck
from orchestrator.core.decisions.commands import Command, CreateDirectory, RemoveDirectory
from orchestrator.core.decisions.decision import Apply, Dependency
from orchestrator.core.decisions.lineage import (
    Made,
    UndoFilter,
    UndoSelection,
    change_of,
    in_effect,
    made_by,
    selection,
)
from orchestrator.core.decisions.undo import HistoryMoved, Undo
from orchestrator.core.errors import Aborted, ParameterInvalid, RevertImpossible, VersionUnknown, plural
from orchestrator.core.events.base import OUTSIDE, ExternalChange, Recorded
from orchestrator.core.events.codec import tag_of, tags_with
from orchestrator.core.events.files import (
    ChangeAborted,
    ChangeApplied,
    ChangeDiverged,
    ChangeIntended,
    ExternalBatchClosed,
    ExternalBatchOpened,
    ExternalFileCreated,
)
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.core.policy.protected import EDITORS
from orchestrator.core.policy.rules import Deny
from orchestrator.core.positions import Timestamp, parse_seq, parse_timestamp
from orchestrator.core.projections.versions import VersionRow
from orchestrator.core.text.answer_space import AnswerSpace, json_size, size
from orchestrator.engine.caller import Call, Caller, ChangeRequest
from orchestrator.engine.changes.diffs import Shows, befores, line_counts
from orchestrator.engine.changes.pipeline import CallerBusy, ChangePipeline, ChangeResult
from orchestrator.engine.external.batches import members
from orchestrator.engine.services import Services
from orchestrator.ports.journal import EventFilter

TRIES = 5
SHOWN_DIFFS = AnswerSpace(bytes=64_000, lines=600)
"""Of all files of a rollback together; `get_diff` and a rollback of fewer files show the rest."""

LISTED = {
    "files": AnswerSpace(bytes=96_000),  # with their diffs
    "dependencies": AnswerSpace(bytes=16_000),
    "changes": AnswerSpace(bytes=8_000),
    "conflicts": AnswerSpace(bytes=8_000),
}
"""Of an answer's lists."""

LISTED_ON = 50
"""Of a dependency's changes."""

SLICE = 20
"""Events that are read, or files that are shown, before other callers have their turn: some 2 ms."""

EXTERNAL_TAGS = tags_with("external")


class Undoer:
    """Finds what is to be undone, and has its inverse made."""

    def __init__(self, services: Services, pipeline: ChangePipeline) -> None:
        self._s, self._pipeline = services, pipeline
        self._selector = UndoSelector(services)

    async def revert(self, caller: Caller, call: Call, params: p.Revert) -> r.ChangeAnswer:
        number = parse_seq(params.change, parameter="change")
        made = await self._selector.of_directory(number, caller)
        if made is not None:
            request = ChangeRequest(caller=caller, call=call, preview=params.preview, reason=params.reason)
            return await self._pipeline.change(made, request)
        selection = await self._selector.one(number)
        result = await self._undo(caller, call, params, selection)
        return result.answer if len(selection.authors) == 1 else await self._described(caller, result)

    async def rollback(self, caller: Caller, call: Call, params: u.Rollback) -> u.RollbackAnswer:
        selection = await self._selector.span(self._filter(params))
        return await self._described(caller, await self._undo(caller, call, params, selection))

    def _filter(self, params: u.Rollback) -> UndoFilter:
        """What is to be undone. Raises ParameterInvalid."""
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
        return wanted

    def _moment(self, raw: p.Version | str | None, parameter: str) -> Timestamp | None:
        if raw is None:
            return None
        head, start = self._s.journal.head, self._s.state.registry.start or Seq(0)
        moment = parse_timestamp(raw, parameter=parameter, head=head, start=start)
        if moment.seq is not None and moment.seq > head:
            ahead = f"{show(moment.seq)} is ahead of the journal, which ends at {show(head)}"
            raise ParameterInvalid(parameter, ahead)
        return moment

    async def _undo(
        self, caller: Caller, call: Call, params: p.Revert | u.Rollback, chosen: UndoSelection
    ) -> ChangeResult:
        others = frozenset(path for path, agents in chosen.authors.items() if agents != {caller.agent})
        kept = self._of_editors(caller, chosen.authors)
        touched = tuple(sorted(chosen.authors.keys() - kept)) or tuple(sorted(kept))
        if not caller.is_person:
            self._s.access.refuse_unlisted(caller, others, "it would undo changes of")
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
                kept=self._of_editors(caller, histories),
            )
            try:
                return await self._pipeline.execute(command, request)
            except HistoryMoved:
                continue
        raise CallerBusy(touched[0])

    def _of_editors(self, caller: Caller, paths: Iterable[WorkspacePath]) -> frozenset[WorkspacePath]:
        """Those of swap and lock files, which nobody changes; they are no reason to refuse the undo of the others."""
        verdicts = ((path, self._s.permissions.verdict(caller, "revert", path)) for path in paths)
        return frozenset(path for path, said in verdicts if isinstance(said, Deny) and said.rule == EDITORS.name)

    # --- answers ----------------------------------------------------------------------

    async def _described(self, caller: Caller, result: ChangeResult) -> u.RollbackAnswer:
        plan, answer = result.plan, result.answer
        fields = {name: getattr(answer, name) for name in answer.__struct_fields__}
        if plan is None:
            return u.RollbackAnswer(**fields, conflicts=tuple(filter(None, (answer.conflict,))))
        conflicts = tuple(map(show, result.conflicts))
        if conflicts and answer.status in ("applied", "waiting"):
            fields["message"] += f"; in conflict with later work, and waiting: {plural(len(conflicts), 'file')}"
        files = await self._files(caller, plan, conflicts)
        found: dict[str, Sequence[Any]] = {
            "changes": tuple(map(show, plan.reverts)),
            "files": files,
            "dependencies": [*map(_dependency, sorted(plan.dependencies, key=lambda item: not item.overlaps))],
            "conflicts": conflicts,
        }
        lists: dict[str, Any] = {name: _first(items, LISTED[name]) for name, items in found.items()}
        lists["files"] = tuple(sorted(lists["files"], key=lambda item: item.path))
        left: dict[str, Any] = {f"more_{name}": len(items) - len(lists[name]) for name, items in found.items()}
        return u.RollbackAnswer(**fields, **lists, **left, rest=_rest(answer) if any(left.values()) else "")

    async def _files(self, caller: Caller, plan: Apply, conflicts: tuple[str, ...]) -> tuple[u.UndoneFile, ...]:
        files: list[u.UndoneFile] = []
        room, shows = SHOWN_DIFFS, Shows.readable(self._s, caller)
        for number, (change, before) in enumerate(befores(plan.paths), 1):
            if number % SLICE == 0:
                await anyio.lowlevel.checkpoint()
            names = (change.path, *plan.names.get(change.path, ()))
            readable = all(map(shows, names))
            added, removed = line_counts((change, before)) if readable else (None, None)
            shown = None
            if readable and room.bytes and room.lines and not change.binary:
                shown, _ = await self._pipeline.answers.diffs.of_one(change, before, shows, plan.contents)
            room = room.less(size(shown or ""), (shown or "").count("\n"))
            files.append(
                u.UndoneFile(
                    path=change.path,
                    status=_status(change),
                    added=added,
                    removed=removed,
                    diff=shown,
                    moved_from=change.moved_from,
                )
            )
        for number, outcome in enumerate(plan.conflicts):
            conflict = conflicts[number] if number < len(conflicts) else None
            files.append(u.UndoneFile(path=outcome.path, status="conflict", conflict=conflict))
        return tuple(sorted(files, key=lambda item: (item.status != "conflict", item.path)))


def _first(items: Sequence[Any], room: AnswerSpace) -> tuple[Any, ...]:
    return tuple(items[: room.first((json_size(item), 0) for item in items)])


def _rest(answer: r.ChangeAnswer) -> str:
    """The calls that list what has no room."""
    if answer.status != "applied":
        return "rollback(globs=[…], preview=true) lists the same for a part of the files"
    between = f"from='{answer.change}', to='{answer.version_id}'"
    return f"get_diff({between}) shows all files, file_history what was undone in one, list_conflicts what waits"


def _dependency(item: Dependency) -> u.Dependency:
    return u.Dependency(
        path=item.path,
        change=show(item.change),
        agent=item.agent or OUTSIDE,
        on=tuple(map(show, item.on[:LISTED_ON])),
        more_on=max(0, len(item.on) - LISTED_ON),
        overlaps=item.overlaps,
    )


def _status(change: PathChange) -> Literal["changed", "created", "deleted", "moved"]:
    if change.moved_from is not None:
        return "moved"
    if change.before is None:
        return "created"
    return "deleted" if change.after is None else "changed"


class UndoSelector:
    """Reads the journal for undos."""

    def __init__(self, services: Services) -> None:
        self._s = services

    async def one(self, number: Seq) -> UndoSelection:
        """The change that an event belongs to, or the group of outside changes that it opened or closed.

        Raises VersionUnknown, RevertImpossible, Aborted.
        """
        recorded = await self._s.journal.event(number)
        if recorded is None:
            raise VersionUnknown(f"the journal has no event {show(number)}", hint="file_history lists changes.")
        event = recorded.event
        if isinstance(event, ExternalBatchOpened | ExternalBatchClosed):
            group = event.group if isinstance(event, ExternalBatchClosed) else recorded.seq
            return await self._whole([item async for item in members(self._s.journal, group)])
        if isinstance(event, ExternalChange):
            return await self._whole([recorded])
        if not isinstance(event, ChangeIntended | ChangeApplied | ChangeAborted | ChangeDiverged):
            raise RevertImpossible(
                f"{show(recorded.seq)} changed no file, so there is nothing to revert",
                hint="Name the version_id or change of an answer or of file_history.",
            )
        outcome = await self._s.notes.outcome(recorded)
        if outcome is None or not isinstance(outcome.event, ChangeApplied):
            raise Aborted(f"{show(recorded.seq)} never took effect", hint="There is nothing to revert.")
        return await self._whole([outcome])

    async def of_directory(self, number: Seq, caller: Caller) -> Command | None:
        """What undoes a change that only made or removed a directory."""
        outcome = await self._s.journal.event(number)
        if outcome is not None and isinstance(outcome.event, ChangeIntended):
            outcome = await self._s.notes.outcome(outcome)
        if outcome is None or not isinstance(outcome.event, ChangeApplied) or made_by(outcome):
            return None
        (item,) = outcome.event.paths
        undo = RemoveDirectory if item.directory == "made" else CreateDirectory
        return undo(path=item.path, reverts=(outcome.event.change,), others_work=outcome.agent != caller.agent)

    async def span(self, span: UndoFilter) -> UndoSelection:
        """All changes of a span that are still in effect. Raises NothingToChange if there are none."""
        globs = await to_thread.run_sync(self._s.paths.globs, span.globs)
        chosen: dict[Seq, list[Made]] = {}
        folders: dict[Seq, Collection[WorkspacePath]] = {}
        seen = 0
        async for recorded in self._s.journal.events(_events_of(span)):
            seen += 1
            if seen % SLICE == 0:
                await anyio.lowlevel.checkpoint()
            made = span.made(recorded, globs)
            if made is not None:
                folders[change_of(recorded)] = await self._folders(recorded)
            if made:
                chosen[change_of(recorded)] = made
        reverters = await self._s.journal.reverters()
        return await to_thread.run_sync(lambda: selection(in_effect(chosen, reverters), folders.values()))

    async def _whole(self, events: list[Recorded]) -> UndoSelection:
        """All that these events did."""
        made = [made for recorded in events for made in made_by(recorded)]
        return selection(made, [await self._folders(recorded) for recorded in events])

    async def _folders(self, recorded: Recorded) -> Collection[WorkspacePath]:
        """The directories that were made for a change, or added with it."""
        match recorded.event:
            case ExternalFileCreated(parents=parents):
                return parents
            case ChangeApplied(change=change, paths=paths) if any(item.before is None for item in paths):
                intent = await self._s.notes.event(change, ChangeIntended)
                added = (item.path for item in paths if item.directory == "made")
                return (*(intent.directories.made if intent else ()), *added)
            case _:
                return ()

    async def histories(self, chosen: UndoSelection) -> dict[WorkspacePath, tuple[VersionRow, ...]]:
        """All rows of every path that the chosen files ever had, oldest first."""
        histories: dict[WorkspacePath, tuple[VersionRow, ...]] = {}
        wanted = {path for path, _ in chosen.keys}
        while wanted:
            found = await self._s.journal.histories(wanted)
            histories |= found
            next_ones = {row.path for row in await self._s.journal.moved_away(wanted)}
            next_ones |= {row.moved_from for rows in found.values() for row in rows if row.moved_from is not None}
            wanted = next_ones - histories.keys()
        return histories


def _events_of(span: UndoFilter) -> EventFilter:
    """The events that a span may choose, as far as the journal can filter them."""
    tags = EXTERNAL_TAGS if span.agent == OUTSIDE else (tag_of(ChangeApplied), *EXTERNAL_TAGS)
    after = span.since.seq if span.since is not None and span.since.seq is not None else 0
    agent = span.agent if span.agent != OUTSIDE else None
    return EventFilter(tags=tags, agent=agent, session=span.session, after=after)
