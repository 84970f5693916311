"""What each session, and each agent today, has taken: calls, tokens that it was shown, bytes that it brought."""

from __future__ import annotations

from functools import cache
from typing import ClassVar

import msgspec

from orchestrator.core.events.base import Event, RecordedLike
from orchestrator.core.events.files import ChangeApplied
from orchestrator.core.events.sessions import BudgetExceeded
from orchestrator.core.ids import AgentName, SessionId
from orchestrator.core.projections.base import Projection

DAY_MS = 86_400_000
MOST_SESSIONS = 1000
"""Sessions whose usage is known; the one that called longest ago goes first."""


class Used(msgspec.Struct):
    """What was taken in one period; `noted` are the budgets, each with its limit, that were found to be spent."""

    calls: int = 0
    tokens: int = 0
    bytes: int = 0
    day: int = 0  # since the epoch, in UTC; of a session 0
    noted: tuple[str, ...] = ()

    def copy(self) -> Used:
        """As it is now."""
        return msgspec.structs.replace(self)


class Usage(Projection):
    """Counts the outcomes of calls; a change counts once, when it is applied, and not again when it was granted."""

    folds: ClassVar[frozenset[type[Event]]] = frozenset({Event})
    _sessions: dict[SessionId, Used]
    _days: dict[AgentName, Used]

    def of_session(self, session: SessionId) -> Used:
        """What a session took so far."""
        return self._sessions.get(session) or Used()

    def of_day(self, agent: AgentName, at_ms: int) -> Used:
        """What an agent took on the day (in UTC) of a time."""
        used = self._days.get(agent)
        return used if used is not None and used.day == at_ms // DAY_MS else Used(day=at_ms // DAY_MS)

    def apply(self, recorded: RecordedLike) -> None:
        event, agent = recorded.event, recorded.agent
        if agent is None:
            return
        if type(event) is BudgetExceeded:
            for used in self._periods(recorded, agent):
                if (used.day > 0) == (event.period == "day"):
                    used.noted += (f"{event.budget} {event.most}",)
            return
        if not _is_outcome(type(event)):
            return
        calls, brought = 1, 0
        if type(event) is ChangeApplied:
            calls = 1 if event.provenance.approval is None else 0
            brought = event.provenance.brought
        tokens = getattr(event, "tokens", 0)
        for used in self._periods(recorded, agent):
            used.calls += calls
            used.tokens += tokens
            used.bytes += brought

    def _periods(self, recorded: RecordedLike, agent: AgentName) -> list[Used]:
        day = self._days[agent] = self.of_day(agent, recorded.at)
        session = recorded.session
        if session is None:
            return [day]
        used = self._sessions.pop(session, None) or Used()
        self._sessions[session] = used  # the last one now
        if len(self._sessions) > MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return [day, used]


@cache
def _is_outcome(kind: type[Event]) -> bool:
    """Whether such an event says how a call came out."""
    return not {"answered", "applied", "refused", "waiting", "conflict"}.isdisjoint(kind.outcomes)
