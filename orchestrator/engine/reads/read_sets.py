"""What a session has read of a file, compared with its present content, and the authors of the difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from orchestrator.api import results as r
from orchestrator.core.change import MOST_UNSEEN, UnseenChange
from orchestrator.core.content import LineRange
from orchestrator.core.decisions.stale_regions import Lines, Piece, joined
from orchestrator.core.decisions.tracked_regions import Authors
from orchestrator.core.ids import Seq, SessionId, WorkspacePath, show
from orchestrator.core.projections.read_sets import At, View
from orchestrator.engine.reads.tracked_reads import TrackedReads, everybody_of
from orchestrator.engine.services import Services


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

    @property
    def changes(self) -> int:
        """How many changes others made to the file since it was read."""
        return sum(other.count for other in self.view.other_authors)


class ReadSets:
    """Looks at views that others touched; every other view is current without a look."""

    def __init__(self, services: Services) -> None:
        self._registry, self._sessions = services.state.registry, services.state.sessions
        self.tracked = TrackedReads(services.journal, services.contents, services.recent)

    async def stale(
        self, session: SessionId, path: WorkspacePath, view: View, *, news_only: bool = False
    ) -> Stale | None:
        """What is stale in a session's view; None for nothing, or where a content that it needs was not kept.

        `news_only`: without what a notice showed. A file whose move was not notified is stale.
        """
        if not view.touched or not view.read_records:
            return None
        everybody = everybody_of(view)
        entry = self._registry.get(path)
        if entry is None:
            removed = self._registry.removed_at(path) or view.touched
            return None if news_only and view.notified >= removed else Stale(path, view, removed, everybody)
        if news_only and view.notified >= view.touched:
            return None
        followed = await self.tracked.stale(session, view, At(path, entry.version), news_only=news_only)
        if followed is None:
            return Stale(path, view, entry.version, everybody, present=()) if view.moved_from else None
        found, texts, present = followed
        if not found and not view.moved_from:
            return None
        by: dict[str, Seq] = {}
        for who, seq in (author for authors in found.values() for author in authors):
            by[who] = min(seq, by.get(who, seq))
        authors = tuple(sorted(by.items(), key=lambda item: item[1])) or everybody
        return Stale(path, view, entry.version, authors, joined(tuple(found)), texts, present)

    async def unseen(self, session: SessionId, paths: Iterable[WorkspacePath]) -> tuple[UnseenChange, ...]:
        """What others did to lines of these files that the session saw, and that no read or notice showed it since."""
        reader = self._sessions.get(session)
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


def _with_notices(view: View) -> View:
    """The view as if a notice that showed lines in full had been a read of them."""
    records = sorted((*view.read_records, *view.shown), key=lambda record: (record.version, record.told))
    return msgspec.structs.replace(view, read_records=tuple(records)) if view.shown else view


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
