"""What a redacted event says instead, and how its stored payload comes to say so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from orchestrator.core.errors import NotRedactable
from orchestrator.core.events.base import Event
from orchestrator.core.events.catalog import tag_of
from orchestrator.core.ids import Seq, show

REDACTED = "(redacted)"
"""Stands in each field that was blanked."""


def blanked(payload: bytes, fields: Iterable[str]) -> bytes:
    """The stored payload without the text of these fields; all else of it as it was, old forms too.

    A field that is absent had its default and said nothing: it stays absent.
    """
    data: dict[str, Any] = msgspec.json.decode(payload)
    for name in fields:
        if data.get(name):
            data[name] = REDACTED
    return msgspec.json.encode(data)


def fields_to_blank(seq: Seq, event: Event, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """The fields of an event that hold a text to take out: those wanted, or every redactable one.

    Raises NotRedactable: no field of it may be blanked, this one may not, or nothing is left in it.
    """
    allowed = event.redactable
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
    found = tuple(name for name in wanted or allowed if getattr(event, name) not in ("", None, REDACTED))
    if not found:
        raise NotRedactable(
            f"event {show(seq)} ({tag_of(event)}) says nothing in {', '.join(wanted or allowed)}",
            hint="It was empty, or is redacted already.",
        )
    return found


def _texts(event: Event) -> str:
    """Where the texts stand that a reader of the log saw beside this event: a change's are in what opened it."""
    opened = getattr(event, "change", None)
    return f"The change's texts: `orchestrator journal redact {show(opened)}`. " if isinstance(opened, int) else ""
