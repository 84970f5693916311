"""A refusal that is asked for again: what of it the journal keeps, and how it is answered then."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from orchestrator.core.errors import CallerError
from orchestrator.core.events.files import ChangeRefused

LINES_NOT_KEPT = (
    "The lines themselves are not kept for a repeated call: sent again under a new request_id it shows them "
    "as they are now."
)

_NAMED = ("path", "rule", "action", "state", "code", "parameter")
"""Details whose text is the caller's own, or policy's."""

_VERSION = re.compile(r"@\d+")


class RefusalReplayed(CallerError):
    """The refusal that the same request got before, once more."""

    def __init__(self, refused: ChangeRefused) -> None:
        hint = refused.hint
        if refused.quoted:
            hint += f" {LINES_NOT_KEPT}"
        super().__init__(refused.message, hint=hint.strip(), details=refused.details)
        self.code = refused.code  # type: ignore[misc]  # the first refusal's code stands for this one


def kept_details(details: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers, versions and names out of a refusal's details; any other text may quote the file, and is left out."""
    kept: dict[str, Any] = {}
    for name, value in details.items():
        if name in _NAMED and isinstance(value, str):
            kept[name] = value[:1000]
        elif (plain := _plain(value)) is not None:
            kept[name] = plain
    return kept


def _plain(value: Any) -> Any:
    """The value without what is text; None where nothing is left."""
    match value:
        case bool() | int() | float():
            return value
        case str() if _VERSION.fullmatch(value):
            return value
        case Mapping():
            return kept_details(value) or None
        case list() | tuple():
            found = [_plain(item) for item in value]
            return None if any(item is None for item in found) else found
        case _:
            return None
