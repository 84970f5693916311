"""Each session: what it was shown, what it changed, what it works on; and its read set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import msgspec

from orchestrator.core.change import PathChange
from orchestrator.core.content import SeenLines
from orchestrator.core.events.base import OUTSIDE, Event, ExternalChange, RecordedLike
from orchestrator.core.events.conflicts import ApprovalRequested, ConflictFound
from orchestrator.core.events.files import (
    AnswerShown,
    ChangeApplied,
    ContentSearched,
    ContentShown,
    DiffShown,
    ExternalFileChanged,
    ExternalFileCreated,
    ExternalFileRemoved,
    FileRead,
)
from orchestrator.core.events.sessions import (
    AgentClass,
    NoticeShown,
    NotifiedPath,
    SessionClosed,
    SessionOpened,
    TaskBegun,
    TaskEnded,
)
from orchestrator.core.ids import AgentName, Seq, SessionId, WorkspacePath
from orchestrator.core.projections.base import Projection
from orchestrator.core.projections.pending import Pending
from orchestrator.core.projections.read_sets import SeenFile, View
from orchestrator.core.projections.registry import Registry

RECENT = 200
"""Files, views and changes that a session holds at most; the oldest fall out, and no notice follows for a view."""

KEPT_CLOSED = 200
"""Closed sessions that can still be resumed."""


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
    asserted: bool
    client: str
    open: bool = True
    seen: dict[WorkspacePath, SeenFile] = {}  # oldest touched first
    changes: list[MadeChange] = []  # newest last
    tasks: dict[Seq, int] = {}  # since when; a title is read from the event, since it may be redacted
    waits: bool = False  # it left a change behind that waits, or waited
    views: dict[WorkspacePath, View] = {}  # its read set; the one read longest ago first
    touched: Seq = Seq(0)  # the last change by others of anything that it has a view of

    def copy(self) -> Session:
        """As it is now."""
        return msgspec.structs.replace(
            self, seen=dict(self.seen), changes=list(self.changes), tasks=dict(self.tasks), views=dict(self.views)
        )

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


NOTHING = SeenFile()
NO_VIEW = View()


class Sessions(Projection):
    """All sessions, open and closed, and for each file who has a view of it."""

    folds: ClassVar[frozenset[type[Event]]] = frozenset(
        {
            *(SessionOpened, SessionClosed, NoticeShown),
            *(AnswerShown, ContentShown, FileRead, ContentSearched, DiffShown),
            *(ApprovalRequested, ConflictFound, ChangeApplied, ExternalChange, TaskBegun, TaskEnded),
        }
    )
    _sessions: dict[SessionId, Session]
    part_entries: ClassVar[int] = 20

    def __init__(self, registry: Registry, pending: Pending) -> None:
        super().__init__()
        self._registry, self._pending = registry, pending
        self._viewers: dict[WorkspacePath, set[SessionId]] = {}

    def get(self, session: SessionId) -> Session | None:
        return self._sessions.get(session)

    def __iter__(self) -> Iterator[Session]:
        return iter(self._sessions.values())

    def viewers(self, path: WorkspacePath) -> list[Session]:
        """Who has a view of a path, by id."""
        return [self._sessions[session] for session in sorted(self._viewers.get(path, ()))]

    def index(self) -> None:
        for session in self._sessions.values():
            for path in session.views:
                self._viewers.setdefault(path, set()).add(session.id)

    def apply(self, recorded: RecordedLike) -> None:  # noqa: C901, PLR0912  # one case for each kind of event
        event, seq = recorded.event, recorded.seq
        session = self._sessions.get(recorded.session) if recorded.session else None
        if type(event) is FileRead:  # the commonest by far: before all patterns
            self._show(session, event.seen)
            return
        match event:
            case SessionOpened(session=opened):
                known = self._sessions.get(opened)
                if known is None:
                    self._sessions[opened] = Session(
                        opened, event.agent, event.agent_class, event.asserted, event.client
                    )
                else:
                    known.open, known.client = True, event.client
                    if event.agent_class != "person":  # a terminal is one person's, from one command to the next
                        known.seen = {path: seen.resumed() for path, seen in known.seen.items()}
            case SessionClosed(session=closed):
                self._close(closed)
            case ContentShown(session=shown_to, seen=seen):
                self._show(self._sessions.get(shown_to), seen)
            case ContentSearched(seen=all_seen) | DiffShown(seen=all_seen) | AnswerShown(seen=all_seen):
                for seen in all_seen:
                    self._show(session, seen)
            case NoticeShown(session=notified, paths=paths):
                for notice in paths:
                    self._notify(notified, notice)
            case ChangeApplied():
                self._applied(session, recorded, event)
            case ExternalFileChanged(path=path, moved_from=source) | ExternalFileCreated(path=path, moved_from=source):
                who = recorded.agent or OUTSIDE  # a command's: who ran it has not seen what it wrote
                if source is not None:
                    self._move(source, path, seq, who, own=())
                self._touch(path, seq, who, own=())
            case ExternalFileRemoved(path=path, moved_to=target):
                who = recorded.agent or OUTSIDE
                if target is not None:
                    self._move(path, target, seq, who, own=())
                self._touch(path, seq, who, own=())
            case ApprovalRequested() | ConflictFound() if session is not None:
                session.waits = True
            case TaskBegun() if session is not None:
                session.tasks[seq] = recorded.at
            case TaskEnded(task=task) if session is not None:
                session.tasks.pop(task, None)
            case _:
                return

    def _close(self, closed: SessionId) -> None:
        """Sessions that saw and did nothing are forgotten at once, of the others the oldest beyond KEPT_CLOSED."""
        session = self._sessions.pop(closed, None)
        if session is None:
            return
        session.open = False
        session.seen = {path: seen.trimmed() for path, seen in session.seen.items()}
        if session.seen or session.views or session.changes or session.tasks or session.waits:
            self._sessions[closed] = session
        for old in [item for item in self._sessions.values() if not item.open][:-KEPT_CLOSED]:
            for path in tuple(old.views):
                self._drop(old, path)
            del self._sessions[old.id]

    def _applied(self, session: Session | None, recorded: RecordedLike, event: ChangeApplied) -> None:
        seq, provenance = recorded.seq, event.provenance
        if session is not None:
            previous = {item.path: item.previous for item in event.paths}
            for changed in event.paths:
                if changed.after is not None:
                    known = session.seen.get(changed.path, NOTHING)
                    whole = event.fit.on_seen_whole or _moved_whole(session, changed, previous)
                    session.put(changed.path, known.written(seq, whole=whole))
            paths = tuple(changed.path for changed in event.paths)
            session.changes.append(MadeChange(event.change, seq, provenance.operation, paths, recorded.at))
            if provenance.reverts:
                undone = frozenset(provenance.reverts)  # it may be hundreds of thousands
                for other in self._sessions.values():
                    other.changes = [made for made in other.changes if made.change not in undone]
            del session.changes[:-RECENT]
        conflict = self._pending.conflict(provenance.resolves) if provenance.resolves is not None else None
        proposer = conflict.session if conflict is not None else None  # it knows what it proposed
        own = tuple(item for item in (recorded.session, proposer) if item is not None)
        who = recorded.agent or OUTSIDE
        moves = {changed.moved_from: changed.path for changed in event.paths if changed.moved_from is not None}
        for source, target in moves.items():
            self._move(source, target, seq, who, own=own)
        for changed in event.paths:
            if changed.directory or (changed.after is None and changed.path in moves):
                continue
            for author in own:
                self._wrote(author, changed, seq)
            self._touch(changed.path, seq, who, own=own)

    # --- read sets ----------------------------------------------------------------------

    def _show(self, session: Session | None, seen: SeenLines) -> None:
        if session is None:
            return
        session.put(seen.path, session.seen.get(seen.path, NOTHING).shown(seen))
        entry = self._registry.get(seen.path)
        if seen.cut or not seen.ranges or (entry is not None and entry.version != seen.version):
            return  # who asked for an earlier state knows what it is
        view = session.views.get(seen.path, NO_VIEW).saw(seen)
        if view is not None:
            self._put(session, seen.path, view)

    def _wrote(self, author: SessionId, changed: PathChange, seq: Seq) -> None:
        session = self._sessions.get(author)
        if session is None:
            return
        if changed.after is None:
            self._drop(session, changed.path)
            return
        view = session.views.get(changed.path, NO_VIEW).wrote(changed, seq)
        if view.read_records:
            self._put(session, changed.path, view)

    def _touch(self, path: WorkspacePath, seq: Seq, who: str, *, own: tuple[SessionId, ...]) -> None:
        for viewer in self._viewers.get(path, ()):
            if viewer not in own:
                session = self._sessions[viewer]
                session.touched = seq
                session.views[path] = session.views[path].touched_by(who, seq)

    def _move(
        self, source: WorkspacePath, target: WorkspacePath, seq: Seq, who: str, *, own: tuple[SessionId, ...]
    ) -> None:
        """Views go with the file; who did not move it is notified."""
        for session in self.viewers(source):
            view = session.views[source]
            self._drop(session, source)
            if session.id not in own:
                view = msgspec.structs.replace(view.touched_by(who, seq), moved_from=view.moved_from or source)
                session.touched = seq
            self._put(session, target, view)

    def _notify(self, notified: SessionId, notice: NotifiedPath) -> None:
        session = self._sessions.get(notified)
        if session is not None and notice.path in session.views:
            session.views[notice.path] = session.views[notice.path].noticed(notice)

    def _put(self, session: Session, path: WorkspacePath, view: View) -> None:
        session.views.pop(path, None)
        session.views[path] = view
        self._viewers.setdefault(path, set()).add(session.id)
        while len(session.views) > RECENT:
            self._drop(session, next(iter(session.views)))

    def _drop(self, session: Session, path: WorkspacePath) -> None:
        if session.views.pop(path, None) is None:
            return
        left = self._viewers[path]
        left.discard(session.id)
        if not left:
            del self._viewers[path]


def _moved_whole(session: Session, changed: PathChange, previous: Mapping[WorkspacePath, int | None]) -> bool:
    """Whether a path holds by a rename what the session had seen whole under the other name."""
    source = changed.moved_from
    before = previous.get(source) if source is not None else None
    if not changed.renamed or source is None or before is None:
        return False
    coverage = session.seen.get(source, NOTHING).versions.get(Seq(before))
    return coverage is not None and coverage.whole
