"""Sessions: their starts and ends, their tasks, what each has read and changed; and waiting for a change."""

from __future__ import annotations

from collections import Counter, deque
from itertools import islice

import anyio
import msgspec

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api import session_operations as a
from orchestrator.core.errors import CallerError, DiskFull, SessionUnknown, VersionUnknown, WritesStopped, escaped
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.sessions import SessionClosed, SessionOpened, TaskBegun, TaskEnded
from orchestrator.core.ids import AgentName, Seq, SessionId, WorkspacePath, show
from orchestrator.core.positions import parse_seq
from orchestrator.core.projections.read_sets import SeenFile
from orchestrator.core.projections.sessions import Session, Sessions
from orchestrator.engine.approver import ApproverGate
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.changes.change_answers import Answers
from orchestrator.engine.changes.diffs import Shows
from orchestrator.engine.leases import Leases
from orchestrator.engine.notes import Notes
from orchestrator.engine.reads.file_reads import Reader
from orchestrator.engine.reads.file_tree import FileTrees
from orchestrator.engine.reads.stale_read_notices import StaleReadNotifier
from orchestrator.engine.services import Services
from orchestrator.logs import logger

SHOWN = 30
"""Reads and changes that an answer lists, newest first."""

ENTRY_DOCUMENTS = 8

UNFINISHED = ("waiting", "conflict", "still_waiting")
"""The states of a change for whose end `await_change` waits."""


