"""The messages of ACP version 1 that we send and understand. What else an agent sends is passed over."""

from __future__ import annotations

import shlex
from typing import Any, Final, Literal

import msgspec

PROTOCOL: Final = 1

AUTH_REQUIRED: Final = -32000
INVALID_PARAMS: Final = -32602
METHOD_NOT_FOUND: Final = -32601
INTERNAL: Final = -32603

Kind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]
Permission = Literal["allow_once", "allow_always", "reject_once", "reject_always"]
StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]


class _Message(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Unknown members are passed over."""


# --- JSON-RPC --------------------------------------------------------------------------


class RpcError(_Message, frozen=True, kw_only=True):
    message: str
    code: int = INTERNAL
    data: Any = None


class Incoming(_Message, frozen=True, kw_only=True):
    """A request (method and id), a notification (method alone) or an answer (id alone)."""

    id: int | str | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw(b"{}")
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: RpcError | None = None


# --- the beginning ---------------------------------------------------------------------


class AuthMethod(_Message, frozen=True, kw_only=True):
    id: str
    name: str = ""


class AgentCapabilities(_Message, frozen=True, kw_only=True):
    load_session: bool = False


class Initialized(_Message, frozen=True, kw_only=True):
    protocol_version: int
    agent_capabilities: AgentCapabilities = AgentCapabilities()
    auth_methods: tuple[AuthMethod, ...] = ()


class NewSession(_Message, frozen=True, kw_only=True):
    session_id: str


class PromptEnded(_Message, frozen=True, kw_only=True):
    stop_reason: StopReason


class Variable(_Message, frozen=True, kw_only=True):
    """Of the environment."""

    name: str
    value: str


class StdioServer(_Message, frozen=True, kw_only=True):
    """An MCP server that the agent is to start."""

    name: str
    command: str
    args: tuple[str, ...]
    env: tuple[Variable, ...] = ()


# --- tool calls ------------------------------------------------------------------------


class Text(_Message, frozen=True, kw_only=True):
    text: str = ""


class Location(_Message, frozen=True, kw_only=True):
    path: str
    line: int | None = None


class Content(_Message, frozen=True, kw_only=True):
    """A part of what a tool call shows; of a diff, what is replaced by what."""

    type: str
    path: str = ""
    old_text: str | None = None
    new_text: str = ""
    content: Text | None = None

    @property
    def is_diff(self) -> bool:
        """Whether it is one, of a file that it names."""
        return self.type == "diff" and bool(self.path)


class ToolCall(_Message, frozen=True, kw_only=True):
    """A tool call as the agent reports it; of an update only what is new. All of it is the agent's claim."""

    tool_call_id: str
    title: str | None = None
    kind: Kind | None = None
    status: Literal["pending", "in_progress", "completed", "failed"] | None = None
    locations: tuple[Location, ...] | None = None
    content: tuple[Content, ...] | None = None
    raw_input: Any = None

    def updated(self, new: ToolCall) -> ToolCall:
        """With what an update says."""
        said = {name: value for name in new.__struct_fields__ if (value := getattr(new, name)) is not None}
        return msgspec.structs.replace(self, **said)

    @property
    def over(self) -> bool:
        """Whether it has ended, either way."""
        return self.status in ("completed", "failed")

    @property
    def command(self) -> str:
        """What it runs, as far as its input says so in one of the ways that agents have."""
        given = self.raw_input.get("command") if isinstance(self.raw_input, dict) else None
        if isinstance(given, list) and all(isinstance(word, str) for word in given):
            return shlex.join(given)
        return given if isinstance(given, str) else ""

    @property
    def diffs(self) -> tuple[Content, ...]:
        """The edits that it shows."""
        return tuple(content for content in self.content or () if content.is_diff)

    @property
    def text(self) -> str:
        """What it says of how it went."""
        return "\n".join(content.content.text for content in self.content or () if content.content)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that it names, each once."""
        named = [*(location.path for location in self.locations or ()), *(diff.path for diff in self.diffs)]
        return tuple(dict.fromkeys(named))


class PlanEntry(_Message, frozen=True, kw_only=True):
    content: str
    status: str = "pending"


class Update(_Message, frozen=True, kw_only=True):
    """What kind of update it is; the members are those of its kind."""

    session_update: str


class Chunk(_Message, frozen=True, kw_only=True):
    content: Text


class Plan(_Message, frozen=True, kw_only=True):
    entries: tuple[PlanEntry, ...] = ()


class Usage(_Message, frozen=True, kw_only=True):
    used: int  # tokens in its context


class SessionUpdate(_Message, frozen=True, kw_only=True):
    session_id: str
    update: msgspec.Raw


# --- what an agent asks for ------------------------------------------------------------


class Option(_Message, frozen=True, kw_only=True):
    option_id: str
    name: str
    kind: Permission


class PermissionRequest(_Message, frozen=True, kw_only=True):
    session_id: str
    tool_call: ToolCall
    options: tuple[Option, ...] = ()


class ReadText(_Message, frozen=True, kw_only=True):
    session_id: str
    path: str
    line: int | None = None  # 1-based
    limit: int | None = None


class WriteText(_Message, frozen=True, kw_only=True):
    session_id: str
    path: str
    content: str
