"""Who calls, one call of theirs, and what the journal keeps of its parameters: where and how, never what."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple, get_args, get_origin

import msgspec
from anyio import to_thread

from orchestrator.api.operation import AnyOperation
from orchestrator.api.parameters import JOURNALLED, ChangeParams, Params, Version
from orchestrator.core.errors import escaped
from orchestrator.core.events.base import CallDetails, Event, Origin
from orchestrator.core.events.sessions import AgentClass, Transport
from orchestrator.core.ids import AgentName, Seq, SessionId
from orchestrator.core.text.answer_space import UNBOUNDED, AnswerSpace

_ENCODER = msgspec.json.Encoder()

_POSITION = re.compile(r"@?[0-9]{1,18}|@previous|current|working|[0-9]{4}-[0-9]{2}-[0-9]{2}[0-9TZ:.,+ -]{0,30}")
"""A version or a time. A hash is none: it lets a content be guessed."""

_NOT_KEPT = ("request_id", "approver", "new_code")
"""It is in the envelope; of a secret not even the length is kept."""

REVIEWER = "reviewer:"
"""What the names of the reviewers that the policy lists begin with, when they act."""

LONGEST = 2000
"""Characters of one text; more is no path."""

HASHED_BYTES = 64 * 1024
"""Of parameters that are hashed at once."""

MOST = 50
"""Entries of a list."""


Fits = Callable[[Any], None]
"""Raises AnswerTooLarge for an answer that its client would not get: what that shows does not count as seen."""


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The identity behind a connection, authenticated by the transport."""

    agent: AgentName
    agent_class: AgentClass
    session: SessionId
    transport: Transport
    asserted: bool = False
    owner: str | None = None
    token_hash: str | None = None  # of the token that let it in; an identity that changed since lets it no further
    connection: int = 0  # which of the daemon's connections; a later one has a higher number
    pid: int = 0  # of the process at its other end; 0 where the system does not say it
    via: AgentName | None = None  # a person whom this agent's client asked, about one request

    @property
    def is_person(self) -> bool:
        return self.agent_class == "person"

    def aside(self, call: Call) -> Origin:
        """The same of what a call causes that does not answer its request id: sent again, it runs again."""
        return msgspec.structs.replace(self.origin(), client_call_id=call.client_call_id, call=call.details)

    def origin(self, call: Call | None = None) -> Origin:
        """The envelope's part of what this caller causes."""
        origin = Origin(session=self.session, agent=self.agent, owner=self.owner)
        if call is None:
            return origin
        return msgspec.structs.replace(
            origin,
            request_id=call.request_id,
            request_digest=call.digest if call.request_id else None,
            client_call_id=call.client_call_id,
            call=call.details,
        )


class HeldNote(NamedTuple):
    """What a call showed, not in the journal yet: another answer is made of it, which may leave it out."""

    origin: Origin
    event: Event


class Call(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One operation with its parameters."""

    operation: AnyOperation
    params: Params
    size: int = 0  # of the parameters, in bytes, as they came
    client_call_id: str | None = None
    started_us: int | None = None  # by the clock's ticks, at its arrival
    room: AnswerSpace = UNBOUNDED  # for the answer; what is beyond it is neither sent nor seen
    unescaped: bool = False  # its client decodes \uXXXX escapes in what its model sends
    held: list[HeldNote] | None = None  # takes what it showed, in place of the journal
    fits: Fits | None = None
    details: CallDetails = CallDetails(operation="")
    """What the journal keeps of the call itself; made of the others."""

    def __post_init__(self) -> None:
        name, arguments = self.operation.name, arguments_of(self.params)
        details = CallDetails(operation=name, arguments=arguments, started_us=self.started_us)
        msgspec.structs.force_setattr(self, "details", details)

    def released(self) -> list[HeldNote]:
        """What was held. From here on the journal takes what it shows."""
        held = self.held or []
        msgspec.structs.force_setattr(self, "held", None)
        return held

    @property
    def request_id(self) -> str | None:
        return getattr(self.params, "request_id", None)

    @cached_property
    def digest(self) -> str:
        """Of operation and parameters, without the request id and the approver code. Cost: of 12 MB, some 50 ms."""
        plain = msgspec.to_builtins(self.params)
        plain.pop("request_id", None)
        plain.pop("approver", None)
        data = _ENCODER.encode((self.operation.name, sorted(plain.items())))
        return hashlib.sha256(data).hexdigest()

    async def hashed(self) -> str:
        """The digest; found out beside the event loop where there is much to hash, and known from then on."""
        return await to_thread.run_sync(lambda: self.digest) if self.size > HASHED_BYTES else self.digest


class ChangeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Who wants it by which call, and on what terms."""

    caller: Caller
    call: Call
    base: Version | None = None
    preview: bool = False
    supersedes: Version | None = None
    reason: str = ""
    resolves: Seq | None = None
    pre_approved: bool = False  # a person with the approver code asks for it: ask counts as allow
    accepted_by: str | None = None  # that person, where it is a reviewer's proposal

    @classmethod
    def of(cls, caller: Caller, call: Call, params: ChangeParams) -> ChangeRequest:
        """As the parameters of the call say; some operations have no `base`, or no `supersedes`."""
        base, supersedes = getattr(params, "base", None), getattr(params, "supersedes", None)
        return cls(
            caller=caller, call=call, base=base, preview=params.preview, supersedes=supersedes, reason=params.reason
        )


def arguments_of(params: Params) -> dict[str, Any]:
    """The parameters that are not at their defaults, as small plain values.

    A text that is not kept is `{"bytes": N}`.
    """
    values: dict[str, Any] = {}
    for attribute, name, default, kept in _fields(type(params)):
        value = getattr(params, attribute)
        if value != default and value is not None:
            values[name] = _value(value, kept)
    return values


def _value(value: Any, kept: str | None) -> Any:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        if (kept == "given" and len(value) <= LONGEST) or (kept == "position" and _POSITION.fullmatch(value)):
            return escaped(value)
        return {"bytes": len(value.encode("utf-8", "surrogatepass"))}
    if isinstance(value, Params):
        return arguments_of(value)
    if isinstance(value, list | tuple):
        few = [_value(item, kept) for item in value[:MOST]]
        return [*few, {"more": len(value) - MOST}] if len(value) > MOST else few
    return {"kind": type(value).__name__}


@cache
def _fields(params: type[Params]) -> tuple[tuple[str, str, Any, str | None], ...]:
    """(attribute, name on the wire, default, how its text is kept) of each."""
    fields = msgspec.structs.fields(params)
    return tuple((f.name, f.encode_name, f.default, _kept(f.type)) for f in fields if f.name not in _NOT_KEPT)


def _kept(annotation: Any) -> str | None:
    """How the text of a parameter is kept; one of a few words is as good as a number."""
    if get_origin(annotation) is Literal:
        return "given"
    for part in get_args(annotation):
        kept = (part.extra or {}).get(JOURNALLED) if isinstance(part, msgspec.Meta) else _kept(part)
        if isinstance(kept, str):
            return kept
    return None
