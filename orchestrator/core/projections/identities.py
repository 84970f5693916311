"""Who may call, and what opens the door to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

import msgspec

from orchestrator.core.events.base import Event, RecordedLike
from orchestrator.core.events.sessions import AgentAdded, AgentClass, AgentRevoked, ApproverSet
from orchestrator.core.ids import AgentName


class Agent(msgspec.Struct, frozen=True):
    """A name that calls."""

    name: AgentName
    agent_class: AgentClass
    token_hash: str | None
    revoked: bool = False


class IdentitiesPart(msgspec.Struct, frozen=True):
    """All of it."""

    agents: tuple[Agent, ...]
    approver: ApproverSet | None


class Identities:
    """Agents by name, and the hash of the approver code."""

    name: ClassVar[str] = "identities"
    version: ClassVar[int] = 1
    folds: ClassVar[frozenset[type[Event]]] = frozenset({AgentAdded, AgentRevoked, ApproverSet})
    part: ClassVar[type[msgspec.Struct]] = IdentitiesPart

    def __init__(self) -> None:
        self._agents: dict[AgentName, Agent] = {}
        self.approver: ApproverSet | None = None

    def get(self, name: str) -> Agent | None:
        return self._agents.get(AgentName(name))

    def with_token_hash(self, token_hash: str) -> Agent | None:
        """The agent whose token has this hash, unless it was revoked."""
        for agent in self._agents.values():
            if agent.token_hash == token_hash and not agent.revoked:
                return agent
        return None

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
                self.approver = approver
            case _:
                return

    def parts(self) -> list[msgspec.Struct]:
        return [IdentitiesPart(tuple(self._agents.values()), self.approver)]

    def restore(self, parts: Iterable[IdentitiesPart]) -> None:
        for part in parts:
            self._agents.update((agent.name, agent) for agent in part.agents)
            self.approver = part.approver
