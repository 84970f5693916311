"""What a reviewer said, as JSON: read, and held against the conflict it was asked about."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from orchestrator.core.errors import escaped
from orchestrator.ports.reviewers import RegionText, ReviewReply, ReviewReplyInvalid, ReviewRequest, ReviewUsage

MOST_LINES = 20_000
MOST_LINE_CHARS = 100_000
MOST_REASON_CHARS = 20_000
"""That are looked at; fewer are kept."""

Count = Annotated[int, msgspec.Meta(ge=0, le=10**12)]
"""Of tokens, millionths or milliseconds, as somebody else says it: so small that nothing made of it overflows."""

Number = Annotated[int, msgspec.Meta(ge=0, le=10**6)]
"""A region's."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "verdict": {
            "type": "string",
            "enum": ["current", "proposed", "edited", "reject"],
            "description": "current or proposed: that side stands in every region. "
            "edited: `regions` has the lines of each region. reject: none can be vouched for.",
        },
        "regions": {
            "type": "array",
            "description": "With edited: every region once. Otherwise empty.",
            "items": {
                "type": "object",
                "properties": {
                    "region": {"type": "integer", "description": "The region's number."},
                    "lines": {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "The lines that shall stand there, without line ends.",
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
"""The JSON schema of an answer, for models and programs alike."""


class _Region(msgspec.Struct, forbid_unknown_fields=True):
    region: Number
    lines: list[str]


class _Answer(msgspec.Struct, forbid_unknown_fields=True):
    verdict: Literal["current", "proposed", "edited", "reject"]
    regions: list[_Region] = []
    reason: str = ""
    path: str | None = None  # may be said again; then it is the conflict's own


def reply_of(answer: object, request: ReviewRequest, usage: ReviewUsage | None = None) -> ReviewReply:
    """The reply that a decoded JSON answer is. Raises ReviewReplyInvalid with a message that can be sent back."""
    try:
        said = msgspec.convert(answer, _Answer)
    except msgspec.ValidationError as error:
        raise ReviewReplyInvalid(f"the answer is not of the form asked for: {escaped(str(error))}") from error
    if said.path is not None and said.path != request.path:
        raise ReviewReplyInvalid(
            f"the answer is about {escaped(said.path)}, the conflict about {escaped(request.path)}"
        )
    if said.verdict == "edited":
        _check_regions(said, request)
    elif said.regions:
        raise ReviewReplyInvalid(f"with {said.verdict} `regions` is empty; it has {len(said.regions)}")
    return ReviewReply(
        verdict="content" if said.verdict == "edited" else said.verdict,
        regions=tuple(RegionText(region.region, tuple(region.lines)) for region in said.regions),
        reason=said.reason.strip(),
        usage=usage or ReviewUsage(),
    )


class _Usage(msgspec.Struct):
    model: str = ""
    prompt_hash: str = ""
    input_tokens: Count = 0
    output_tokens: Count = 0
    cost_microusd: Count = 0
    took_ms: Count = 0


def usage_of(told: object) -> ReviewUsage:
    """What somebody else says that an answer took. Raises ReviewReplyInvalid."""
    try:
        usage = msgspec.convert(told, _Usage)
    except msgspec.ValidationError as error:
        raise ReviewReplyInvalid(f"its usage is not of the form asked for: {escaped(str(error))}") from error
    return ReviewUsage(
        model=model_name(usage.model),
        prompt_hash=escaped(usage.prompt_hash[:64])[:64],
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_microusd=usage.cost_microusd,
        took_ms=usage.took_ms,
    )


def model_name(said: str) -> str:
    """On one line, and short."""
    return escaped(said[:200])[:200]


def json_in(text: str) -> object:
    """The JSON object of a text: the whole of it, or what stands from its first `{` to its last `}`.

    Models put it into fences and sentences. Raises ReviewReplyInvalid.
    """
    first, last = text.find("{"), text.rfind("}")
    if first < 0 or last < first:
        raise ReviewReplyInvalid("the answer holds no JSON object" if text.strip() else "the answer is empty")
    try:
        return msgspec.json.decode(text[first : last + 1].encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, RecursionError) as error:
        raise ReviewReplyInvalid(f"the answer is not JSON: {escaped(str(error))}") from error


def _check_regions(said: _Answer, request: ReviewRequest) -> None:
    known = {region.number for region in request.regions}
    given = [region.region for region in said.regions]
    strange = sorted(set(given) - known)
    if strange:
        raise ReviewReplyInvalid(f"the conflict has no region {strange[0]}; it has {_numbers(known)}")
    if len(set(given)) < len(given):
        raise ReviewReplyInvalid("the answer has a region twice")
    if missing := known - set(given):
        raise ReviewReplyInvalid(f"the answer lacks region {_numbers(missing)}; edited gives the lines of each")
    for region in said.regions:
        if len(region.lines) > MOST_LINES or any(len(line) > MOST_LINE_CHARS for line in region.lines):
            raise ReviewReplyInvalid(f"region {region.region} is longer than any that is taken")
        for at, line in enumerate(region.lines, 1):
            if "\n" in line or "\r" in line:
                raise ReviewReplyInvalid(
                    f"line {at} of region {region.region} holds a line end; each line is one string"
                )
            if "\0" in line:
                raise ReviewReplyInvalid(f"line {at} of region {region.region} holds a NUL")


def _numbers(numbers: set[int]) -> str:
    return ", ".join(str(number) for number in sorted(numbers))
