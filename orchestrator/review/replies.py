"""A reviewer's answer, as JSON: read, and compared with the request that it answers."""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from orchestrator.core.errors import escaped
from orchestrator.core.events.conflicts import ReviewUsage, Verdict
from orchestrator.ports.reviewers import (
    FAILURES,
    ReviewFailure,
    ReviewReply,
    ReviewReplyInvalid,
    ReviewRequest,
)

MOST_ANSWER_BYTES = 4 * 1024 * 1024
MOST_LINES = 20_000
MOST_LINE_CHARS = 100_000

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "verdict": {
            "type": "string",
            "enum": list(get_args(Verdict)),
            "description": "current or proposed: take that side in every region. "
            "content: `regions` has the lines of each region. reject: none is right.",
        },
        "regions": {
            "type": "array",
            "description": "With content: every region once. Otherwise empty.",
            "items": {
                "type": "object",
                "properties": {
                    "region": {"type": "integer", "description": "The region's number."},
                    "lines": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "The lines to put there, without line ends.",
                    },
                },
                "required": ["region", "lines"],
                "additionalProperties": False,
            },
        },
        "reason": {"type": "string", "description": "One or two sentences."},
    },
    "required": ["verdict", "regions", "reason"],
    "additionalProperties": False,
}
"""The JSON schema of an answer."""


def reply_of(answer: dict[str, Any], request: ReviewRequest, usage: ReviewUsage) -> ReviewReply:
    """The reply that a decoded answer is.

    Raises ReviewReplyInvalid with a message that can be sent back, and the failure that the answer reports.
    """
    if answer.get("verdict") == "failed":
        said = {name: text for name, text in answer.items() if isinstance(text, str)}
        raise FAILURES.get(said.get("code", ""), ReviewFailure)(said.get("reason") or "it did not say why")
    try:
        reply = msgspec.convert(answer, ReviewReply)
    except msgspec.ValidationError as error:
        raise ReviewReplyInvalid(f"the answer is not of the form asked for: {error}") from error
    if reply.verdict == "content":
        _check_regions(reply, request)
    elif reply.regions:
        raise ReviewReplyInvalid(f"with {reply.verdict} `regions` is empty; it has {len(reply.regions)}")
    return msgspec.structs.replace(reply, reason=reply.reason.strip(), usage=usage)


def usage_of(reported: object) -> ReviewUsage:
    """What somebody else says that an answer took. Raises ReviewReplyInvalid."""
    try:
        usage = msgspec.convert(reported, ReviewUsage)
    except msgspec.ValidationError as error:
        raise ReviewReplyInvalid(f"its usage is not of the form asked for: {error}") from error
    return msgspec.structs.replace(
        usage, model=escaped(usage.model[:200])[:200], prompt_hash=escaped(usage.prompt_hash[:64])[:64]
    )


def json_object(data: bytes) -> dict[str, Any]:
    """The JSON object in an answer: the whole of it, or what is from its first `{` to its last `}`.

    Raises ReviewReplyInvalid.
    """
    first, last = data.find(b"{"), data.rfind(b"}")
    if first < 0 or last < first:
        raise ReviewReplyInvalid("the answer holds no JSON object" if data.strip() else "the answer is empty")
    try:
        data.decode("utf-8")
        return msgspec.json.decode(data[first : last + 1], type=dict[str, Any])
    except UnicodeDecodeError as error:
        raise ReviewReplyInvalid("the answer is not UTF-8") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise ReviewReplyInvalid(f"the answer is not JSON: {error}") from error


def _check_regions(reply: ReviewReply, request: ReviewRequest) -> None:
    known = [region.number for region in request.regions]
    given = [region.region for region in reply.regions]
    if sorted(given) != sorted(known):
        raise ReviewReplyInvalid(f"`content` needs each region once: {known}; the answer has {given[:100]}")
    for region in reply.regions:
        if len(region.lines) > MOST_LINES or any(len(line) > MOST_LINE_CHARS for line in region.lines):
            raise ReviewReplyInvalid(f"region {region.region} is longer than any that is taken")
        for at, line in enumerate(region.lines, 1):
            if set(line) & {"\n", "\r", "\0"}:
                raise ReviewReplyInvalid(
                    f"line {at} of region {region.region} holds a line end or a NUL; each line is one string"
                )
