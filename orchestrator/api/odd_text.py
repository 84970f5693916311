"""Texts that no UTF-8 line can carry: a byte that is no text on a command line, half a surrogate pair in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.core.errors import CallerError, ParameterInvalid, PathInvalid, escaped

PATHS = frozenset({"path", "source", "destination"})


def refused_text(values: Mapping[str, Any]) -> CallerError | None:
    """The refusal of the first parameter that holds such a text; None if none does."""
    for name, value in values.items():
        odd = _odd(value)
        if odd is None:
            continue
        why = f"it holds {escaped(odd)}, which is in no UTF-8 text"
        if name in PATHS and isinstance(value, str):
            return PathInvalid(value, why)
        return ParameterInvalid(escaped(name), why, hint="Send text that is valid UTF-8.")
    return None


def _odd(value: object) -> str | None:
    """The first lone surrogate in a value, however deep."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                odd = next((c for c in text if "\ud800" <= c <= "\udfff"), None) if not text.isascii() else None
                if odd is not None:
                    return odd
            case dict() as inner:
                waiting += [*inner, *inner.values()]
            case list() | tuple() as inner:
                waiting += inner
            case _:
                continue
    return None
