"""Notices: with its next answer, a session learns what others did to what it has read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from operator import add
from typing import Literal

import anyio
import msgspec

from orchestrator.api import results as r
from orchestrator.api import session_operations as n
from orchestrator.core.change import UnseenChange
from orchestrator.core.content import LineRange
from orchestrator.core.decisions.stale_regions import Lines, Piece
from orchestrator.core.errors import OrchestratorError
from orchestrator.core.events.sessions import NoticeShown, NotifiedPath
from orchestrator.core.ids import Seq, SessionId, WorkspacePath, show
from orchestrator.core.policy.rules import Deny
from orchestrator.core.projections.read_sets import View
from orchestrator.core.projections.sessions import Session
from orchestrator.core.text.answer_space import UNBOUNDED, AnswerSpace, json_size, size
from orchestrator.core.text.long_lines import parts_that_differ
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.reads.read_regions import ReadSets, Stale
from orchestrator.engine.services import Services
from orchestrator.logs import logger

MOST_NOTICES = 5
"""In one answer; what others did to more files is counted there, and comes with the next answers."""

MOST_PIECES = 20
DIFF_LINES = 20
LINE_CHARACTERS = 200


class StaleReadNotifier:
    """Knows for each session up to where it has looked, so that an answer costs nothing while nothing changed."""

    def __init__(self, services: Services, observer: Observer, sets: ReadSets) -> None:
        self._s, self._observer, self._sets = services, observer, sets
        self._looked: dict[SessionId, Seq] = {}
        """Up to where the views of each were looked through: the changes before need no other notice."""
        self._looking: dict[SessionId, anyio.Lock] = {}
        self._log = logger("engine")

    def waits(self, caller: Caller) -> bool:
        """Whether somebody touched what the caller's session has read. Cost: two look-ups."""
        reader = self._s.state.sessions.get(caller.session)
        return reader is not None and reader.touched > self._looked.get(caller.session, 0)

    async def due(self, caller: Caller, room: AnswerSpace = UNBOUNDED) -> tuple[r.Notice, ...]:
        """The notices for the answer that goes out now; they count as notified by that.

        What there is no room for comes with the next answer: one comes in few words.
        """
        reader = self._s.state.sessions.get(caller.session)
        if reader is None or not self.waits(caller):
            return ()
        try:
            async with self._looking.setdefault(caller.session, anyio.Lock(fast_acquire=True)):
                return await self._notify(caller, reader, room)
        except OrchestratorError as error:
            self._log.error("a session could not be notified of what others changed", error=error.message)
            return ()

    def forget(self, session: SessionId) -> None:
        """The session ended. Should it be resumed, its views are looked through once more."""
        self._looked.pop(session, None)
        self._looking.pop(session, None)
        self._sets.forget(session)

    async def _notify(self, caller: Caller, reader: Session, room: AnswerSpace) -> tuple[r.Notice, ...]:
        touched, looked = reader.touched, self._looked.get(caller.session, Seq(0))
        due = [(path, view) for path, view in reader.views.items() if view.touched > max(view.notified, looked)]
        left = deque(sorted(due, key=lambda item: item[1].notified))  # so that each has its turn
        notices: list[r.Notice] = []
        notified: list[NotifiedPath] = []
        while left and len(notices) < MOST_NOTICES:
            path, view = left[0]
            found = await self._sets.stale(caller.session, path, view, news_only=True)
            if found is not None and self._may_see(caller, path, view):
                notice = await self._notice(caller, found, with_diff=True)
                if not room.first([_cost(notice)], least=0):
                    if notices:
                        break
                    more = notice.more_lines + len(notice.lines[1:])
                    notice = msgspec.structs.replace(notice, diff=None, lines=notice.lines[:1], more_lines=more)
                room = room.less(*_cost(notice))
                notices.append(notice)
                notified.append(NotifiedPath(path, found.version, _shown(notice, found)))
            left.popleft()
        if notified:
            await self._s.notes.note_shown(caller, None, NoticeShown(session=caller.session, paths=tuple(notified)))
        if notices and (more_files := sum(self._may_see(caller, path, view) for path, view in left)):
            notices[-1] = msgspec.structs.replace(notices[-1], more_files=more_files)
        if not left:
            self._looked[caller.session] = touched
        return tuple(notices)

    async def stale(self, caller: Caller) -> tuple[r.Notice, ...]:
        """Everything that is stale now, notified or not; the newest reads first."""
        reader = self._s.state.sessions.get(caller.session)
        found: list[r.Notice] = []
        for path, view in reversed(tuple(reader.views.items())) if reader is not None else ():
            stale = await self._sets.stale(caller.session, path, view)
            if stale is not None and self._may_see(caller, path, view):
                found.append(await self._notice(caller, stale, with_diff=False))
        return tuple(found)

    async def stale_readers(self, caller: Caller, call: Call, params: n.StaleReaders) -> n.StaleReadersAnswer:
        path = self._s.paths.file(params.path)
        await self._s.access.names(caller, call, path)
        access = self._s.access.content(caller, call, path)  # lines that were read and changed tell of its content
        async with self._s.locks.shared(path):
            await self._observer.refresh_for_display(access)
        readers: list[n.StaleReader] = []
        for reader in self._s.state.sessions.viewers(path):
            found = await self._sets.stale(reader.id, path, reader.views[path])
            if found is not None:
                readers.append(
                    n.StaleReader(
                        agent=reader.agent,
                        session=reader.id,
                        open=reader.open,
                        version_id=show(max(record.version for record in found.view.read_records)),
                        lines=_lines(found, readable=True),
                        by=found.by,
                        since=show(found.since),
                    )
                )
        await self._s.notes.note_metadata(caller, call, path)
        entry = self._s.state.registry.get(path)
        return n.StaleReadersAnswer(
            path=path,
            version_id=show(entry.version) if entry is not None else None,
            readers=tuple(readers[: params.limit]),
            total=len(readers),
        )

    async def _notice(self, caller: Caller, found: Stale, *, with_diff: bool) -> r.Notice:
        moved = found.view.moved_from
        kind: Literal["changed", "deleted", "moved"] = (
            "deleted" if found.present is None else "moved" if moved is not None else "changed"
        )
        readable = self._s.permissions.readable(caller, found.path)
        diff, cut = _diff(found) if with_diff and found.present is not None and readable else ("", False)
        shown = _diff(await self._without_secrets(caller, found))[0] if diff else ""
        return r.Notice(
            path=found.path,
            kind=kind,
            by=found.by,
            since=show(found.since),
            version_id=show(found.version) if found.present is not None else None,
            moved_from=moved if moved is not None and self._s.access.lists(caller, moved) else None,
            lines=_lines(found, readable=readable),
            more_lines=max(0, len(found.pieces) - MOST_PIECES),
            diff=shown or None,
            diff_truncated=cut or shown != diff,
        )

    async def _without_secrets(self, caller: Caller, found: Stale) -> Stale:
        """The same with texts as the caller is shown them: a few lines of a key do not tell what they are."""
        texts = {at: await self._shown_lines(caller, found, lines) for at, lines in found.texts.items()}
        present = await self._shown_lines(caller, found, found.present or ())
        return msgspec.structs.replace(found, texts=texts, present=present)

    async def _shown_lines(self, caller: Caller, found: Stale, lines: Lines) -> Lines:
        return tuple((await self._s.redaction.of_lines(caller, found.path, lines)).over(lines))

    def _may_see(self, caller: Caller, path: WorkspacePath, view: View) -> bool:
        """Whether policy lets the caller know of the file, and read it under each name that it was seen by."""
        names = {path, *(read_record.path for read_record in view.read_records)}
        denied = any(isinstance(self._s.permissions.verdict(caller, "read", name), Deny) for name in names)
        return self._s.access.lists(caller, path) and not denied


