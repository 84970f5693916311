"""Journals session starts and ends; while the disk is full they are queued."""

from __future__ import annotations

from collections import deque

import anyio

from orchestrator.core.errors import DiskFull, WritesStopped, escaped
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.sessions import SessionClosed, SessionOpened
from orchestrator.core.projections.sessions import Session
from orchestrator.engine.caller import Caller
from orchestrator.engine.reads.stale_read_notices import StaleReadNotifier
from orchestrator.engine.services import Services
from orchestrator.logs import logger

MOST_OWED = 10_000
"""Notes kept in memory while the disk is full; the oldest go first."""


class SessionLifecycle:
    """A caller is let in whatever the journal can take: `status`, `stop` and reads must be reachable then."""

    def __init__(self, services: Services, noticer: StaleReadNotifier) -> None:
        self._s, self._noticer = services, noticer
        self._owed: deque[tuple[Origin, str, Event]] = deque(maxlen=MOST_OWED)
        self._one_at_a_time = anyio.Lock()
        self._left: list[Session] = []  # open when the last daemon ended
        self._log = logger("engine")

    def begin(self) -> None:
        """Before anybody calls: whoever was connected when the last daemon ended is not connected now."""
        self._left = [session for session in self._s.state.sessions if session.open]

    async def close_left(self) -> None:
        """Note the end of the sessions that the last daemon left open."""
        while self._left:
            session = self._left[-1]
            origin = Origin(session=session.id, agent=session.agent)
            await self._s.append(origin, (f"session:{session.id}", SessionClosed(session=session.id)))
            self._left.pop()

    async def opened(self, caller: Caller, client: str) -> None:
        """Note that a session opened, or was resumed."""
        event = SessionOpened(
            session=caller.session,
            agent=caller.agent,
            agent_class=caller.agent_class,
            door=caller.door,
            asserted=caller.asserted,
            client=escaped(client)[:200],
        )
        await self._note(caller, event)

    async def closed(self, caller: Caller) -> None:
        """Note that a session closed."""
        self._noticer.forget(caller.session)
        await self._note(caller, SessionClosed(session=caller.session))

    async def catch_up(self) -> None:
        """Before a call: note what could not be noted, in order."""
        if not self._owed:
            return
        async with self._one_at_a_time:
            while self._owed:
                origin, stream, event = self._owed[0]
                try:
                    with anyio.CancelScope(shield=True):
                        await self._s.append(origin, (stream, event))
                        self._owed.popleft()
                except DiskFull:
                    return
                except WritesStopped:  # the next start closes what is open
                    self._owed.clear()

    async def _note(self, caller: Caller, event: Event) -> None:
        self._owed.append((caller.origin(), f"session:{caller.session}", event))
        await self.catch_up()
        if self._owed:
            self._log.warning("a session is not noted yet: the disk of the journal is full", session=caller.session)
