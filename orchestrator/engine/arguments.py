"""What the journal keeps of a call's parameters: where and how, never what."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Literal, get_args, get_origin

import msgspec

from orchestrator.api.parameters import JOURNALLED, Params
from orchestrator.core.errors import escaped

_POSITION = re.compile(r"@?[0-9]{1,18}|@previous|current|working|[0-9]{4}-[0-9]{2}-[0-9]{2}[0-9TZ:.,+ -]{0,30}")
"""A version or a time. A hash is none: it lets a content be guessed."""

_ELSEWHERE = ("request_id",)  # in the envelope

LONGEST = 2000
"""Characters of one text; more is no path."""

MOST = 50
"""Entries of a list."""


def arguments_of(params: Params) -> dict[str, Any]:
    """The parameters that are not at their defaults, as small plain values.

    A text that is not kept is `{"bytes": N}`.
    """
    told: dict[str, Any] = {}
    for attribute, name, default, kept in _fields(type(params)):
        value = getattr(params, attribute)
        if value != default and value is not None:
            told[name] = _told(value, kept)
    return told


def _told(value: Any, kept: str | None) -> Any:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        if (kept == "given" and len(value) <= LONGEST) or (kept == "position" and _POSITION.fullmatch(value)):
            return escaped(value)
        return {"bytes": len(value.encode("utf-8", "surrogatepass"))}
    if isinstance(value, Params):
        return arguments_of(value)
    if isinstance(value, list | tuple):
        few = [_told(item, kept) for item in value[:MOST]]
        return [*few, {"more": len(value) - MOST}] if len(value) > MOST else few
    return {"kind": type(value).__name__}


@cache
def _fields(params: type[Params]) -> tuple[tuple[str, str, Any, str | None], ...]:
    """(attribute, name on the wire, default, how its text is kept) of each."""
    fields = msgspec.structs.fields(params)
    return tuple((f.name, f.encode_name, f.default, _kept(f.type)) for f in fields if f.name not in _ELSEWHERE)


def _kept(annotation: Any) -> str | None:
    """How the text of a parameter is kept; one of a few words is as good as a number."""
    if get_origin(annotation) is Literal:
        return "given"
    for part in get_args(annotation):
        kept = (part.extra or {}).get(JOURNALLED) if isinstance(part, msgspec.Meta) else _kept(part)
        if isinstance(kept, str):
            return kept
    return None
