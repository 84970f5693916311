"""Who is here, and what it works on: agents, approvers, sessions, tasks, leases; and notices to sessions."""

from __future__ import annotations

from typing import Literal

import msgspec

from orchestrator.core.annotations import Redactable, Secret
from orchestrator.core.content import LineRange
from orchestrator.core.events.base import Event
from orchestrator.core.ids import AgentName, Seq, SessionId, WorkspacePath

AgentClass = Literal["cloud", "local", "review", "person"]
Transport = Literal["rpc", "mcp", "daemon"]
LeaseMode = Literal["exclusive", "shared"]


class AgentAdded(Event, frozen=True, kw_only=True, tag="agent_added"):
    """An agent may call from now on; without a token hash its name is only asserted."""

    name: AgentName
    agent_class: AgentClass
    token_hash: Secret[str | None] = None  # hex SHA-256 of the token
    read_only: bool = False  # whoever calls with it may change nothing
    expires_at: int | None = None  # ms since the epoch; from then on the token opens nothing


class AgentTokenRotated(Event, frozen=True, kw_only=True, tag="agent_token_rotated"):
    """The agent has another token, for what the one before allowed."""

    name: AgentName
    token_hash: Secret[str]  # hex SHA-256 of the new token
    expires_at: int | None = None
    former_until: int  # ms since the epoch: how long the one before is good, too


class AgentRevoked(Event, frozen=True, kw_only=True, tag="agent_revoked"):
    """The agent's token no longer opens anything, and its name stays taken."""

    name: AgentName


class ApproverSet(Event, frozen=True, kw_only=True, tag="approver_set"):
    """The approver code was made or replaced; only its scrypt hash is kept."""

    salt: Secret[str]  # hex
    scrypt: Secret[str]  # hex, n=2**14 r=8 p=1, 32 bytes
    by: Literal["first_up", "old_code", "owner_uid"]


class ApproverCodeRefused(Event, frozen=True, kw_only=True, tag="approver_code_refused"):
    """Somebody gave a wrong approver code; the envelope says who, in which session."""

    pid: int = 0  # of the process that did; 0 where the system does not say it


class ApproverSessionOpened(Event, frozen=True, kw_only=True, tag="approver_session_opened"):
    """Somebody gave the approver code for what follows on one connection."""

    pid: int = 0  # of the process at its other end; 0 where the system does not say it


ApproverSessionEnd = Literal["disconnected", "idle", "code_replaced"]


class ApproverSessionClosed(Event, frozen=True, kw_only=True, tag="approver_session_closed"):
    """That connection needs the code again. A daemon that is killed ends all of them without a word."""

    cause: ApproverSessionEnd
    pid: int = 0  # as when it opened


class SessionOpened(Event, frozen=True, kw_only=True, tag="session_opened"):
    """A caller opened a session."""

    session: SessionId
    agent: AgentName
    agent_class: AgentClass
    transport: Transport
    asserted: bool = False  # the name was claimed without a token
    client: str = ""  # what the client calls itself, for display only


class SessionClosed(Event, frozen=True, kw_only=True, tag="session_closed"):
    """The caller left; its agent can resume the session."""

    session: SessionId


class TaskBegun(Event, frozen=True, kw_only=True, tag="task_begun"):
    """A session says what it works on; its changes carry this task until it ends."""

    session: SessionId
    title: Redactable[str]


class TaskEnded(Event, frozen=True, kw_only=True, tag="task_ended"):
    """The work on a task is over."""

    session: SessionId
    task: Seq
    outcome: Redactable[str]


class LeaseGranted(Event, frozen=True, kw_only=True, tag="lease_granted"):
    """From here to its end these paths are reserved. Its fencing number is this event's seq."""

    globs: tuple[str, ...]
    mode: LeaseMode
    expires_at: int  # ms since the epoch, by the daemon's clock
    task: Seq | None = None
    reason: Redactable[str] = ""


class LeaseRenewed(Event, frozen=True, kw_only=True, tag="lease_renewed"):
    """Its holder asked for more time."""

    lease: Seq
    expires_at: int


class LeaseReleased(Event, frozen=True, kw_only=True, tag="lease_released"):
    """Its holder, or a person, gave it back."""

    lease: Seq
    by: str


class LeaseExpired(Event, frozen=True, kw_only=True, tag="lease_expired"):
    """Its time is over."""

    lease: Seq


class NotifiedPath(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A path, and the version up to which its reader knows what became of what it had seen.

    `shown`: the lines of that version which the notice showed in full, in the place of others or between them;
    end < start: the place where lines were taken away. Nothing, where its diff was cut or left out.
    """

    path: WorkspacePath
    version: Seq
    shown: tuple[LineRange, ...] = ()


class NoticeShown(Event, frozen=True, kw_only=True, tag="notice_shown"):
    """An answer notified a session that others had changed what it had read."""

    session: SessionId
    paths: tuple[NotifiedPath, ...]


Budget = Literal["tokens", "bytes", "calls"]
Period = Literal["session", "day"]


class BudgetExceeded(Event, frozen=True, kw_only=True, tag="budget_exceeded"):
    """What the caller may take in a period is taken; noted once, and its further calls are refused until it resets."""

    budget: Budget
    period: Period
    most: int
    used: int
    resets_at: int | None = None  # ms since the epoch; None: with another session
