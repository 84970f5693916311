"""Read sets: which lines of which version each session saw last, and whether others touched the file since.

A view is a short history of read_records. Contents are not at hand here: what became of the lines is for
`decisions.stale_regions` to say, and only of views that somebody else touched. Reads, own writes and notices
move a view on; nothing else does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import msgspec

from orchestrator.core.change import PathChange, Provenance
from orchestrator.core.content import LineHunk, LineRange
from orchestrator.core.events.base import Event, RecordedLike
from orchestrator.core.events.conflicts import ConflictFound, ConflictResolved, ConflictSuperseded
from orchestrator.core.events.files import (
    ChangeAborted,
    ChangeApplied,
    ChangeDiverged,
    ChangeIntended,
    ContentSearched,
    ContentShown,
    DiffShown,
    ExternalFileChanged,
    ExternalFileCreated,
    ExternalFileRemoved,
    FileRead,
    SeenLines,
)
from orchestrator.core.events.sessions import NoticeShown, NotifiedPath, SessionClosed, SessionOpened
from orchestrator.core.ids import AgentName, Seq, SessionId, WorkspacePath
from orchestrator.core.projections.base import Projection
from orchestrator.core.projections.registry import Registry
from orchestrator.core.projections.seen import merged
from orchestrator.core.text.regions import hull, survivors, written

MOST_VIEWS = 200
"""Files of one session; the one read longest ago falls out, and nothing more is told of it."""

MOST_READ_RECORDS = 16
MOST_NAMES = 8
MOST_HUNKS = 200
KEPT_CLOSED = 100
"""Sessions that ended and may be resumed."""

OUTSIDE = "outside"
"""Who changed a file, where only the disk tells that somebody did."""


class At(NamedTuple):
    """A content, by path and version."""

    path: WorkspacePath
    version: Seq


class ReadRecord(msgspec.Struct, frozen=True, gc=False):
    """Lines of one version that the session knows; or, with `before`, its own change from there to `version`.

    `at` is the event that showed it. `told`: a notice's diff showed it; a range without lines (end < start)
    is then the place where lines were taken away.
    """

    path: WorkspacePath
    version: Seq
    at: Seq
    ranges: tuple[LineRange, ...] = ()
    before: Seq | None = None
    hunks: tuple[LineHunk, ...] = ()
    told: bool = False

    @property
    def met(self) -> At:
        """What the file held when the session looked at it, or changed it."""
        return At(self.path, self.version if self.before is None else self.before)


class OtherAuthor(msgspec.Struct, frozen=True, gc=False):
    """Somebody else who changed a file, from when to when, and how often."""

    who: str
    first: Seq
    last: Seq
    count: int = 1


class View(msgspec.Struct, frozen=True, gc=False):
    """What one session knows of one file."""

    read_records: tuple[ReadRecord, ...] = ()  # oldest first
    other_authors: tuple[OtherAuthor, ...] = ()  # of others since the oldest read_record, the earliest first
    touched: Seq = Seq(0)  # their last change, 0: none
    notified: Seq = Seq(0)  # the version up to which a notice told of it
    moved_from: WorkspacePath | None = None  # where it was read, until a notice tells of the move
    shown: tuple[ReadRecord, ...] = ()  # what notices showed of others' changes: seen, and yet no read


class Reader(msgspec.Struct):
    """One session that read something."""

    session: SessionId
    agent: AgentName | None
    open: bool = True
    touched: Seq = Seq(0)  # the last change by others of anything that it has a view of
    views: dict[WorkspacePath, View] = {}  # the one read longest ago first

    def copy(self) -> Reader:
        """As it is now."""
        return msgspec.structs.replace(self, views=dict(self.views))


class SessionReads(Projection):
    """All sessions that have a view of a file, and for each file who has one."""

    folds: ClassVar[frozenset[type[Event]]] = frozenset(
        {
            *(FileRead, ContentSearched, DiffShown, ContentShown, NoticeShown, SessionOpened, SessionClosed),
            *(ChangeIntended, ChangeApplied, ChangeAborted, ChangeDiverged),
            *(ExternalFileChanged, ExternalFileCreated, ExternalFileRemoved),
            *(ConflictFound, ConflictResolved, ConflictSuperseded),
        }
    )
    tables: ClassVar[Mapping[str, Any]] = {
        "readers": dict[SessionId, Reader],
        "conflicts": dict[Seq, SessionId],
        "settling": dict[Seq, SessionId],
    }
    part_entries: ClassVar[int] = 20

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._readers: dict[SessionId, Reader] = {}
        self._of: dict[WorkspacePath, set[SessionId]] = {}
        self._conflicts: dict[Seq, SessionId] = {}  # open ones, by whose change they are
        self._settling: dict[Seq, SessionId] = {}  # intents that settle one

    def get(self, session: SessionId) -> Reader | None:
        return self._readers.get(session)

    def of(self, path: WorkspacePath) -> Iterator[Reader]:
        """Who has a view of a path, in no order."""
        return (self._readers[session] for session in self._of.get(path, ()))

    # --- folding ------------------------------------------------------------------------

    def apply(self, recorded: RecordedLike) -> None:  # noqa: C901, PLR0912  # one case for each kind of event
        match recorded.event:
            case FileRead(seen=seen):
                self._saw(recorded.session, recorded, seen)
            case ContentSearched(seen=all_seen):
                for seen in all_seen:
                    self._saw(recorded.session, recorded, seen)
            case DiffShown(seen=SeenLines() as lines):
                self._saw(recorded.session, recorded, lines)
            case ContentShown(session=session, seen=seen):
                self._saw(session, recorded, seen)
            case ChangeApplied() as applied:
                self._applied(recorded, applied)
            case (
                ExternalFileChanged(path=path, moved_from=source, by=by)
                | ExternalFileCreated(path=path, moved_from=source, by=by)
            ):
                if source is not None:
                    self._move(source, path, recorded.seq, by or OUTSIDE, but=())
                self._touch(path, recorded.seq, by or OUTSIDE, but=())
            case ExternalFileRemoved(path=path, moved_to=target, by=by):
                if target is not None:
                    self._move(path, target, recorded.seq, by or OUTSIDE, but=())
                self._touch(path, recorded.seq, by or OUTSIDE, but=())
            case NoticeShown(session=session, paths=paths):
                for told in paths:
                    self._told(session, told)
            case SessionOpened(session=session):
                if session in self._readers:
                    self._readers[session].open = True
            case SessionClosed(session=session):
                self._close(session)
            case _:
                self._follow(recorded)

    def _follow(self, recorded: RecordedLike) -> None:
        """Whose proposal a settlement carries out: it is no news to its author."""
        match recorded.event:
            case ConflictFound():
                if recorded.session is not None:
                    self._conflicts[recorded.seq] = recorded.session
            case ConflictResolved(conflict=conflict) | ConflictSuperseded(conflict=conflict):
                self._conflicts.pop(conflict, None)
            case ChangeIntended(provenance=Provenance(resolves=int() as conflict)):
                if conflict in self._conflicts:
                    self._settling[recorded.seq] = self._conflicts[conflict]
            case ChangeAborted(change=change) | ChangeDiverged(change=change):
                self._settling.pop(change, None)
            case _:
                return

    def _applied(self, recorded: RecordedLike, applied: ChangeApplied) -> None:
        own = tuple(s for s in (recorded.session, self._settling.pop(applied.change, None)) if s is not None)
        who = recorded.agent or OUTSIDE
        moves = {changed.moved_from: changed.path for changed in applied.paths if changed.moved_from is not None}
        for source, target in moves.items():
            self._move(source, target, recorded.seq, who, but=own)
        for changed in applied.paths:
            if changed.directory or (changed.after is None and changed.path in moves):
                continue
            for session in own:
                self._wrote(session, recorded, changed)
            self._touch(changed.path, recorded.seq, who, but=own)

    def _saw(self, session: SessionId | None, recorded: RecordedLike, seen: SeenLines) -> None:
        entry = self._registry.get(seen.path)
        if session is None or seen.cut or not seen.ranges or (entry is not None and entry.version != seen.version):
            return  # who asked for an earlier state knows what it is
        reader = self._readers.get(session)
        if reader is None:
            reader = self._readers[session] = Reader(session, recorded.agent)
        view = reader.views.get(seen.path) or View()
        last = view.read_records[-1] if view.read_records else None
        ranges = seen.ranges
        if seen.version < view.touched or (last is not None and seen.version < last.version):
            return
        if len(ranges) == 1 and ranges[0].start <= 1 and ranges[0].end >= seen.total_lines:
            self._put(reader, seen.path, _since(view, (ReadRecord(seen.path, seen.version, recorded.seq, ranges),)))
            return
        if last is not None and (last.path, last.version) == (seen.path, seen.version):
            joined = msgspec.structs.replace(last, at=recorded.seq, ranges=merged((*last.ranges, *ranges)))
            read_records = (*view.read_records[:-1], joined)
        else:
            read_records = (*view.read_records, ReadRecord(seen.path, seen.version, recorded.seq, merged(ranges)))
        self._put(reader, seen.path, _since(view, read_records[-MOST_READ_RECORDS:]))

    def _wrote(self, session: SessionId, recorded: RecordedLike, changed: PathChange) -> None:
        """A session's own change: it knows what it wrote, and what it knew has moved along."""
        reader = self._readers.get(session)
        if changed.after is None:
            if reader is not None:
                self._drop(reader, changed.path)
            return
        if reader is None:
            reader = self._readers[session] = Reader(session, recorded.agent)
        view = reader.views.get(changed.path) or View()
        hunks = changed.hunks if len(changed.hunks) <= MOST_HUNKS else (hull(changed.hunks),)
        before = Seq(changed.previous) if changed.previous is not None else None
        alone = view.read_records[0] if len(view.read_records) == 1 else None
        if alone is not None and (alone.path, alone.version, alone.before) == (changed.path, before, None):
            ranges = merged((*survivors(alone.ranges, hunks), *written(hunks)))
            read_records: tuple[ReadRecord, ...] = (ReadRecord(changed.path, recorded.seq, recorded.seq, ranges),)
        elif changed.moved_from is not None and not hunks:
            read_records = view.read_records  # the same lines under another name
        elif not view.read_records or before is None or changed.moved_from is not None:
            read_records = (ReadRecord(changed.path, recorded.seq, recorded.seq, written(hunks)),)
        else:
            own = ReadRecord(changed.path, recorded.seq, recorded.seq, before=before, hunks=hunks)
            read_records = (*view.read_records, own)
        if read_records:
            self._put(reader, changed.path, _since(view, read_records[-MOST_READ_RECORDS:]))

    def _touch(self, path: WorkspacePath, seq: Seq, who: str, *, but: tuple[SessionId, ...]) -> None:
        for session in self._of.get(path, ()):
            if session in but:
                continue
            reader = self._readers[session]
            view = reader.views[path]
            reader.touched = seq
            # Written out: `replace` takes ten times as long, and every change comes through here for every reader.
            hands = _with(view.other_authors, who, seq)
            reader.views[path] = View(view.read_records, hands, seq, view.notified, view.moved_from, view.shown)

    def _move(
        self, source: WorkspacePath, target: WorkspacePath, seq: Seq, who: str, *, but: tuple[SessionId, ...]
    ) -> None:
        """Views go with the file; who did not move it is told."""
        for session in tuple(self._of.get(source, ())):
            reader = self._readers[session]
            view = reader.views[source]
            self._drop(reader, source)
            if session not in but:
                hands = _with(view.other_authors, who, seq)
                moved = view.moved_from or source
                view = msgspec.structs.replace(view, touched=seq, other_authors=hands, moved_from=moved)
                reader.touched = seq
            self._put(reader, target, view)

    def _told(self, session: SessionId, told: NotifiedPath) -> None:
        reader = self._readers.get(session)
        view = reader.views.get(told.path) if reader is not None else None
        if reader is None or view is None:
            return
        shown = view.shown
        if told.shown:
            read_record = ReadRecord(told.path, told.version, told.version, told.shown, told=True)
            shown = (*shown, read_record)[-MOST_READ_RECORDS:]
        reader.views[told.path] = msgspec.structs.replace(view, notified=told.version, moved_from=None, shown=shown)

    def _close(self, session: SessionId) -> None:
        reader = self._readers.pop(session, None)
        if reader is None:
            return
        self._readers[session] = reader
        reader.open = False
        closed = [other for other in self._readers.values() if not other.open]
        for old in closed[:-KEPT_CLOSED]:
            for path in tuple(old.views):
                self._drop(old, path)
            del self._readers[old.session]

    def _put(self, reader: Reader, path: WorkspacePath, view: View) -> None:
        reader.views.pop(path, None)
        reader.views[path] = view
        self._of.setdefault(path, set()).add(reader.session)
        while len(reader.views) > MOST_VIEWS:
            self._drop(reader, next(iter(reader.views)))

    def _drop(self, reader: Reader, path: WorkspacePath) -> None:
        if reader.views.pop(path, None) is None:
            return
        left = self._of[path]
        left.discard(reader.session)
        if not left:
            del self._of[path]

    def index(self) -> None:
        for session, reader in self._readers.items():
            for path in reader.views:
                self._of.setdefault(path, set()).add(session)


def _since(view: View, read_records: tuple[ReadRecord, ...]) -> View:
    """The view with these reads, the other authors since the oldest of them, and what was notified since."""
    oldest = read_records[0].version
    hands = tuple(hand for hand in view.other_authors if hand.last > oldest)
    shown = tuple(read_record for read_record in view.shown if read_record.version >= oldest)
    return msgspec.structs.replace(view, read_records=read_records, other_authors=hands, shown=shown)


def _with(hands: tuple[OtherAuthor, ...], who: str, seq: Seq) -> tuple[OtherAuthor, ...]:
    """One more change by somebody; who came before MOST_NAMES others stays."""
    for n, hand in enumerate(hands):
        if hand.who == who:
            if hand.last == seq:
                return hands
            return (*hands[:n], OtherAuthor(who, hand.first, seq, hand.count + 1), *hands[n + 1 :])
    return (*hands, OtherAuthor(who, seq, seq))[:MOST_NAMES]
