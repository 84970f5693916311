"""Who may call, and what opens the transport to them."""

from __future__ import annotations

from collections.abc import Iterator
from hmac import compare_digest
from typing import ClassVar

import msgspec

from orchestrator.core.events.base import Event, RecordedLike
from orchestrator.core.events.sessions import (
    AgentAdded,
    AgentClass,
    AgentRevoked,
    AgentTokenRotated,
    ApproverCodeRefused,
    ApproverSet,
)
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
    read_only: bool = False
    expires_at: int | None = None
    former_hash: str | None = None
    former_until: int = 0

    def is_open_to(self, token_hash: str | None, now_ms: int) -> bool:
        """Whether the name may be used at this time, by a token with this hash or, None, without one."""
        if self.revoked:
            return False
        if token_hash is not None and token_hash == self.former_hash:
            return now_ms < self.former_until
        return token_hash == self.token_hash and not self.is_expired(now_ms)

    def is_expired(self, now_ms: int) -> bool:
        """Whether its token was good for a time that is over."""
        return self.expires_at is not None and now_ms >= self.expires_at


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

    folds: ClassVar[frozenset[type[Event]]] = frozenset(
        {AgentAdded, AgentTokenRotated, AgentRevoked, ApproverSet, ApproverCodeRefused}
    )
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
        """The agent whose token has this hash, or had before it was rotated. Cost: the same whoever it is."""
        found = [
            agent
            for agent in self._agents.values()
            if compare_digest(agent.token_hash or "", token_hash) | compare_digest(agent.former_hash or "", token_hash)
        ]
        return found[0] if found else None

    def __iter__(self) -> Iterator[Agent]:
        return iter(self._agents.values())

    def apply(self, recorded: RecordedLike) -> None:
        match recorded.event:
            case AgentAdded(name=name, agent_class=agent_class, token_hash=token_hash) as added:
                self._agents[name] = Agent(
                    name, agent_class, token_hash, read_only=added.read_only, expires_at=added.expires_at
                )
            case AgentTokenRotated(name=name) as rotated:
                known = self._agents.get(name)
                if known is not None:
                    self._agents[name] = msgspec.structs.replace(
                        known,
                        token_hash=rotated.token_hash,
                        expires_at=rotated.expires_at,
                        former_hash=known.token_hash,
                        former_until=rotated.former_until,
                    )
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
