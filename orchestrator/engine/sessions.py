"""Sessions and tasks: what a caller has at hand, and what it says it works on; and waiting for a change."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import anyio
import msgspec

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.content import LineRange
from orchestrator.core.errors import ParameterInvalid, SessionUnknown, VersionUnknown
from orchestrator.core.events.sessions import TaskBegun, TaskEnded
from orchestrator.core.ids import Seq, WorkspacePath, parse_seq, show
from orchestrator.core.projections.seen import SeenFile
from orchestrator.core.projections.sessions import Session, Task
from orchestrator.core.projections.tags import entry_rank
from orchestrator.core.text.room import Room, size
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.changes.answers import Answers
from orchestrator.engine.leases import Reservations
from orchestrator.engine.reads.stale_read_notices import StaleReadNotifier
from orchestrator.engine.services import Services

SHOWN = 30
"""Reads and changes that an answer lists, newest first."""

ENTRY_DOCUMENTS = 8


class SessionService:
    """Answers about the caller's own session."""

    def __init__(self, services: Services, answers: Answers, noticer: StaleReadNotifier) -> None:
        self._s, self._answers, self._noticer = services, answers, noticer
        self._reservations = Reservations(services)

    async def session_status(self, caller: Caller, call: Call, params: p.SessionStatus) -> r.SessionInfo:
        session = self._session(caller)
        reservations = self._reservations
        leases = reservations.live() if params.all_leases else reservations.seen_by(caller, session.seen)
        info = r.SessionInfo(
            session=session.id,
            agent=session.agent,
            agent_class=session.agent_class,
            asserted=session.asserted,
            workspace=self._s.workspace.root,
            head=show(self._s.state.head),
            recent_reads=tuple(
                [await self._recent(caller, *read) for read in list(reversed(session.seen.items()))[:SHOWN]]
            ),
            pending=self._pending(caller),
            uncommitted_changes=tuple(
                r.OwnChange(
                    change=show(made.change),
                    version_id=show(made.version),
                    operation=made.operation,
                    paths=made.paths,
                    at=made.at,
                )
                for made in reversed(session.changes[-SHOWN:])
            ),
            tasks=tuple([await self._task(task) for task in session.tasks.values()]),
            leases=await reservations.infos(leases),
            stale=await self._noticer.stale(caller),
            start_here=self._start_here(caller, session),
        )
        return session_page(info, params, call.room)

    async def _recent(self, caller: Caller, path: WorkspacePath, seen: SeenFile) -> r.RecentRead:
        version = seen.newest or 0
        coverage = seen.coverage(seen.newest) if seen.newest else None
        return r.RecentRead(
            path=path,
            version_id=show(version),
            lines=_lines(coverage.ranges) if coverage else "",
            stale=await self._noticer.is_stale(caller, path),
        )

    def _pending(self, caller: Caller) -> tuple[r.PendingEdit, ...]:
        waiting = [
            r.PendingEdit(id=show(a.seq), kind="approval", path=a.request.paths[0].path, since=a.at)
            for a in self._s.state.pending.waiting()
            if a.agent == caller.agent
        ]
        conflicts = [
            r.PendingEdit(id=show(c.seq), kind="conflict", path=c.found.path, since=c.at)
            for c in self._s.state.pending.open_conflicts()
            if c.agent == caller.agent
        ]
        return (*waiting, *conflicts)

    def _start_here(self, caller: Caller, session: Session) -> tuple[str, ...]:
        ranked = sorted(
            (rank, entry.path)
            for entry in self._s.state.registry.files()
            if (rank := entry_rank(entry.path)) is not None
            and entry.path not in session.seen
            and self._s.readable(caller, entry.path)
        )
        return tuple(path for _, path in ranked[:ENTRY_DOCUMENTS])

    async def _task(self, task: Task) -> r.TaskInfo:
        recorded = await self._s.journal.event(task.task)
        title = recorded.event.title if recorded and isinstance(recorded.event, TaskBegun) else ""
        return r.TaskInfo(
            task=show(task.task), title=title, session=task.session, agent=task.agent or "", since=task.since
        )

    async def begin_task(self, caller: Caller, call: Call, params: p.BeginTask) -> r.TaskAnswer:
        event = TaskBegun(session=caller.session, title=params.title)
        recorded = await self._s.append(caller.origin(call), (f"session:{caller.session}", event))
        return r.TaskAnswer(task=show(recorded[0].seq), title=params.title, ended=False)

    async def end_task(self, caller: Caller, call: Call, params: p.EndTask) -> r.TaskAnswer:
        number = parse_seq(params.task, parameter="task")
        if number not in self._session(caller).tasks:
            raise VersionUnknown(
                f"{show(number)} is no open task of this session", hint="session_status names the open ones."
            )
        event = TaskEnded(session=caller.session, task=number, outcome=params.outcome)
        await self._s.append(caller.origin(call), (f"session:{caller.session}", event))
        return await self.ended(number)

    async def ended(self, task: Seq) -> r.TaskAnswer:
        """What the end of a task is answered with, also when it is asked for again."""
        recorded = await self._s.journal.event(task)
        title = recorded.event.title if recorded and isinstance(recorded.event, TaskBegun) else ""
        return r.TaskAnswer(task=show(task), title=title, ended=True)

    async def await_change(self, caller: Caller, call: Call, params: p.AwaitChange) -> r.ChangeAnswer:
        number = parse_seq(params.id, parameter="id")
        shows = partial(self._s.readable, caller)
        moved = self._s.next_move()
        answer = await self._answers.of(number, shows=shows)
        with anyio.move_on_after(params.timeout_s):
            while answer.status in ("waiting", "conflict", "still_waiting"):
                await moved.wait()
                moved = self._s.next_move()
                if not self._answers.waits(number):  # else its diff would be made anew at each event of anybody
                    answer = await self._answers.of(number, shows=shows)
        if answer.status in ("waiting", "conflict", "still_waiting"):
            waits = "for a person's yes" if answer.status == "waiting" else "to be settled"
            return r.ChangeAnswer(
                status="still_waiting",
                success=False,
                message=f"{show(number)} still waits {waits}; call await_change again, or go on with other work",
                approval=answer.approval,
                conflict=answer.conflict,
                change=answer.change,
                paths=answer.paths,
            )
        return answer

    def _session(self, caller: Caller) -> Session:
        session = self._s.state.sessions.get(caller.session)
        if session is None:
            raise SessionUnknown(f"the session {caller.session} is not open")
        return session


