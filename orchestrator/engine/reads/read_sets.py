"""Read sets at work: what a session saw of a file, against what stands there, and by whose hand it came."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

import msgspec
from anyio import to_thread

from orchestrator.api import results as r
from orchestrator.core.content import LineHunk, LineRange
from orchestrator.core.decisions.rebase import line_hunks
from orchestrator.core.decisions.stale_regions import At, Lines, Piece, contents_of, joined, news, stale
from orchestrator.core.events.files import ChangeApplied, ExternalFileChanged, ExternalFileCreated
from orchestrator.core.events.notices import MOST_UNSEEN, UnseenChange
from orchestrator.core.ids import Digest, Seq, SessionId, WorkspacePath, show
from orchestrator.core.projections.read_sets import OUTSIDE, ReadRecord, View
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.regions import meet, place
from orchestrator.engine.reads.tracked_reads import Text, TrackedReads
from orchestrator.engine.services import OFF_LOOP_BYTES, Services
from orchestrator.ports.journal import KnownVersion

T = TypeVar("T")

MOST_KNOWN = 2_000
"""Versions of which the journal need not be asked again."""

MOST_TRACED = 50
"""Changes that are looked through for who touched the lines; of more, all who changed the file are named."""


class Stale(msgspec.Struct, frozen=True):
    """A view that is out of date. `present` None: nothing stands there now. Pieces are joined, in order."""

    path: WorkspacePath
    view: View
    version: Seq  # of what stands there now, or of its removal
    pieces: tuple[Piece, ...]
    texts: dict[At, Lines]
    present: Lines | None
    by: tuple[tuple[str, Seq], ...] | None = None  # who touched the pieces, and when first; None: not known yet


class OtherAuthors(msgspec.Struct, frozen=True):
    """Who changed what was seen, and since when; and how many changes others made to the file."""

    by: tuple[str, ...]
    since: Seq
    changes: int


class Span(msgspec.Struct, frozen=True):
    """Lines that are followed through changes (0-based); `added`: two, and what comes between them."""

    start: int
    length: int
    added: bool

    @classmethod
    def of(cls, piece: Piece) -> Span:
        """The lines of a piece as they were seen."""
        return cls(piece.seen.start - 1, piece.seen.end - piece.seen.start + 1, piece.added)

    def met(self, hunk: LineHunk) -> bool:
        """Whether a change touched it. What came above or below two lines did not come between them."""
        if self.added and not hunk.old_len:
            return self.start < hunk.old_start < self.start + self.length
        return meet(self.start, self.length, hunk.old_start, hunk.old_len)

    def after(self, hunks: Sequence[LineHunk]) -> Span:
        """Where it stands after a change."""
        return Span(*place(self.start, self.length, hunks), self.added)


class ReadSets:
    """Looks at views that others touched; every other view is current without a look."""

    def __init__(self, services: Services) -> None:
        self._s = services
        # What the journal said of versions that are over: who reads a file is compared again after each change of it.
        self._digests: dict[At, Digest] = {}
        self._stood: dict[At, Seq] = {}
        self.tracked = TrackedReads(services, self._text)

    async def stale(
        self, path: WorkspacePath, view: View, *, news_only: bool = False, session: SessionId | None = None
    ) -> Stale | None:
        """What is stale in a view; None for nothing, or where a content that it needs was not kept.

        `news_only`: less what a notice told already. A file that moved, and was not told, is stale by that.
        `session`: whose view it is, if it is asked about again and again; one call at a time then.
        """
        if not view.touched or not view.read_records:
            return None
        entry = self._s.state.registry.get(path)
        if entry is None:
            version = self._s.state.registry.removed_at(path) or view.touched
            if news_only and view.notified >= version:
                return None
            return Stale(path, view, version, (), {}, None)
        if news_only and view.notified >= view.touched:
            return None
        found = await self._followed(session, path, view, entry.version, news_only=news_only) if session else None
        if found is None:
            found = await self._compared(path, view, entry.version, news_only=news_only)
        return found if found is not None and (found.pieces or view.moved_from) else None

    async def _followed(
        self, session: SessionId, path: WorkspacePath, view: View, version: Seq, *, news_only: bool
    ) -> Stale | None:
        """As `_compared`, at a small part of its cost; None where the view can't be followed."""
        followed = await self.tracked.stale(session, path, view, version, news_only=news_only)
        if followed is None:
            return None
        by: dict[str, Seq] = {}
        for item in followed.found:
            for who, seq in item.authors:
                by[who] = min(seq, by.get(who, seq))
        pieces = joined([item.piece for item in followed.found])
        ordered = tuple(sorted(by.items(), key=lambda item: item[1]))
        return Stale(path, view, version, pieces, followed.texts, followed.present, ordered)

    async def _compared(self, path: WorkspacePath, view: View, version: Seq, *, news_only: bool) -> Stale | None:
        read_records = [read_record for read_record in view.read_records if await self._was_present(read_record)]
        present = await self._text(At(path, version))
        seen: dict[At, Text] = {}
        for at in contents_of(read_records):
            text = await self._text(at)
            if text is None or present is None:
                return Stale(path, view, version, (), {}, ()) if view.moved_from else None
            seen[at] = text
        if present is None:
            return None
        then = await self._told(path, view) if news_only and view.notified else None
        for text in seen.values():  # large ones apart; they are at hand then
            await self.tracked.compared(text, present)
            if then is not None:
                await self.tracked.compared(text, then)
        texts = {at: lines for at, (_, lines) in seen.items()}
        size = len(present[1]) + sum(map(len, texts.values()))
        work = partial(self._pieces, tuple(read_records), seen, texts, present, then)
        pieces = await to_thread.run_sync(work) if size > OFF_LOOP_BYTES // 32 else work()
        return Stale(path, view, version, pieces, texts, present[1])

    def _pieces(
        self,
        read_records: Sequence[ReadRecord],
        seen: dict[At, Text],
        texts: dict[At, Lines],
        present: Text,
        then: Text | None,
    ) -> tuple[Piece, ...]:
        pieces = stale(read_records, texts, present[1], partial(self._across, seen, present))
        if then is not None:
            before = stale(read_records, texts, then[1], partial(self._across, seen, then))
            pieces = news(pieces, present[1], before, then[1])
        return joined(pieces)

    def _across(self, seen: dict[At, Text], present: Text, old: At, new: At | None) -> Sequence[LineHunk]:
        return self._s.comparisons.hunks(seen[old], present if new is None else seen[new])

    async def _told(self, path: WorkspacePath, view: View) -> Text | None:
        """What stood there when the last notice told of it."""
        for name in dict.fromkeys((path, *(read_record.path for read_record in reversed(view.read_records)))):
            row = await self._s.journal.version_at(name, view.notified)
            if row is not None and row.present:
                return await self._text(At(name, row.seq))
        return None

    async def _was_present(self, read_record: ReadRecord) -> bool:
        """Whether it was shown as the file's state of then; who asks for an earlier one knows what it is."""
        asked = At(read_record.path, read_record.at)
        if self._stood.get(asked) == read_record.version:
            return True
        row = await self._s.journal.version_at(read_record.path, read_record.at)
        if row is None or row.seq != read_record.version:
            return False
        _keep(self._stood, asked, row.seq)
        return True

    async def _text(self, at: At) -> Text | None:
        found = await self._found(at)
        return (found[0], found[1].lines) if found is not None else None

    async def _document(self, at: At) -> Document | None:
        found = await self._found(at)
        return found[1] if found is not None else None

    async def _found(self, at: At) -> tuple[Digest, Document] | None:
        digest = self._digests.get(at) or self._s.recent.digest(*at)
        at_hand = self._s.contents.decoded(digest) if digest is not None else None
        if digest is not None and at_hand is not None:
            return digest, at_hand
        if digest is None:
            row = await self._s.journal.version_at(at.path, at.version)
            if row is None or row.digest is None:
                return None
            digest = row.digest
            if row.seq == at.version:
                _keep(self._digests, at, digest)
        data = await self._s.contents.get(digest)
        document = await self._s.contents.text(digest, data) if data is not None else None
        return (digest, document) if document is not None else None

    # --- whose hand ---------------------------------------------------------------------

    async def hands(self, found: Stale, session: SessionId) -> OtherAuthors:
        """Who touched the stale lines; where that would take long, who touched the file."""
        hands = found.view.other_authors
        changes = sum(hand.count for hand in hands)
        everybody = OtherAuthors(
            tuple(hand.who for hand in hands) or (OUTSIDE,),
            hands[0].first if hands else found.view.touched,
            changes,
        )
        names = {found.path, *(read_record.path for read_record in found.view.read_records)}
        if changes <= 1 or changes > MOST_TRACED or len(names) > 1 or not found.pieces:
            return everybody
        if found.by is not None:
            return OtherAuthors(tuple(who for who, _ in found.by), found.by[0][1], changes) if found.by else everybody
        by: dict[str, Seq] = {}
        for origin in dict.fromkeys(piece.origin for piece in found.pieces):
            spans = [Span.of(piece) for piece in found.pieces if piece.origin == origin]
            for who, seq in await self._traced(found.path, origin.version, found.version, spans, session):
                by[who] = min(seq, by.get(who, seq))
        ordered = sorted(by, key=lambda who: by[who])
        return OtherAuthors(tuple(ordered), by[ordered[0]], changes) if ordered else everybody

    async def _traced(
        self, path: WorkspacePath, after: Seq, until: Seq, spans: list[Span], session: SessionId
    ) -> list[tuple[str, Seq]]:
        """Each change by others that met one of the spans, which move along."""
        met: list[tuple[str, Seq]] = []
        before = after
        for known in await self._s.journal.changes_of(path, after=after, until=until):
            hunks = await self._hunks(path, before, known)
            foreign = known.recorded.session != session
            if foreign and any(span.met(hunk) for span in spans for hunk in hunks):
                met.append((_who(known), known.row.seq))
            spans = [span.after(hunks) for span in spans]
            before = known.row.seq
        return met

    async def _hunks(self, path: WorkspacePath, before: Seq, known: KnownVersion) -> Sequence[LineHunk]:
        event = known.recorded.event
        if isinstance(event, ChangeApplied):
            changed = next((c for c in event.paths if c.path == path), None)
            if changed is not None and changed.hunks and changed.previous == before:
                return changed.hunks
        old, new = await self._document(At(path, before)), await self._document(At(path, known.row.seq))
        return line_hunks(old, new) if old is not None and new is not None else ()

    # --- what a change had not seen -----------------------------------------------------

    async def unseen(self, session: SessionId, paths: Iterable[WorkspacePath]) -> tuple[UnseenChange, ...]:
        """What others did to lines of these files that the session saw, and that no read or notice showed it since."""
        reader = self._s.state.readers.get(session)
        out: list[UnseenChange] = []
        for path in paths if reader is not None else ():
            view = reader.views.get(path) if reader is not None else None
            found = await self.stale(path, _with_told(view), session=session) if view is not None else None
            if found is None or found.present is None or not found.pieces:
                continue
            hands = await self.hands(found, session)
            out += (
                UnseenChange(
                    path=path,
                    version=piece.origin.version,
                    seen=piece.seen,
                    now=LineRange(piece.start + 1, piece.start + piece.length),
                    by=hands.by,
                    since=hands.since,
                    added=piece.added,
                )
                for piece in found.pieces
            )
        return tuple(out[:MOST_UNSEEN])


def _with_told(view: View) -> View:
    """The view as if a notice that showed lines in full had been a read of them."""
    if not view.shown:
        return view
    read_records = sorted(
        (*view.read_records, *view.shown), key=lambda read_record: (read_record.version, read_record.told)
    )
    return msgspec.structs.replace(view, read_records=tuple(read_records))


def _keep(known: dict[At, T], at: At, value: T) -> None:
    """The newest of them."""
    known[at] = value
    if len(known) > MOST_KNOWN:
        del known[next(iter(known))]


def _who(known: KnownVersion) -> str:
    event = known.recorded.event
    by = event.by if isinstance(event, ExternalFileChanged | ExternalFileCreated) else None
    return known.recorded.agent or by or OUTSIDE


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
    """As an answer tells it; of paths that the caller may not be shown, nothing."""
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
