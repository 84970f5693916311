"""The base of all events, and the envelope around each one in the journal."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal, TypeAlias

import msgspec

from orchestrator.core.annotations import Redactable
from orchestrator.core.ids import AgentName, Seq, SessionId, WorkspacePath

Outcome = Literal[
    "answered",
    "applied",
    "aborted",
    "diverged",
    "refused",
    "denied",
    "waiting",
    "granted",
    "expired",
    "conflict",
    "resolved",
    "superseded",
    "external",
]


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", omit_defaults=True, gc=False):
    """A fact in the past tense, complete in itself, never edited.

    Here and below `gc=False`: frozen and without cycles, so the collector need not look; a replay
    is a third faster without it.

    What its fields hold is in their annotations (`core.annotations`); what it is, in these.
    """

    outcomes: ClassVar[tuple[Outcome, ...]] = ()
    """The outcome of a call, a change or a request; of several, its `code` says which."""

    changes_files: ClassVar[bool] = False
    """After it a file's content is another one."""

    proposes: ClassVar[bool] = False
    """Once nothing waits for it any more, nobody needs the contents that it names."""


class Refusal(Event, frozen=True, kw_only=True):
    """A call that was refused: by policy, where its code is `denied`."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("refused", "denied")

    operation: str  # escaped
    code: str
    message: Redactable[str]


class ExternalChange(Event, frozen=True, kw_only=True):
    """Something else than the daemon changed a file."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("external",)
    changes_files: ClassVar[bool] = True

    path: WorkspacePath
    lease_holder: AgentName | None = None  # who alone held a lease on it then; who did it is not known
    lease: Seq | None = None


class CallDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the caller asked for, and how long it took until this event was in the journal.

    `arguments` hold paths, globs, ranges, flags and reasons as given; of a content or a
    pattern only its size. They are the caller's words: no fold reads them.
    """

    operation: str
    arguments: dict[str, Any] = {}
    took_us: int = 0
    started_us: int | None = None  # while the call runs: the clock when it began; never stored

    def taken(self, now_us: int) -> CallDetails:
        """As it is stored, at this moment."""
        took_us = 0 if self.started_us is None else max(0, now_us - self.started_us)
        return CallDetails(operation=self.operation, arguments=self.arguments, took_us=took_us)


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Who caused an event, and by which call."""

    session: SessionId | None = None
    agent: AgentName | None = None
    owner: str | None = None  # the human it acts for
    request_id: str | None = None
    request_digest: str | None = None  # of operation and parameters
    cause: Seq | None = None  # the event that led to this one
    trace_id: str | None = None
    client_call_id: str | None = None  # the agent's own id of the tool call
    call: CallDetails | None = None  # on a unit's first event


class SlimRecorded(msgspec.Struct, frozen=True, gc=False):
    """What folds need of a stored event, at half the cost of a whole one."""

    seq: Seq
    at: int  # ms since the epoch
    session: SessionId | None
    agent: AgentName | None
    event: Event
    hash: bytes


class Recorded(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An event as the journal holds it. Order is by `seq` alone; `at` is an attribute."""

    seq: Seq
    at: int  # ms since the epoch
    stream: str
    stream_version: int
    origin: Origin
    event: Event
    payload_hash: bytes
    prev_hash: bytes
    hash: bytes

    @property
    def agent(self) -> AgentName | None:
        return self.origin.agent

    @property
    def session(self) -> SessionId | None:
        return self.origin.session


RecordedLike: TypeAlias = Recorded | SlimRecorded
"""What a fold may look at."""

OUTSIDE: Final = "outside"
"""Stands where an agent's name would for what something else than the daemon did; no agent may be called so."""


def author_of(recorded: RecordedLike) -> str | None:
    """The agent that caused an event, or `OUTSIDE`; None where nobody did."""
    return recorded.agent or (OUTSIDE if isinstance(recorded.event, ExternalChange) else None)
