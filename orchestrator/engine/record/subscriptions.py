"""Following the journal: every event from a position on, as far as the caller may see it.

A follower keeps a position, never a queue: it is woken when the journal grows, and reads on from
where it was. So one that is slow costs a batch of memory and holds nobody up, and one that comes
back with its last position misses nothing and gets nothing twice.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from functools import partial

from orchestrator.api.framing import FeedEvent, Subscribe
from orchestrator.core.annotations import paths_of
from orchestrator.core.errors import NotPermitted, ParameterInvalid, escaped
from orchestrator.core.events.base import Event, Recorded, author_of
from orchestrator.core.events.codec import BY_TAG, tag_of
from orchestrator.core.events.files import DirectoryListed
from orchestrator.core.events.visibility import visible, without_paths
from orchestrator.core.globs import Globs
from orchestrator.core.ids import Seq, SessionId, WorkspacePath, show
from orchestrator.core.paths import ROOT
from orchestrator.engine.caller import Caller
from orchestrator.engine.reads.read_regions import ReadSets
from orchestrator.engine.services import Growth, Services
from orchestrator.ports.journal import EventFilter

BATCH = 200
"""Events that a follower reads at once; no more of them are in memory for it."""


class Follower:
    """Wakes the followers, and filters what they are shown."""

    def __init__(self, services: Services, sets: ReadSets) -> None:
        self._s, self._sets = services, sets
        self._growth = Growth(services.journal)

    async def follow(
        self, caller: Caller, params: Subscribe, check_authorized: Callable[[], None]
    ) -> tuple[Seq, AsyncGenerator[FeedEvent, None]]:
        """The position that the feed starts after, and its events, without end.

        Agents get the events of their own session, and changes of files that they may list, without
        secrets; people get everything. `check_authorized` raises once the caller may call no more.
        Raises VersionUnknown, ParameterInvalid, NotPermitted.
        """
        unknown = next((kind for kind in params.kinds if kind not in BY_TAG), None)
        if unknown is not None:
            raise ParameterInvalid("kinds", f"{escaped(unknown)!r} is no kind of event", hint=", ".join(sorted(BY_TAG)))
        if params.stale_for not in (None, caller.session) and not caller.is_person:
            raise NotPermitted("another session's reading is for people", hint="Name your own session.")
        globs = self._s.paths.globs(params.globs)
        after = self._s.journal.head if params.after is None else self._s.past.position(params.after, parameter="after")
        noted = DirectoryListed(operation="subscribe", path=ROOT, globs=params.globs)
        await self._s.notes.note_shown(caller, None, noted)
        return after, self._events(caller, after, params, globs, check_authorized)

    async def _events(
        self,
        caller: Caller,
        after: Seq,
        params: Subscribe,
        globs: Globs | None,
        check_authorized: Callable[[], None],
    ) -> AsyncGenerator[FeedEvent, None]:
        while True:
            head = self._s.journal.head
            wanted = EventFilter(tags=params.kinds, after=after, until=head)
            async for recorded in self._s.journal.events(wanted, batch=BATCH):
                check_authorized()
                shown = self._shown(caller, recorded, globs)
                if shown is None:
                    continue
                if params.stale_for is None or await self._makes_stale(caller, recorded, shown, params.stale_for):
                    yield await self._s.redaction.answer(caller, shown)
            after = head
            await self._growth.reach(head + 1)

    async def _makes_stale(self, caller: Caller, recorded: Recorded, shown: FeedEvent, raw_session: str) -> bool:
        """Whether it is a change by others after which a file is not as the session read it."""
        session = SessionId(raw_session)
        reader = self._s.state.sessions.get(session)
        if reader is None or recorded.session == session or not recorded.event.changes_files:
            return False
        for path in map(WorkspacePath, shown.paths):
            view = reader.views.get(path)
            if view is None or view.touched < recorded.seq or not self._s.permissions.readable(caller, path):
                continue
            if await self._sets.stale(session, path, view) is not None:
                return True
        return False

    # --- what is shown ------------------------------------------------------------------

    def _shown(self, caller: Caller, recorded: Recorded, globs: Globs | None) -> FeedEvent | None:
        """The event for this caller; None if it is not for it."""
        event: Event | None = recorded.event
        own = caller.is_person or recorded.session == caller.session
        if not own:  # a change by somebody else, of the paths that the caller may list
            listable = partial(self._s.access.lists, caller)
            event = without_paths(recorded.event, listable) if recorded.event.changes_files else None
        if event is None:
            return None
        paths = tuple(dict.fromkeys(paths_of(event)))
        if globs is not None and not any(map(globs.match, paths)):
            return None
        return FeedEvent(
            seq=show(recorded.seq),
            at=recorded.at,
            kind=tag_of(event),
            stream=recorded.stream if own else f"file:{paths[0]}",
            agent=author_of(recorded),
            session=recorded.session,
            path=paths[0] if paths else None,
            paths=paths,
            event=visible(event, recorded.stream, partial(self._s.permissions.readable, caller), of=recorded.event),
        )