class SessionService:
    """Answers about the caller's own session."""

    def __init__(
        self,
        services: Services,
        answers: Answers,
        leases: Leases,
        noticer: StaleReadNotifier,
        reader: Reader,
        trees: FileTrees,
    ) -> None:
        self._s, self._answers, self._leases, self._noticer = services, answers, leases, noticer
        self._reader, self._trees = reader, trees

    async def session_status(self, caller: Caller, call: Call, params: p.Params) -> a.SessionInfo:
        stack = await self.stack(caller)
        tree = await self._trees.of(caller)
        seen = self._session(caller).seen
        unread = (path for path in tree.documents if path not in seen and self._s.permissions.readable(caller, path))
        return msgspec.structs.replace(stack, start_here=tuple(islice(unread, ENTRY_DOCUMENTS)))

    async def stack(self, caller: Caller) -> a.SessionInfo:
        """What the session has read, changed and works on, and what waits of it."""
        session = self._session(caller)
        leases = self._leases.seen_by(caller, session.seen)
        stale = await self._noticer.stale(caller)
        stale_paths = {notice.path for notice in stale}
        return a.SessionInfo(
            session=session.id,
            agent=session.agent,
            agent_class=session.agent_class,
            asserted=session.asserted,
            workspace=self._s.workspace.root,
            head=show(self._s.state.head),
            recent_reads=tuple(
                _recent(path, seen, newest, stale=path in stale_paths or self._s.state.registry.get(path) is None)
                for path, seen in list(reversed(session.seen.items()))[:SHOWN]
                if (newest := seen.newest) is not None
            ),
            pending=self._pending(caller),
            uncommitted_changes=tuple(
                a.OwnChange(
                    change=show(made.change),
                    version_id=show(made.version),
                    operation=made.operation,
                    paths=made.paths,
                    at=made.at,
                )
                for made in reversed(session.changes[-SHOWN:])
            ),
            tasks=await self.tasks(session),
            leases=await self._leases.infos(leases, caller),
            stale=stale[:SHOWN],
            budgets=self._s.limits.budgets(caller),
        )

    async def tasks(self, session: Session) -> tuple[a.TaskInfo, ...]:
        """The open tasks of a session."""
        return tuple(
            [
                a.TaskInfo(
                    task=show(task),
                    title=await self._title(task),
                    session=session.id,
                    agent=session.agent,
                    since=since,
                )
                for task, since in session.tasks.items()
            ]
        )

    def _pending(self, caller: Caller) -> tuple[a.PendingEdit, ...]:
        waiting = [
            a.PendingEdit(id=show(item.seq), kind="approval", path=item.request.paths[0].path, since=item.at)
            for item in self._s.state.pending.waiting()
            if item.agent == caller.agent
        ]
        conflicts = [
            a.PendingEdit(id=show(c.seq), kind="conflict", path=c.found.path, since=c.at)
            for c in self._s.state.pending.open_conflicts()
            if c.agent == caller.agent
        ]
        return (*waiting, *conflicts)

    async def _title(self, task: Seq) -> str:
        begun = await self._s.notes.event(task, TaskBegun)
        return begun.title if begun is not None else ""

    async def begin_task(self, caller: Caller, call: Call, params: a.BeginTask) -> a.TaskAnswer:
        event = TaskBegun(session=caller.session, title=params.title)
        recorded = await self._s.notes.append(caller.origin(call), (f"session:{caller.session}", event))
        return a.TaskAnswer(task=show(recorded[0].seq), title=params.title, ended=False)

    async def end_task(self, caller: Caller, call: Call, params: a.EndTask) -> a.TaskAnswer:
        number = parse_seq(params.task, parameter="task")
        if number not in self._session(caller).tasks:
            raise VersionUnknown(
                f"{show(number)} is no open task of this session", hint="session_status names the open ones."
            )
        event = TaskEnded(session=caller.session, task=number, outcome=params.outcome)
        await self._s.notes.append(caller.origin(call), (f"session:{caller.session}", event))
        return await self.ended(number)

    async def ended(self, task: Seq) -> a.TaskAnswer:
        """The answer to the end of a task, also when it is asked for again."""
        return a.TaskAnswer(task=show(task), title=await self._title(task), ended=True)

    async def await_change(self, caller: Caller, call: Call, params: p.AwaitChange) -> r.ChangeAnswer:
        number = parse_seq(params.id, parameter="id")
        shows = Shows.readable(self._s, caller)
        moved = self._s.state_changes.next()
        answer = await self._answers.of(number, shows)
        with anyio.move_on_after(params.timeout_s):
            while answer.status in UNFINISHED:
                await moved.wait()
                moved = self._s.state_changes.next()
                if not self._answers.waits(number):  # else its diff would be made anew at each event of anybody
                    answer = await self._answers.of(number, shows)
        if not caller.is_person and not await self._is_own(caller, number):
            self._s.access.refuse_unlisted(caller, map(WorkspacePath, (it.path for it in answer.paths)), "it is about")
        if answer.status == "granted":
            return await self._shown(caller, call, number, answer)
        if answer.status not in UNFINISHED:
            return answer
        waits = "for a person's yes" if answer.status == "waiting" else "to be resolved"
        return r.ChangeAnswer(
            status="still_waiting",
            success=False,
            message=f"{show(number)} still waits {waits}; call await_change again, or go on with other work",
            approval=answer.approval,
            conflict=answer.conflict,
            change=answer.change,
            paths=answer.paths,
        )

    async def _is_own(self, caller: Caller, number: Seq) -> bool:
        recorded = await self._s.journal.event(number)
        return recorded is not None and recorded.agent == caller.agent

    async def _shown(self, caller: Caller, call: Call, number: Seq, answer: r.ChangeAnswer) -> r.ChangeAnswer:
        """A granted read with what it shows to its agent, as far as that is text."""
        approval = self._s.state.pending.approval(number)
        if approval is None or approval.agent != caller.agent:
            return answer
        request, lines = approval.request, call.room.framed(answer.message)
        if not request.read_version or not any(check.action == "read" for check in request.permissions):
            return answer
        wanted = p.ReadFile(path=request.paths[0].path, at=show(request.read_version), delta=False)
        try:
            read = await self._reader.read_file(caller, msgspec.structs.replace(call, room=lines), wanted)
        except CallerError as error:
            return msgspec.structs.replace(answer, warnings=(error.message,))
        head = f"{read.path} {read.version_id}, lines {read.start}-{read.end} of {read.total_lines}"
        more = f"\nIt goes on: {read.next}" if read.next is not None else ""
        return msgspec.structs.replace(answer, shown=f"{head}\n{read.text}{more}")

    def _session(self, caller: Caller) -> Session:
        session = self._s.state.sessions.get(caller.session)
        if session is None:
            raise SessionUnknown(f"the session {caller.session} is not open")
        return session


