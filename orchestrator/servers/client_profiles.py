"""What is known of each client, by the name that it gives itself: display only, so it decides nothing about access."""

from __future__ import annotations

from typing import Any

import msgspec
from mcp.server.context import ServerRequestContext

from orchestrator.core.text.answer_space import AnswerSpace

LEAST_BYTES = 4_000
"""The least that `--max-answer-bytes` may be: the frame of an answer takes some of it."""

DROP_IN = AnswerSpace(bytes=400_000)
"""Of a toolset that stands in for another server, from which clients took whole files."""

TOOL_META = {"anthropic/maxResultSizeChars": 500_000}
"""On the reading tools of such a toolset: Claude Code hands on so much of an answer, in place of 50,000 characters."""


class ClientProfile(msgspec.Struct, frozen=True, kw_only=True):
    """How a client treats answers and arguments. The defaults are for one that nobody has measured."""

    room: AnswerSpace = AnswerSpace(bytes=12_000)  # Codex gives a model that it does not know 12,018 bytes
    drop_in: AnswerSpace | None = None  # of a toolset that stands in for another server, where it is not the same
    text_only: bool = False  # of an answer with structured content its model gets nothing else
    unescapes: bool = False  # it decodes \uXXXX in what its model sends, once more than JSON does

    def room_for(self, asked: int | None, *, typed: bool, drop_in: bool) -> AnswerSpace:
        """The room of an answer; `asked` is what the transport was started with."""
        room = self.drop_in if drop_in and self.drop_in is not None else self.room
        if asked is not None:
            room = AnswerSpace(bytes=max(asked, LEAST_BYTES))
        return AnswerSpace(room.bytes, room.lines, typed)


UNKNOWN = ClientProfile(drop_in=DROP_IN)

PROFILES: dict[str, ClientProfile] = {
    "claude-code": ClientProfile(room=AnswerSpace(bytes=48_000), drop_in=DROP_IN, text_only=True, unescapes=True),
    "codex-mcp-client": ClientProfile(room=AnswerSpace(bytes=11_500), text_only=True),
    "gemini-cli-mcp-client": ClientProfile(room=AnswerSpace(bytes=38_000)),
    "opencode": ClientProfile(room=AnswerSpace(bytes=48_000, lines=1_900)),
}
"""Measured: Claude Code 2.1.316 and 2.1.330 (50,000 characters), Codex CLI 0.169.0, Gemini CLI 0.61.0 (40,000
characters), opencode 1.18.33 (51,200 bytes or 2,000 lines)."""


def profile_of(context: ServerRequestContext[Any]) -> ClientProfile:
    """Of the client that sent a request."""
    client = context.session.client_params
    name = client.client_info.name if client is not None and client.client_info is not None else ""
    return PROFILES.get(name, UNKNOWN)
