"""Who may call, and what opens the transport to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from orchestrator.core.events.base import Event, RecordedLike
from orchestrator.core.events.sessions import AgentAdded, AgentClass, AgentRevoked, ApproverCodeRefused, ApproverSet
from orchestrator.core.ids import AgentName, SessionId
from orchestrator.core.projections.base import Projection

APPROVER = "person"
"""The one who says yes and no."""


class Agent(msgspec.Struct, frozen=True):
    """A name that calls."""

    name: AgentName
    agent_class: AgentClass
    token_hash: str | None
    revoked: bool = False


class WrongCodes(msgspec.Struct, frozen=True):
    """Wrong approver codes with no quiet time between them, on all connections."""

    count: int
    at: int  # of the last one, ms since the epoch
    agent: AgentName | None
    session: SessionId | None
    pid: int


QUIET_MS = 15 * 60_000
"""After that time without a wrong code, the next one counts as the first."""


class Identities(Projection):
    """Agents by name, the hash of the approver code, and who guessed at it."""

    folds: ClassVar[frozenset[type[Event]]] = frozenset({AgentAdded, AgentRevoked, ApproverSet, ApproverCodeRefused})
    _agents: dict[AgentName, Agent]
    _approvers: dict[str, ApproverSet]
    _wrong_codes: dict[str, WrongCodes]

    @property
    def approver(self) -> ApproverSet | None:
        """The approver code in force, as a hash."""
        return self._approvers.get(APPROVER)

    @property
    def wrong_codes(self) -> WrongCodes | None:
        """The last wrong approver codes, however long ago."""
        return self._wrong_codes.get(APPROVER)

    def get(self, name: str) -> Agent | None:
        return self._agents.get(AgentName(name))

    def with_token_hash(self, token_hash: str) -> Agent | None:
        """The agent whose token has this hash, unless it was revoked."""
        return next((one for one in self._agents.values() if one.token_hash == token_hash and not one.revoked), None)

    def __iter__(self) -> Iterator[Agent]:
        return iter(self._agents.values())

    def apply(self, recorded: RecordedLike) -> None:
        match recorded.event:
            case AgentAdded(name=name, agent_class=agent_class, token_hash=token_hash):
                self._agents[name] = Agent(name, agent_class, token_hash)
            case AgentRevoked(name=name):
                known = self._agents.get(name)
                if known is not None:
                    self._agents[name] = msgspec.structs.replace(known, revoked=True)
            case ApproverSet() as approver:
                self._approvers[APPROVER] = approver
            case ApproverCodeRefused(pid=pid):
                before = self.wrong_codes
                count = before.count + 1 if before is not None and recorded.at - before.at < QUIET_MS else 1
                self._wrong_codes[APPROVER] = WrongCodes(count, recorded.at, recorded.agent, recorded.session, pid)
            case _:
                return
