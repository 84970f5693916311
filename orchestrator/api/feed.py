"""The live feed: methods of our own socket, never a tool. A subscription is resumed by the last position seen.

`subscribe` is answered with `Subscribed`; then come lines without an id, `event` with a
`FeedEvent` as params, in the journal's order, and, should the feed end, `feed_ended`.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from orchestrator.api.framing import Refusal
from orchestrator.api.journal_operations import StoredEvent
from orchestrator.api.operation import Operation
from orchestrator.api.parameters import MOST_ENTRIES, Globs, Name, Params, Version
from orchestrator.api.results import Result


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


class Unsubscribe(Params, frozen=True):
    subscription: Annotated[int, Meta(le=2**63 - 1)]


class Subscribed(Result, frozen=True, kw_only=True):
    subscription: int  # of this connection
    after: str


class Unsubscribed(Result, frozen=True, kw_only=True):
    subscription: int
    found: bool = False  # false: it had ended


class FeedEvent(StoredEvent, frozen=True, kw_only=True):
    subscription: int = 0
    path: str | None = None  # the first of `paths`
    paths: tuple[str, ...] = ()  # that the event is about


class FeedEnded(Result, frozen=True, kw_only=True):
    """No more will come, and why."""

    subscription: int
    error: Refusal


class FeedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line that answers no call."""

    method: Literal["event", "feed_ended"]
    params: FeedEvent | FeedEnded
    jsonrpc: Literal["2.0"] = "2.0"


SUBSCRIBE = Operation(
    "subscribe",
    Subscribe,
    Subscribed,
    "Be sent events as they happen, from a position on.",
)
UNSUBSCRIBE = Operation(
    "unsubscribe",
    Unsubscribe,
    Unsubscribed,
    "End a subscription; no event of it follows the answer.",
)
METHODS = {operation.name: operation for operation in (SUBSCRIBE, UNSUBSCRIBE)}