def _lines(ranges: tuple[LineRange, ...]) -> str:
    return ", ".join(f"{span.start}-{span.end}" for span in ranges)


LISTS = ("recent_reads", "pending", "uncommitted_changes", "tasks", "leases", "stale", "start_here")
"""In the order in which they are shown."""

PARTS = {"uncommitted_changes": "paths", "leases": "globs"}
"""The member of an item by which one that fits no answer is divided."""

LEASES = "leases:0:0"
"""The cursor at which the leases begin."""

NEXT_BYTES = 150
_CURSOR = re.compile(rf"({'|'.join(LISTS)}):([0-9]{{1,9}}):([0-9]{{1,9}})")
_ENCODER = msgspec.json.Encoder()


def session_page(info: r.SessionInfo, params: p.SessionStatus, room: Room) -> r.SessionInfo:
    """What fits of the lists, from the cursor on: list, item, and first part of that item. Raises ParameterInvalid."""
    first, index, part = _start(params.cursor)
    fields: dict[str, Any] = dict.fromkeys(LISTS, ())
    empty = msgspec.structs.replace(info, **fields)
    room = room.less(_bytes(empty) + NEXT_BYTES)
    for name in LISTS[LISTS.index(first) :]:
        for at in range(index, len(items := getattr(info, name))):
            item, member = items[at], PARTS.get(name)
            if part and member:
                item = msgspec.structs.replace(item, **{member: getattr(item, member)[part:]})
            goes_on = None
            if _bytes(item) > room.bytes:
                if any(fields.values()):
                    goes_on = f"{name}:{at}:{part}"
                elif member:
                    item, kept = _first_of(item, member, room)
                    goes_on = f"{name}:{at}:{part + kept}" if kept else f"{name}:{at + 1}:0"
            if goes_on is None or not any(fields.values()):
                fields[name] = (*fields[name], item)
            if goes_on is not None:
                asked = "all_leases=true, " if params.all_leases else ""
                return msgspec.structs.replace(empty, **fields, next=f'session_status({asked}cursor="{goes_on}")')
            room, part = room.less(_bytes(item)), 0
        index = part = 0
    return msgspec.structs.replace(empty, **fields)


def _start(cursor: str | None) -> tuple[str, int, int]:
    if cursor is None:
        return LISTS[0], 0, 0
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise ParameterInvalid("cursor", "is not one of ours; send the call that `next` of the last answer names")
    return match[1], int(match[2]), int(match[3])


def _first_of(item: Any, member: str, room: Room) -> tuple[Any, int]:
    """An item with as many of its parts as fit, and their number; 0 for all of them."""
    parts = getattr(item, member)
    room = room.less(_bytes(msgspec.structs.replace(item, **{member: ()})))
    kept = room.first((_bytes(part), 0) for part in parts)
    return msgspec.structs.replace(item, **{member: parts[:kept]}), kept if kept < len(parts) else 0


def _bytes(value: Any) -> int:
    """Of a value and its comma, as JSON within JSON."""
    return size(_ENCODER.encode(value).decode()) + 1
