"""Lines on the socket: one JSON document each, ended by a newline.

The first line is the preamble, in which the caller says who it is and which transport it
wants; the daemon answers with one line, then the transport's own protocol begins: JSON-RPC 2.0
with an operation's name as the method ("rpc"), or MCP ("mcp").

On an "rpc" connection, `subscribe` is a method besides. It is answered with `Subscribed`; then come lines without an
id until the connection ends: `event` with a `FeedEvent` as params, in the journal's order, or, should the feed end,
`feed_ended` with a `Refusal`. A feed is resumed by the last position seen.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from orchestrator.api.journal_operations import StoredEvent
from orchestrator.api.operation import Operation
from orchestrator.api.parameters import MOST_ENTRIES, Globs, Name, Params, Version
from orchestrator.api.results import Notice, Result
from orchestrator.api.toolsets import Toolset
from orchestrator.core.errors import OrchestratorError
from orchestrator.core.text.answer_space import AnswerSpace

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""A longer line is refused with `frame_too_large` and read past."""

MAX_REPLY_BYTES = 64 * 1024 * 1024
"""In place of a longer answer the daemon says `answer_too_large`; the clients read no longer line."""

MAX_PREAMBLE_BYTES = 64 * 1024

MOST_MESSAGE, MOST_DETAIL_BYTES = 8_000, 32 * 1024
"""Of a refusal: characters of its message, and bytes of the lists in its details together."""

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding a hostile document may raise: msgspec lets bytes that are no UTF-8, and endless nesting, through."""


class Preamble(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who calls. `token` proves `agent`; without it the name is asserted, by the daemon's own uid only."""

    orchestrator: Literal[1]  # the version of the preamble
    transport: Literal["rpc", "mcp"]
    agent: str | None = None
    token: str | None = None
    session: str | None = None  # to resume one
    login: str | None = None  # without it: which login at a terminal has one session for all of its commands
    person: bool = False  # act as person:<login> when neither agent nor token is given
    client: str = ""  # for display
    toolset: Toolset = "core"
    settings: dict[str, str] = {}  # MCP: of the other server's environment, where the toolset stands in for one
    structured: bool = False  # MCP: structured content for reads too
    max_answer_bytes: int | None = None  # MCP: instead of what is known of the client by its name


class Welcome(msgspec.Struct, frozen=True, kw_only=True):
    """The daemon's answer to a preamble that it accepts."""

    session: str
    agent: str
    asserted: bool
    workspace: str
    ok: Literal[True] = True


class Refusal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error as callers see it. A member that says nothing is left out."""

    code: str
    message: str
    hint: str = ""
    details: dict[str, Any] = {}
    shown: str | None = None  # file lines, as reads show them


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One call. `params` stays raw until the operation is known."""

    method: str
    jsonrpc: Literal["2.0"] = "2.0"
    id: int | str | None = None
    params: msgspec.Raw = msgspec.Raw(b"{}")
    call_id: str | None = None  # the agent's own id of the call, if it has one


class RpcError(msgspec.Struct, frozen=True, kw_only=True):
    """JSON-RPC's error object; `data` is ours."""

    message: str
    data: Refusal
    code: int = -32000


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one call: `result` or `error`; or a line of a feed: `method` and `params`."""

    id: int | str | msgspec.UnsetType | None = msgspec.UNSET
    result: Any = msgspec.UNSET
    error: RpcError | msgspec.UnsetType = msgspec.UNSET
    jsonrpc: Literal["2.0"] = "2.0"
    notices: tuple[Notice, ...] | msgspec.UnsetType = msgspec.UNSET  # what others changed of what the session read
    method: Literal["event", "feed_ended"] | msgspec.UnsetType = msgspec.UNSET
    params: Any = msgspec.UNSET


class AnyReply(Reply, frozen=True, kw_only=True):
    """As a client decodes it: what the result or the parameters are is known by the call."""

    id: int | str | None = None
    result: msgspec.Raw = msgspec.Raw(b"")
    params: msgspec.Raw = msgspec.Raw(b"")
    notices: tuple[Notice, ...] = ()


class Subscribe(Params, frozen=True):
    after: Annotated[Version | None, Meta(description="Events after '@N'; without it, from now on.")] = None
    kinds: Annotated[
        tuple[Name, ...],
        Meta(description="Only events of these kinds, e.g. 'change_applied'.", max_length=MOST_ENTRIES),
    ] = ()
    globs: Globs = ()  # only events of files that match
    stale_for: Annotated[
        Name | None, Meta(description="Only others' changes that leave this session's view of a file stale.")
    ] = None


class Subscribed(Result, frozen=True, kw_only=True):
    after: str


class FeedEvent(StoredEvent, frozen=True, kw_only=True):
    path: str | None = None  # the first of `paths`
    paths: tuple[str, ...] = ()  # that the event is about


SUBSCRIBE = Operation("subscribe", Subscribe, Subscribed, "Be sent events as they happen, from a position on.")
"""Of our own socket; no tool."""


def refusal(error: OrchestratorError) -> Refusal:
    """The wire form of an error, without details that are null, false or empty; of long lists the first members."""
    details: dict[str, Any] = {}
    room = AnswerSpace(MOST_DETAIL_BYTES)
    for name, value in error.details.items():
        if isinstance(value, list | tuple):
            many = room.first(((len(msgspec.json.encode(item)) + 1, 0) for item in value), least=0)
            left_out, value = len(value) - many, value[:many]  # noqa: PLW2901  # the rest is counted
            details |= {f"{name}_left_out": left_out} if left_out else {}
            room = room.less(len(msgspec.json.encode(value)))
        if value or (value == 0 and value is not False):
            details[name] = value
    message = error.message
    if len(message) > MOST_MESSAGE:
        message = f"{message[:MOST_MESSAGE]} … [{len(message) - MOST_MESSAGE} characters left out]"
    return Refusal(code=error.code, message=message, hint=error.hint, details=details, shown=error.shown)


def rejection(error: OrchestratorError) -> dict[str, Any]:
    """The answer to a preamble that is refused, and to who started a daemon that can't serve."""
    return {"ok": False, **msgspec.to_builtins(refusal(error))}
