"""Who may call, and what opens the transport to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from orchestrator.core.events.base import Event, RecordedLike
from orchestrator.core.events.sessions import AgentAdded, AgentClass, AgentRevoked, ApproverSet
from orchestrator.core.ids import AgentName
from orchestrator.core.projections.base import Projection

APPROVER = "person"
"""The one who says yes and no."""


class Agent(msgspec.Struct, frozen=True):
    """A name that calls."""

    name: AgentName
    agent_class: AgentClass
    token_hash: str | None
    revoked: bool = False


class Identities(Projection):
    """Agents by name, and the hash of the approver code."""

    folds: ClassVar[frozenset[type[Event]]] = frozenset({AgentAdded, AgentRevoked, ApproverSet})
    _agents: dict[AgentName, Agent]
    _approvers: dict[str, ApproverSet]

    @property
    def approver(self) -> ApproverSet | None:
        """The approver code in force, as a hash."""
        return self._approvers.get(APPROVER)

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
            case _:
                return