def _recent(path: WorkspacePath, seen: SeenFile, newest: Seq, *, stale: bool) -> a.RecentRead:
    lines = ", ".join(f"{span.start}-{span.end}" for span in seen.versions[newest].ranges)
    return a.RecentRead(path=path, version_id=show(newest), lines=lines, stale=stale)


MOST_OWED = 10_000
"""Notes kept in memory while the disk is full; the oldest go first."""


class SessionLifecycle:
    """A caller is let in whatever the journal can take: `status`, `stop` and reads must be reachable then."""

    def __init__(self, notes: Notes, sessions: Sessions, noticer: StaleReadNotifier, gate: ApproverGate) -> None:
        self._notes, self._sessions, self._noticer, self._gate = notes, sessions, noticer, gate
        self._owed: deque[tuple[Origin, str, Event]] = deque(maxlen=MOST_OWED)
        self._one_at_a_time = anyio.Lock()
        self._connections = Counter[SessionId]()
        self._begun: set[SessionId] = set()
        self._connected: dict[SessionId, SessionOpened] = {}
        """Of people who have not begun to work in the session: what will say that it opened."""
        self._newest: dict[SessionId, SessionOpened] = {}
        """Of sessions that have a connection or are held: how each opened last."""
        self._held: set[SessionId] = set()
        self._log = logger("engine")

    async def close_left(self) -> None:
        """Note the end of the sessions that the last daemon left open; before anybody is let in."""
        for session in [session for session in self._sessions if session.open]:
            origin = Origin(session=session.id, agent=session.agent)
            await self._notes.append(origin, (f"session:{session.id}", SessionClosed(session=session.id)))

    async def opened(self, caller: Caller, client: str) -> None:
        """A session has a connection. An agent's opens with it, a person's with its first call: see `begin`."""
        self._connections[caller.session] += 1
        event = SessionOpened(
            session=caller.session,
            agent=caller.agent,
            agent_class=caller.agent_class,
            transport=caller.transport,
            asserted=caller.asserted,
            client=escaped(client)[:200],
        )
        before, self._newest[caller.session] = self._newest.get(caller.session), event
        if caller.session in self._held and before == event:
            return  # it never closed
        if not caller.is_person or caller.session not in self._begun:
            self._connected[caller.session] = event
        if not caller.is_person:
            await self.begin(caller)

    async def begin(self, caller: Caller) -> None:
        """Note that a session opened, or was resumed, before its first own event.

        What people only look up (the daemon's status, what waits, logs and lists) is no work in a session.
        """
        event = self._connected.pop(caller.session, None)
        if event is not None:
            self._begun.add(caller.session)
            await self._note(caller, event)

    def agent_of(self, session: SessionId) -> AgentName | None:
        """Whose session it is, also before it is in the journal; None if there is none."""
        known = self._sessions.get(session) or self._connected.get(session)
        return known.agent if known is not None else None

    def hold(self, caller: Caller) -> None:
        """Keep a session open without a connection, until `closed` is called once more."""
        self._held.add(caller.session)
        self._connections[caller.session] += 1

    async def closed(self, caller: Caller) -> None:
        """Note that a session closed, if that was its last connection, and it had opened."""
        await self._gate.end_session(caller)
        self._connections[caller.session] -= 1
        if self._connections[caller.session]:
            return
        del self._connections[caller.session]
        self._newest.pop(caller.session, None)
        self._held.discard(caller.session)
        self._noticer.forget(caller.session)
        if self._connected.pop(caller.session, None) is None:
            self._begun.discard(caller.session)
            await self._note(caller, SessionClosed(session=caller.session))

    async def catch_up(self) -> None:
        """Before a call: note what could not be noted, in order."""
        if not self._owed:
            return
        async with self._one_at_a_time:
            while self._owed:
                origin, stream, event = self._owed[0]
                try:
                    with anyio.CancelScope(shield=True):
                        await self._notes.append(origin, (stream, event))
                        self._owed.popleft()
                except DiskFull:
                    return
                except WritesStopped:  # the next start closes what is open
                    self._owed.clear()

    async def _note(self, caller: Caller, event: Event) -> None:
        self._owed.append((caller.origin(), f"session:{caller.session}", event))
        await self.catch_up()
        if self._owed:
            self._log.warning("a session is not noted yet: the disk of the journal is full", session=caller.session)
