"""Who is here: agents, approvers, sessions and tasks."""

from __future__ import annotations

from typing import Literal

from orchestrator.core.annotations import Redactable, Secret
from orchestrator.core.events.base import Event
from orchestrator.core.ids import AgentName, Seq, SessionId

AgentClass = Literal["cloud", "local", "review", "person"]
Door = Literal["rpc", "mcp", "daemon"]


class AgentAdded(Event, frozen=True, kw_only=True, tag="agent_added"):
    """An agent may call from now on; without a token hash its name is only asserted."""

    name: AgentName
    agent_class: AgentClass
    token_hash: Secret[str | None] = None  # hex SHA-256 of the token


class AgentRevoked(Event, frozen=True, kw_only=True, tag="agent_revoked"):
    """The agent's token no longer opens anything, and its name stays taken."""

    name: AgentName


class ApproverSet(Event, frozen=True, kw_only=True, tag="approver_set"):
    """The approver code was made or replaced; only its scrypt hash is kept."""

    salt: Secret[str]  # hex
    scrypt: Secret[str]  # hex, n=2**14 r=8 p=1, 32 bytes
    by: Literal["first_up", "old_code", "owner_uid"]


class SessionOpened(Event, frozen=True, kw_only=True, tag="session_opened"):
    """A caller came in."""

    session: SessionId
    agent: AgentName
    agent_class: AgentClass
    door: Door
    asserted: bool = False  # the name was claimed without a token
    client: str = ""  # what the client calls itself, for display only


class SessionClosed(Event, frozen=True, kw_only=True, tag="session_closed"):
    """The caller went away; the session can be resumed by its agent."""

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
