"""What a session has read of a file, followed change by change, and the authors of the difference."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import TypeAlias, TypeVar

import msgspec
from anyio import to_thread

from orchestrator.core.change import MOST_UNSEEN, UnseenChange
from orchestrator.core.content import LineHunk, LineRange
from orchestrator.core.decisions.costs import LARGE_BYTES, LARGE_LINES
from orchestrator.core.decisions.stale_regions import Authors, Lines, Piece, Tracker, authors_of, joined
from orchestrator.core.events.base import OUTSIDE
from orchestrator.core.ids import Digest, Seq, SessionId, WorkspacePath
from orchestrator.core.projections.read_sets import At, ReadRecord, View
from orchestrator.engine.services import Services

T = TypeVar("T")

MOST_TRACKED = 50_000
"""Views, and places in them that are otherwise than they were seen; who was not asked about longest goes first."""


Followed: TypeAlias = tuple[dict[Piece, Authors], dict[At, Lines], Lines]
"""What is stale, the texts in which it was found, and the present one."""


class _NotKept(Exception):
    """A content that is needed is not in the journal."""


class _Tracked(Tracker):
    """A view, followed up to `here`; it counts what changed since `read_records`."""

    def __init__(self, first: ReadRecord, notified: Seq) -> None:
        super().__init__(first)
        self.here = self.at
        self.notified = min(notified, self.here.version)
        self.read_records: tuple[ReadRecord, ...] = ()

    def mark_notified(self, view: View) -> None:
        """Note that the version was notified, if it is the one of the last notice."""
        if view.notified == self.here.version:
            self.notified = view.notified


class Stale(msgspec.Struct, frozen=True):
    """A view that is out of date. `present` None: the file is gone. Pieces are joined, in order."""

    path: WorkspacePath
    view: View
    version: Seq  # of the file now, or of its removal
    authors: Authors  # who changed what was seen, the first one first; without lines, who changed the file
    pieces: tuple[Piece, ...] = ()
    texts: Mapping[At, Lines] = {}
    present: Lines | None = None

    @property
    def by(self) -> tuple[str, ...]:
        """The names of the authors."""
        return tuple(who for who, _ in self.authors)

    @property
    def since(self) -> Seq:
        """The first of their changes."""
        return self.authors[0][1]


class ReadSets:
    """What is stale in views that others touched; every other view is current without a look.

    For each session and file there is a tracker. Any of them can be lost at any time: it is then made anew.
    """

    def __init__(self, services: Services) -> None:
        self._s, self._recent = services, services.recent
        self.held = 0
        """The places of all trackers together."""
        self._tracked: OrderedDict[tuple[SessionId, WorkspacePath], _Tracked] = OrderedDict()

    def forget(self, session: SessionId) -> None:
        """The session ended."""
        for key in [key for key in self._tracked if key[0] == session]:
            self.held -= self._tracked.pop(key).size

    async def stale(
        self, session: SessionId, path: WorkspacePath, view: View, *, news_only: bool = False
    ) -> Stale | None:
        """What is stale in a session's view; None for nothing, or where a content that it needs was not kept.

        `news_only`: without what a notice showed. A file whose move was not notified is stale.
        """
        if not view.touched or not view.read_records:
            return None
        everybody = everybody_of(view)
        entry = self._s.state.registry.get(path)
        if entry is None:
            removed = self._s.state.registry.removed_at(path) or view.touched
            return None if news_only and view.notified >= removed else Stale(path, view, removed, everybody)
        if news_only and view.notified >= view.touched:
            return None
        followed = await self._followed(session, view, At(path, entry.version), news_only=news_only)
        if followed is None:
            return Stale(path, view, entry.version, everybody, present=()) if view.moved_from else None
        found, texts, present = followed
        if not found and not view.moved_from:
            return None
        by: Authors = reduce(authors_of, found.values()) if found else ()
        authors = tuple(sorted(by, key=lambda author: author[1])) or everybody
        return Stale(path, view, entry.version, authors, joined(tuple(found)), texts, present)

    async def unseen(self, session: SessionId, paths: Iterable[WorkspacePath]) -> tuple[UnseenChange, ...]:
        """What others did to lines of these files that the session saw, and that no read or notice showed it since."""
        reader = self._s.state.sessions.get(session)
        views = reader.views if reader is not None else {}
        unseen: list[UnseenChange] = []
        for path in paths:
            found = await self.stale(session, path, _with_notices(views[path])) if path in views else None
            if found is None:
                continue
            unseen += (
                UnseenChange(
                    path=path,
                    version=piece.origin.version,
                    seen=piece.seen,
                    now=LineRange(piece.start + 1, piece.start + piece.length),
                    by=found.by,
                    since=found.since,
                    added=piece.added,
                )
                for piece in found.pieces
            )
        return tuple(unseen[:MOST_UNSEEN])

    # --- trackers -----------------------------------------------------------------------

    async def _followed(self, session: SessionId, view: View, present: At, *, news_only: bool) -> Followed | None:
        """What is stale in a view, with `present` the version there now; None where a content was not kept."""
        key = (session, present.path)
        tracked = self._tracked.pop(key, None)
        if tracked is not None:
            self.held -= tracked.size
        try:
            tracked = await self._brought_up(tracked, view, present)
            texts = await self._texts({present, *tracked.origins(news_only=news_only)})
        except _NotKept:
            return None
        found = await _worked(
            partial(tracked.stale, texts.__getitem__, texts[present], news_only=news_only), texts.values()
        )
        if key not in self._tracked:  # two calls of one session may look at a time
            self._tracked[key] = tracked
            self.held += tracked.size
            while self.held > MOST_TRACKED:
                self.held -= self._tracked.popitem(last=False)[1].size
        return found, texts, texts[present]

    async def _brought_up(self, tracked: _Tracked | None, view: View, present: At) -> _Tracked:
        records = view.read_records
        first = _same_records(tracked, view, present) if tracked is not None else None
        if tracked is None or first is None:
            tracked, first = _Tracked(records[0], view.notified), 0
        tracked.mark_notified(view)
        for record in records[first:]:
            met = record.met
            await self._follow(tracked, met, view)
            texts = await self._texts({tracked.at, met}) if met != tracked.at else {}
            await _worked(partial(tracked.look, record, texts.__getitem__), texts.values())
            tracked.here = At(record.path, record.version)
            tracked.mark_notified(view)
        await self._follow(tracked, present, view)
        tracked.read_records = records
        return tracked

    # --- from one version to another ----------------------------------------------------

    async def _follow(self, tracked: _Tracked, until: At, view: View) -> None:
        """Go on to a version. Raises _NotKept where its content, or the one before, was not kept."""
        if until.version < tracked.here.version:
            raise _NotKept
        if until.version == tracked.here.version:
            return
        authors: Authors = ()
        async for after, brought_by in self._between(tracked.here, until, view):
            authors += brought_by
            hunks = await self._hunks(tracked.here, after)
            if hunks is None:
                if after == until:
                    raise _NotKept
                continue  # the next version is compared with the last one that was kept
            tracked.follow(after.version, authors, hunks)
            tracked.here, authors = after, ()
            tracked.mark_notified(view)

    async def _between(self, here: At, until: At, view: View) -> AsyncIterator[tuple[At, Authors]]:
        """Each version after `here` with its authors; where they are not known one by one, only the last of all."""
        recent = self._recent.since(here.path, here.version) if here.path == until.path else None
        if recent is not None and self._recent.digest(*until) is not None:
            for version in recent:
                if here.version < version.seq <= until.version:
                    yield At(until.path, version.seq), version.authors
            return
        everybody = everybody_of(view)
        if here.version < view.notified < until.version:
            for path in dict.fromkeys((until.path, here.path)):
                if await self._text(At(path, view.notified)) is not None:
                    yield At(path, view.notified), everybody
                    break
        yield until, everybody

    # --- contents -----------------------------------------------------------------------

    async def _hunks(self, old: At, new: At) -> Sequence[LineHunk] | None:
        before, after = await self._digest(old), await self._digest(new)
        return await self._s.contents.differences(before, after) if before is not None and after is not None else None

    async def _digest(self, at: At) -> Digest | None:
        known = self._recent.digest(*at)
        row = await self._s.journal.version_at(at.path, at.version) if known is None else None
        return row.digest if row is not None else known

    async def _text(self, at: At) -> Lines | None:
        digest = await self._digest(at)
        document = await self._s.contents.kept_text(digest) if digest is not None else None
        return document.lines if document is not None else None

    async def _texts(self, wanted: set[At]) -> dict[At, Lines]:
        texts = {at: text for at in wanted if (text := await self._text(at)) is not None}
        if len(texts) < len(wanted):
            raise _NotKept
        return texts


async def _worked(work: Callable[[], T], texts: Iterable[Lines]) -> T:
    """What comes of work on texts; beside the event loop where one of them is large."""
    if any(len(text) > LARGE_LINES or sum(map(len, text)) > LARGE_BYTES for text in texts):
        return await to_thread.run_sync(work)
    return work()


def everybody_of(view: View) -> Authors:
    """All who changed the file since it was read."""
    return tuple((other.who, other.first) for other in view.other_authors) or ((OUTSIDE, view.touched),)


def _same_records(tracked: _Tracked, view: View, present: At) -> int | None:
    """How many of the view's read records are followed already; None where the tracker can't go on to the view.

    The oldest fall out of a view, and the newest may come to hold more lines: it is looked at again then.
    """
    before, now = tracked.read_records, view.read_records
    if present.version < tracked.here.version:
        return None
    if tracked.notified < view.notified < tracked.here.version:
        return None
    last = before[-1]
    for n in range(len(now) - 1, -1, -1):
        if now[n] == last and now[: n + 1] == before[-n - 1 :]:
            return n + 1 if all(one.met.version >= tracked.here.version for one in now[n + 1 :]) else None
        same = (now[n].version, now[n].before, now[n].by_notice) == (last.version, last.before, last.by_notice)
        if same and now[:n] == before[len(before) - n - 1 : -1]:
            return n
    return None


def _with_notices(view: View) -> View:
    """The view as if a notice that showed lines in full had been a read of them."""
    records = sorted((*view.read_records, *view.shown), key=lambda record: (record.version, record.by_notice))
    return msgspec.structs.replace(view, read_records=tuple(records)) if view.shown else view
