"""Views followed change by change: a change is compared once for all sessions, and each of them moves positions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from orchestrator.core.content import LineHunk
from orchestrator.core.decisions.costs import LARGE_LINES
from orchestrator.core.decisions.stale_regions import At, Lines, hunks_between
from orchestrator.core.decisions.tracked_regions import Found, Step, Tracker
from orchestrator.core.errors import TextTooCostly
from orchestrator.core.ids import Digest, Seq, SessionId, WorkspacePath
from orchestrator.core.projections.read_sets import ReadRecord, View
from orchestrator.engine.services import Services

Text: TypeAlias = tuple[Digest, Lines]
TextAt: TypeAlias = Callable[[At], Awaitable[Text | None]]

MOST_TRACKED = 50_000
"""Views, and places in them that are otherwise than they were seen; who was not asked about longest goes first."""


class Followed(NamedTuple):
    """What is stale, and the contents that it was found in."""

    found: list[Found]
    texts: dict[At, Lines]
    present: Lines


class _Gap(Exception):
    """A version, or its text, is not at hand: the view must be compared anew."""


class _Tracked:
    """A view so far."""

    __slots__ = ("read_records", "size", "tracker")

    def __init__(self, first: ReadRecord) -> None:
        self.tracker = Tracker(first)
        self.read_records: tuple[ReadRecord, ...] = ()
        self.size = 1


class TrackedReads:
    """For each session and file a tracker. All of it can be lost at any time: then views are compared anew."""

    def __init__(self, services: Services, text: TextAt) -> None:
        self._s, self._text, self._held = services, text, 0
        self._tracked: OrderedDict[tuple[SessionId, WorkspacePath], _Tracked] = OrderedDict()

    def __len__(self) -> int:
        return self._held

    def forget(self, session: SessionId) -> None:
        """The session ended."""
        for key in [key for key in self._tracked if key[0] == session]:
            self._held -= self._tracked.pop(key).size

    async def stale(
        self, session: SessionId, path: WorkspacePath, view: View, version: Seq, *, news_only: bool
    ) -> Followed | None:
        """What is stale in a view at a version, the present one; None where it can't be followed.

        Of one session and path one call at a time. `news_only`: less what notices told.
        """
        key = (session, path)
        tracked = self._tracked.pop(key, None)
        if tracked is not None:
            self._held -= tracked.size
        try:
            tracked = await self._brought_up(tracked, path, view, version, news_only=news_only)
            followed = await self._found(tracked.tracker, path, news_only=news_only)
        except _Gap:
            return None
        if tracked.tracker.too_much:
            return followed
        if key in self._tracked:  # two previews of one session at a time
            return followed
        tracked.size = tracked.tracker.size
        self._tracked[key] = tracked
        self._held += tracked.size
        while self._held > MOST_TRACKED:
            self._held -= self._tracked.popitem(last=False)[1].size
        return followed

    async def _brought_up(
        self, tracked: _Tracked | None, path: WorkspacePath, view: View, version: Seq, *, news_only: bool
    ) -> _Tracked:
        read_records = view.read_records
        if view.moved_from is not None or any(read_record.path != path for read_record in read_records):
            raise _Gap
        first = _known(tracked.read_records, read_records) if tracked is not None else None
        if tracked is None or first is None:
            tracked, first = _Tracked(read_records[0]), 0
        told = view.notified if news_only else None
        await self._tell(tracked.tracker, path, told)
        for read_record in read_records[first:]:
            stood = self._s.recent.stood(path, read_record.version, read_record.at)
            if stood is None:
                raise _Gap
            if stood:  # who asked for an earlier state knows what it is
                await self._look(tracked.tracker, read_record, told)
        await self._follow(tracked.tracker, path, version, told)
        tracked.read_records = read_records
        return tracked

    async def _look(self, tracker: Tracker, read_record: ReadRecord, told: Seq | None) -> None:
        met = At(read_record.path, read_record.before if read_record.before is not None else read_record.version)
        await self._follow(tracker, read_record.path, met.version, told)
        texts = await self._texts({tracker.at, met}) if met != tracker.at else {}
        tracker.look(read_record, texts.__getitem__)
        await self._tell(tracker, read_record.path, told)

    async def _follow(self, tracker: Tracker, path: WorkspacePath, until: Seq, told: Seq | None) -> None:
        if tracker.version == until:
            return
        versions = self._s.recent.since(path, tracker.version)
        if versions is None or tracker.version > until or versions[-1].seq < until:
            raise _Gap
        for before, after in pairwise(versions):
            if after.seq > until:
                break
            hunks = self._s.comparisons.known(before.digest, after.digest)
            if hunks is None:
                old, new = await self._text(At(path, before.seq)), await self._text(At(path, after.seq))
                if old is None or new is None:
                    raise _Gap
                hunks = await self.compared(old, new)
            tracker.follow(Step(after.seq, after.authors, hunks))
            await self._tell(tracker, path, told)
        if tracker.version != until:
            raise _Gap

    async def compared(self, old: Text, new: Text) -> Sequence[LineHunk]:
        """What makes one text the other, kept at hand.

        Large texts are compared apart; where that takes too long, all of them has changed.
        """
        if len(old[1]) + len(new[1]) <= LARGE_LINES:
            return self._s.comparisons.hunks(old, new)
        known = self._s.comparisons.known(old[0], new[0])
        if known is not None:
            return known
        try:
            hunks = await self._s.effort.run(partial(hunks_between, old[1], new[1]))
        except TextTooCostly:
            hunks = [LineHunk(0, len(old[1]), 0, len(new[1]))]
        return self._s.comparisons.keep(old[0], new[0], hunks)

    async def _tell(self, tracker: Tracker, path: WorkspacePath, told: Seq | None) -> None:
        """Where it has come to the version that the last notice told of."""
        if told == tracker.version and not tracker.is_told:
            here = At(path, tracker.version)
            tracker.tell((await self._texts({here}))[here])

    async def _found(self, tracker: Tracker, path: WorkspacePath, *, news_only: bool) -> Followed:
        here = At(path, tracker.version)
        texts = await self._texts({here, *tracker.origins(news_only=news_only)})
        present = texts[here]
        return Followed(tracker.stale(texts.__getitem__, present, news_only=news_only), texts, present)

    async def _texts(self, wanted: set[At]) -> dict[At, Lines]:
        texts: dict[At, Lines] = {}
        for at in wanted:
            text = await self._text(at)
            if text is None:
                raise _Gap
            texts[at] = text[1]
        return texts


def _known(before: Sequence[ReadRecord], now: Sequence[ReadRecord]) -> int | None:
    """How many of the read_records are followed already; None where they are not the same ones.

    The oldest fall out of a view, and the newest may come to hold more lines: it is looked at again then.
    """
    if not before:
        return None
    last = before[-1]
    for n in range(len(now) - 1, -1, -1):
        if now[n] == last and tuple(now[: n + 1]) == tuple(before[-n - 1 :]):
            return n + 1
        same = (now[n].version, now[n].before, now[n].told) == (last.version, last.before, last.told)
        if same and tuple(now[:n]) == tuple(before[len(before) - n - 1 : -1]):
            return n
    return None