def _lines(found: Stale, *, readable: bool) -> tuple[r.NoticeLines, ...]:
    """The first of the stale pieces; where they are now, for who may read the file."""
    return tuple(
        r.NoticeLines(
            seen_in=show(piece.origin.version),
            start=piece.seen.start,
            end=piece.seen.end,
            now_start=piece.start + 1 if readable else None,
            now_end=piece.start + piece.length if readable else None,
            added=piece.added,
        )
        for piece in found.pieces[:MOST_PIECES]
    )


def _cost(notice: r.Notice) -> tuple[int, int]:
    """Bytes and lines of a notice, as JSON or in words."""
    return json_size(notice) + 2 * size(notice.path) + 300, (notice.diff or "").count("\n") + 4


def _shown(notice: r.Notice, found: Stale) -> tuple[LineRange, ...]:
    """The lines that a notice shows in full; none if it leaves anything out."""
    if notice.diff is None or notice.diff_truncated:
        return ()
    return tuple(LineRange(piece.start + 1, piece.start + piece.length) for piece in found.pieces)


def _diff(found: Stale) -> tuple[str, bool]:
    """The stale lines as seen and as they are now, and whether that is cut."""
    rows: list[str] = []
    for piece in found.pieces:
        rows += _hunk(piece, found)
        if len(rows) > DIFF_LINES:
            break
    cut = len(rows) > DIFF_LINES or any(len(row) > LINE_CHARACTERS + 1 for row in rows)
    return "".join(f"{row}\n" for row in rows[:DIFF_LINES]), cut


