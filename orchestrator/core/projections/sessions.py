"""The stack of each session: what it was shown, what it changed, what it works on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from orchestrator.core.events.base import Event, RecordedLike
from orchestrator.core.events.conflicts import ApprovalRequested, ConflictFound
from orchestrator.core.events.files import ChangeApplied, ContentSearched, ContentShown, DiffShown, FileRead, SeenLines
from orchestrator.core.events.sessions import AgentClass, Door, SessionClosed, SessionOpened, TaskBegun, TaskEnded
from orchestrator.core.ids import AgentName, Seq, SessionId, WorkspacePath
from orchestrator.core.projections.base import Projection
from orchestrator.core.projections.seen import SeenFile

RECENT = 200
"""Files and changes that a session's stack holds at most; the oldest fall out."""


KEPT_CLOSED = 500
"""Closed sessions that can still be resumed."""


class Task(msgspec.Struct, frozen=True):
    """Work that a session said it does. The title is read from the event, since it may be redacted."""

    task: Seq
    session: SessionId
    agent: AgentName | None
    since: int


class MadeChange(msgspec.Struct, frozen=True):
    """A change of the session that is applied and not reverted."""

    change: Seq
    version: Seq
    operation: str
    paths: tuple[WorkspacePath, ...]
    at: int


class Session(msgspec.Struct):
    """One session."""

    id: SessionId
    agent: AgentName
    agent_class: AgentClass
    door: Door
    asserted: bool
    client: str
    open: bool = True
    seen: dict[WorkspacePath, SeenFile] = {}  # oldest touched first
    changes: list[MadeChange] = []  # newest last
    tasks: dict[Seq, Task] = {}
    waits: bool = False  # it left a change behind that waits, or waited

    def copy(self) -> Session:
        """As it is now."""
        return msgspec.structs.replace(self, seen=dict(self.seen), changes=list(self.changes), tasks=dict(self.tasks))

    @property
    def task(self) -> Seq | None:
        """The task that its changes carry: the last one begun."""
        return max(self.tasks, default=None)

    def put(self, path: WorkspacePath, seen: SeenFile) -> None:
        """What it was shown of a file by now, at the end of the stack."""
        self.seen.pop(path, None)
        self.seen[path] = seen
        while len(self.seen) > RECENT:
            del self.seen[next(iter(self.seen))]

    def show(self, seen: SeenLines) -> None:
        """Lines were shown."""
        self.put(seen.path, self.seen.get(seen.path, NOTHING).shown(seen))


NOTHING = SeenFile()


class Sessions(Projection):
    """All sessions, open and closed."""

    folds: ClassVar[frozenset[type[Event]]] = frozenset(
        {
            *(SessionOpened, SessionClosed, ContentShown, FileRead, ContentSearched, DiffShown),
            *(ApprovalRequested, ConflictFound, ChangeApplied, TaskBegun, TaskEnded),
        }
    )
    tables: ClassVar[Mapping[str, Any]] = {"sessions": dict[SessionId, Session]}
    part_entries: ClassVar[int] = 20

    def __init__(self) -> None:
        self._sessions: dict[SessionId, Session] = {}

    def get(self, session: SessionId) -> Session | None:
        return self._sessions.get(session)

    def __iter__(self) -> Iterator[Session]:
        return iter(self._sessions.values())

    def apply(self, recorded: RecordedLike) -> None:  # noqa: C901, PLR0912  # one case for each kind of event
        event = recorded.event
        if type(event) is FileRead:  # the commonest by far: before all patterns
            reader = self._sessions.get(recorded.session) if recorded.session else None
            if reader is not None:
                reader.show(event.seen)
            return
        match event:
            case SessionOpened(session=opened):
                known = self._sessions.get(opened)
                if known is None:
                    self._sessions[opened] = Session(
                        opened, event.agent, event.agent_class, event.door, event.asserted, event.client
                    )
                else:
                    known.open, known.client = True, event.client
                return
            case SessionClosed(session=closed):
                self._close(closed)
                return
            case ContentShown(session=noted, seen=seen):
                if noted in self._sessions:
                    self._sessions[noted].show(seen)
                return
            case _:
                session = self._sessions.get(recorded.session) if recorded.session else None
        if session is None:
            return
        match event:
            case ContentSearched(seen=all_seen):
                for seen in all_seen:
                    session.show(seen)
            case DiffShown(seen=SeenLines() as lines):
                session.show(lines)
            case ApprovalRequested() | ConflictFound():
                session.waits = True
            case ChangeApplied():
                self._applied(session, recorded, event)
            case TaskBegun():
                session.tasks[recorded.seq] = Task(recorded.seq, session.id, recorded.agent, recorded.at)
            case TaskEnded(task=task):
                session.tasks.pop(task, None)
            case _:
                return

    def _close(self, closed: SessionId) -> None:
        """Sessions that saw and did nothing are forgotten at once, of the others the oldest beyond KEPT_CLOSED."""
        session = self._sessions.get(closed)
        if session is None:
            return
        session.open = False
        session.seen = {path: seen.trimmed() for path, seen in session.seen.items()}
        if not (session.seen or session.changes or session.tasks or session.waits):
            del self._sessions[closed]
            return
        self._sessions[closed] = self._sessions.pop(closed)
        while sum(1 for item in self._sessions.values() if not item.open) > KEPT_CLOSED:
            oldest = next(item.id for item in self._sessions.values() if not item.open)
            del self._sessions[oldest]

    def _applied(self, session: Session, recorded: RecordedLike, event: ChangeApplied) -> None:
        for changed in event.paths:
            if changed.after is not None:
                known = session.seen.get(changed.path, NOTHING)
                session.put(changed.path, known.written(recorded.seq, whole=event.fit.on_seen_whole))
        paths = tuple(changed.path for changed in event.paths)
        session.changes.append(MadeChange(event.change, recorded.seq, event.provenance.operation, paths, recorded.at))
        if event.provenance.reverts:
            undone = frozenset(event.provenance.reverts)  # it may be hundreds of thousands
            for other in self._sessions.values():
                other.changes = [made for made in other.changes if made.change not in undone]
        del session.changes[:-RECENT]
