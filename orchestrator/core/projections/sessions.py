"""The stack of each session: what it was shown, what it changed, what it works on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import msgspec

from orchestrator.core.events.base import Event, RecordedLike
from orchestrator.core.events.conflicts import ApprovalRequested, ConflictFound
from orchestrator.core.events.files import ChangeApplied, ContentSearched, ContentShown, DiffShown, FileRead, SeenLines
from orchestrator.core.events.sessions import SessionClosed, SessionOpened, TaskBegun, TaskEnded
from orchestrator.core.ids import AgentName, Seq, SessionId, WorkspacePath
from orchestrator.core.projections.base import pieces
from orchestrator.core.projections.seen import Coverage, SeenFile

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


PART_SESSIONS = 20


class SessionKept(msgspec.Struct, frozen=True, kw_only=True):
    """One session as a snapshot holds it."""

    opened: SessionOpened  # the fields that last
    open: bool
    seen: tuple[tuple[WorkspacePath, dict[Seq, Coverage]], ...]
    changes: tuple[MadeChange, ...]
    tasks: tuple[Task, ...]
    waits: bool


class SessionsPart(msgspec.Struct, frozen=True):
    """Some of the sessions, in their order."""

    sessions: tuple[SessionKept, ...]


class Session:
    """One session."""

    def __init__(self, opened: SessionOpened) -> None:
        self.id = opened.session
        self.agent = opened.agent
        self.agent_class = opened.agent_class
        self.door = opened.door
        self.asserted = opened.asserted
        self.client = opened.client
        self.open = True
        self.seen: dict[WorkspacePath, SeenFile] = {}  # oldest touched first
        self.changes: list[MadeChange] = []  # newest last
        self.tasks: dict[Seq, Task] = {}
        self.waits = False  # it left a change behind that waits, or waited

    @classmethod
    def restored(cls, kept: SessionKept) -> Session:
        """The inverse of `kept`."""
        session = cls(kept.opened)
        session.open, session.waits = kept.open, kept.waits
        session.seen = {path: SeenFile(versions) for path, versions in kept.seen}
        session.changes = list(kept.changes)
        session.tasks = {task.task: task for task in kept.tasks}
        return session

    def kept(self) -> SessionKept:
        """All of it, in a piece that never changes."""
        return SessionKept(
            opened=SessionOpened(
                session=self.id,
                agent=self.agent,
                agent_class=self.agent_class,
                door=self.door,
                asserted=self.asserted,
                client=self.client,
            ),
            open=self.open,
            seen=tuple([(path, seen.versions) for path, seen in self.seen.items()]),
            changes=tuple(self.changes),
            tasks=tuple(self.tasks.values()),
            waits=self.waits,
        )

    @property
    def task(self) -> Seq | None:
        """The task that its changes carry: the last one begun."""
        return max(self.tasks, default=None)

    def file(self, path: WorkspacePath) -> SeenFile:
        """What it was shown of a file, moved to the end of the stack."""
        seen = self.seen.pop(path, None) or SeenFile()
        self.seen[path] = seen
        while len(self.seen) > RECENT:
            del self.seen[next(iter(self.seen))]
        return seen

    def plain(self) -> dict[str, Any]:
        return {
            "agent": self.agent,
            "agent_class": self.agent_class,
            "asserted": self.asserted,
            "client": self.client,
            "open": self.open,
            "waits": self.waits,
            "seen": [[path, seen.plain()] for path, seen in self.seen.items()],
            "changes": msgspec.to_builtins(self.changes),
            "tasks": {str(seq): msgspec.to_builtins(task) for seq, task in sorted(self.tasks.items())},
        }


class Sessions:
    """All sessions, open and closed."""

    name: ClassVar[str] = "sessions"
    version: ClassVar[int] = 2
    folds: ClassVar[frozenset[type[Event]]] = frozenset(
        {
            *(SessionOpened, SessionClosed, ContentShown, FileRead, ContentSearched, DiffShown),
            *(ApprovalRequested, ConflictFound, ChangeApplied, TaskBegun, TaskEnded),
        }
    )
    part: ClassVar[type[msgspec.Struct]] = SessionsPart

    def __init__(self) -> None:
        self._sessions: dict[SessionId, Session] = {}

    def get(self, session: SessionId) -> Session | None:
        return self._sessions.get(session)

    def __iter__(self) -> Iterator[Session]:
        return iter(self._sessions.values())

    def apply(self, recorded: RecordedLike) -> None:
        event = recorded.event
        if type(event) is FileRead:  # the commonest by far: before all patterns
            reader = self._sessions.get(recorded.session) if recorded.session else None
            if reader is not None:
                reader.file(event.seen.path).show(event.seen)
            return
        match event:
            case SessionOpened(session=opened):
                known = self._sessions.get(opened)
                if known is None:
                    self._sessions[opened] = Session(event)
                else:
                    known.open, known.client = True, event.client
                return
            case SessionClosed(session=closed):
                self._close(closed)
                return
            case ContentShown(session=noted, seen=seen):
                if noted in self._sessions:
                    self._show(self._sessions[noted], seen)
                return
            case _:
                session = self._sessions.get(recorded.session) if recorded.session else None
        if session is None:
            return
        match event:
            case ContentSearched(seen=all_seen):
                for seen in all_seen:
                    self._show(session, seen)
            case DiffShown(seen=SeenLines() as lines):
                self._show(session, lines)
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

    def plain(self) -> dict[str, Any]:
        return {session: self._sessions[session].plain() for session in sorted(self._sessions)}

    def parts(self) -> list[msgspec.Struct]:
        return [
            SessionsPart(tuple([session.kept() for session in piece]))
            for piece in pieces(self._sessions.values(), PART_SESSIONS)
        ]

    def restore(self, parts: Iterable[SessionsPart]) -> None:
        for part in parts:
            self._sessions.update((kept.opened.session, Session.restored(kept)) for kept in part.sessions)

    def _close(self, closed: SessionId) -> None:
        """Sessions that saw and did nothing are forgotten at once, of the others the oldest beyond KEPT_CLOSED."""
        session = self._sessions.get(closed)
        if session is None:
            return
        session.open = False
        for seen in session.seen.values():
            seen.trim()
        if not (session.seen or session.changes or session.tasks or session.waits):
            del self._sessions[closed]
            return
        self._sessions[closed] = self._sessions.pop(closed)
        while sum(1 for item in self._sessions.values() if not item.open) > KEPT_CLOSED:
            oldest = next(item.id for item in self._sessions.values() if not item.open)
            del self._sessions[oldest]

    @staticmethod
    def _show(session: Session, seen: SeenLines) -> None:
        session.file(seen.path).show(seen)

    def _applied(self, session: Session, recorded: RecordedLike, event: ChangeApplied) -> None:
        for changed in event.paths:
            if changed.after is not None:
                session.file(changed.path).wrote(recorded.seq, whole=event.on_seen_whole)
        paths = tuple(changed.path for changed in event.paths)
        session.changes.append(MadeChange(event.change, recorded.seq, event.operation, paths, recorded.at))
        if event.reverts:
            undone = frozenset(event.reverts)  # it may be hundreds of thousands
            for other in self._sessions.values():
                other.changes = [made for made in other.changes if made.change not in undone]
        del session.changes[:-RECENT]