def _hunk(piece: Piece, found: Stale) -> list[str]:
    """The rows of a piece; of each side no more than are shown at most, and one. Of long lines a part, as of diffs."""
    most = DIFF_LINES + 1
    text, present = found.texts[piece.origin], found.present or ()
    first = piece.seen.start - 1
    old_len = min(piece.seen.end, len(text)) - first
    new_len = min(piece.length, len(present) - piece.start)
    new = present[piece.start : piece.start + min(piece.length, most)]
    if piece.added:
        head = f"@@ -{piece.seen.start},2 +{piece.start},{new_len + 2} @@"
        lines = [text[first], *new, text[first + 1]]
        marks = " " + "+" * len(new) + " "
        return [head, *map(add, marks, parts_that_differ(lines, (), LINE_CHARACTERS))]
    old = text[first : first + min(old_len, most)]
    head = f"@@ -{piece.seen.start},{old_len} +{piece.start + bool(piece.length)},{new_len} @@"
    removed = (f"-{line}" for line in parts_that_differ(old, new, LINE_CHARACTERS))
    return [head, *removed, *(f"+{line}" for line in parts_that_differ(new, old, LINE_CHARACTERS))]


def unseen_in_words(unseen: Sequence[UnseenChange]) -> str:
    """The first of what a change's author had not seen, and how many more there are."""
    first = unseen[0]
    more = f" and {len(unseen) - 1} more places" if len(unseen) > 1 else ""
    did = "added lines between" if first.added else "changed"
    return (
        f"its author has not seen that {', '.join(first.by)} {did} lines {first.seen.start}-{first.seen.end} "
        f"of {first.path} at {show(first.version)}{more}"
    )


def unseen_texts(unseen: Sequence[UnseenChange], shows: Callable[[WorkspacePath], bool]) -> tuple[r.UnseenText, ...]:
    """As an answer shows it, for the paths that the caller may be shown."""
    return tuple(
        r.UnseenText(
            path=item.path,
            seen_in=show(item.version),
            start=item.seen.start,
            end=item.seen.end,
            now_start=item.now.start,
            now_end=item.now.end,
            added=item.added,
            by=item.by,
            since=show(item.since),
        )
        for item in unseen
        if shows(item.path)
    )
