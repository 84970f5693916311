"""Who calls, and one call of theirs."""

from __future__ import annotations

import hashlib

import msgspec

from orchestrator.api.operation import AnyOperation
from orchestrator.api.parameters import Params
from orchestrator.core.events.base import CallDetails, Origin
from orchestrator.core.events.sessions import AgentClass, Door
from orchestrator.core.ids import AgentName, SessionId
from orchestrator.core.text.room import UNBOUNDED, Room
from orchestrator.engine.arguments import arguments_of

_ENCODER = msgspec.json.Encoder()


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The identity behind a connection, proven by the door."""

    agent: AgentName
    agent_class: AgentClass
    session: SessionId
    door: Door
    asserted: bool = False
    owner: str | None = None
    token_hash: str | None = None  # of the token that let it in; an identity that changed since lets it no further

    @property
    def is_person(self) -> bool:
        return self.agent_class == "person"

    def origin(self, call: Call | None = None) -> Origin:
        """The envelope's part of what this caller causes."""
        if call is None:
            return Origin(session=self.session, agent=self.agent, owner=self.owner)
        return Origin(
            session=self.session,
            agent=self.agent,
            owner=self.owner,
            request_id=call.request_id,
            request_digest=call.digest if call.request_id else None,
            client_call_id=call.client_call_id,
            call=call.details,
        )


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One operation with its parameters, as it came in."""

    operation: AnyOperation
    params: Params
    client_call_id: str | None = None
    started_us: int | None = None  # by the clock's ticks, as it came in
    room: Room = UNBOUNDED  # for the answer; what is beyond it is neither sent nor seen

    @property
    def request_id(self) -> str | None:
        return getattr(self.params, "request_id", None)

    @property
    def details(self) -> CallDetails:
        """What the journal keeps of the call itself."""
        return CallDetails(
            operation=self.operation.name, arguments=arguments_of(self.params), started_us=self.started_us
        )

    @property
    def digest(self) -> str:
        """Of operation and parameters, without the request id and the approver code."""
        plain = msgspec.to_builtins(self.params)
        plain.pop("request_id", None)
        plain.pop("approver", None)
        data = _ENCODER.encode((self.operation.name, sorted(plain.items())))
        return hashlib.sha256(data).hexdigest()
