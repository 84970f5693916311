"""What the journal keeps of a call's parameters: where and how, never what."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import msgspec

from orchestrator.api.parameters import Params
from orchestrator.core.errors import escaped

GIVEN = frozenset(
    (
        *("path", "paths", "source", "destination", "glob", "globs"),
        *("name", "agent", "session", "kind", "since", "until"),
        *("mode", "choice", "class", "format"),
    )
)
"""Parameters whose text is kept as it was given: where, which and how. Of any other text only the
length is: a content, a pattern, a code, a reason (which stands in the event, where it can be redacted),
and what a later operation takes that nobody has thought of here."""

VERSIONS = frozenset(
    ("at", "from", "to", "change", "conflict", "approval", "id", "task", "supersedes", "base", "after", "lease")
)
"""Parameters whose text is kept where it names a position. A hash is not kept: it lets a content be guessed."""

_POSITION = re.compile(r"@?[0-9]{1,18}|@previous|current|working")

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
    for attribute, name, default in _fields(type(params)):
        value = getattr(params, attribute)
        if value != default and value is not None:
            told[name] = _told(name, value)
    return told


def _told(name: str, value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        if (name in GIVEN and len(value) <= LONGEST) or (name in VERSIONS and _POSITION.fullmatch(value)):
            return escaped(value)
        return {"bytes": len(value.encode("utf-8", "surrogatepass"))}
    if isinstance(value, Params):
        return arguments_of(value)
    if isinstance(value, list | tuple):
        few = [_told(name, item) for item in value[:MOST]]
        return [*few, {"more": len(value) - MOST}] if len(value) > MOST else few
    return {"kind": type(value).__name__}


@cache
def _fields(params: type[Params]) -> tuple[tuple[str, str, Any], ...]:
    """(attribute, name on the wire, default) of each."""
    fields = msgspec.structs.fields(params)
    return tuple((f.name, f.encode_name, f.default) for f in fields if f.name not in _ELSEWHERE)
