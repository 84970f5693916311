"""The text that replaces a redacted value, and the redaction of a stored payload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from orchestrator.core.annotations import Mark, fields_with, found
from orchestrator.core.errors import NotRedactable
from orchestrator.core.events.base import Event
from orchestrator.core.events.catalog import tag_of
from orchestrator.core.ids import Seq, show

REDACTED = "(redacted)"
"""Replaces each field that was blanked."""


def blanked(payload: bytes, fields: Iterable[str]) -> bytes:
    """The stored payload without the text of these fields, at any depth; all else of it as it was, old forms too.

    A field that is absent had its default: it stays absent.
    """
    return msgspec.json.encode(_blanked(msgspec.json.decode(payload), frozenset(fields)))


def _blanked(value: Any, fields: frozenset[str]) -> Any:
    if isinstance(value, list):
        return [_blanked(item, fields) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: REDACTED if name in fields and isinstance(item, str) and item else _blanked(item, fields)
        for name, item in value.items()
    }


def texts_of(event: Event) -> Iterator[tuple[str, str]]:
    """The fields that may be blanked and say something, with their texts."""
    for _, name, text in found(event, Mark.REDACTABLE):
        if text not in ("", REDACTED):
            yield name, text


def fields_to_blank(seq: Seq, event: Event, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """The fields of an event that hold a text to take out: those wanted, or every redactable one.

    Raises NotRedactable: no field of it may be blanked, this one may not, or nothing is left in it.
    """
    allowed = fields_with(type(event), Mark.REDACTABLE)
    if not allowed:
        raise NotRedactable(
            f"event {show(seq)} ({tag_of(event)}) has no field that can be redacted",
            hint=f"{_texts(event)}Contents are redacted by `orchestrator journal redact --blob sha256:…`.",
        )
    strange = [name for name in wanted if name not in allowed]
    if strange:
        raise NotRedactable(
            f"{', '.join(strange)} of event {show(seq)} ({tag_of(event)}) can't be redacted",
            hint=f"These can: {', '.join(allowed)}.",
        )
    filled = {name for name, _ in texts_of(event)}
    blank = tuple(name for name in wanted or allowed if name in filled)
    if not blank:
        raise NotRedactable(
            f"event {show(seq)} ({tag_of(event)}) says nothing in {', '.join(wanted or allowed)}",
            hint=f"{_texts(event)}It was empty, or is redacted already.",
        )
    return blank


def _texts(event: Event) -> str:
    """Where the texts are that a log shows beside this event: a change's are in what opened it."""
    opened = getattr(event, "change", None)
    return f"The change's texts: `orchestrator journal redact {show(opened)}`. " if isinstance(opened, int) else ""
