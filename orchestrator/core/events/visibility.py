"""What of an event a caller may see, by the paths that it may read or list; and what a redaction leaves of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from orchestrator.core.annotations import Mark, fields_with, found, paths_of, shape
from orchestrator.core.errors import NotRedactable
from orchestrator.core.events.base import Event
from orchestrator.core.events.codec import tag_of
from orchestrator.core.ids import Seq, WorkspacePath, show

S = TypeVar("S", bound=msgspec.Struct)
Allowed = Callable[[WorkspacePath], bool]

_OF_FILE = ("file:", "conflict:", "approval:")
"""Streams that are about one path."""


def visible(
    event: Event, stream: str, readable: Allowed, *, of: Event | None = None, texts: bool = True
) -> dict[str, Any]:
    """An event as plain data, without what only the daemon may know, what reveals contents that can't be read, and
    members that are null, false or empty.

    A hash lets a content be guessed at leisure, and places and counts say if a guess fits. A struct within the
    event is judged by its own paths; one without a path of its own, with what it is in. `of`: the whole event,
    where `event` is what is left of it. `texts`: with what may be redacted, as people and agents wrote it.
    """
    plain: dict[str, Any] = msgspec.to_builtins(event)
    plain.pop("event", None)
    about = {WorkspacePath(stream.partition(":")[2])} if stream.startswith(_OF_FILE) else set[WorkspacePath]()
    contents = all(map(readable, about.union(paths_of(of or event))))
    return _visible(event, plain, readable, contents=contents, texts=texts)


def _visible(
    part: msgspec.Struct, plain: dict[str, Any], readable: Allowed, *, contents: bool, texts: bool
) -> dict[str, Any]:
    known = shape(type(part))
    left_out = set(known.marked[Mark.SECRET])
    if not texts:
        left_out.update(known.marked[Mark.REDACTABLE])
    if not contents:
        left_out.update(known.marked[Mark.CONTENT], known.marked[Mark.REVEALING])
    shown = {name: value for name, value in plain.items() if name not in left_out}
    for name in known.nested:
        if name in shown:
            shown[name] = _within(getattr(part, name), shown[name], readable, contents=contents, texts=texts)
    return {name: value for name, value in shown.items() if value not in (None, "", (), [], {}) and value is not False}


def _within(value: Any, plain: Any, readable: Allowed, *, contents: bool, texts: bool) -> Any:
    if isinstance(value, tuple):
        pairs = zip(value, plain, strict=True)
        return [_within(item, found, readable, contents=contents, texts=texts) for item, found in pairs]
    if not isinstance(value, msgspec.Struct):
        return plain
    judged = shape(type(value)).marked[Mark.PATH]
    contents = all(map(readable, paths_of(value))) if judged else contents
    return _visible(value, plain, readable, contents=contents, texts=texts)


def without_paths(value: S, listable: Allowed) -> S | None:
    """The struct without the paths that may not be listed; None where one is what it is about, a required field."""
    known = shape(type(value))
    changed: dict[str, Any] = {}
    for name in known.leading[Mark.PATH]:
        before = getattr(value, name)
        after = _without(before, listable)
        if after == before:
            continue
        if name in known.required and not after:
            return None
        changed[name] = after
    return msgspec.structs.replace(value, **changed) if changed else value


def _without(value: Any, listable: Allowed) -> Any:
    if isinstance(value, str):
        return value if listable(WorkspacePath(value)) else None
    if isinstance(value, msgspec.Struct):
        return without_paths(value, listable)
    if isinstance(value, tuple):
        return tuple(after for after in (_without(item, listable) for item in value) if after is not None)
    return value


# --- redaction ----------------------------------------------------------------------------

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
    return {name: _blank(item) if name in fields else _blanked(item, fields) for name, item in value.items()}


def _blank(value: Any) -> Any:
    """A text, or each of several."""
    if isinstance(value, list):
        return [_blank(item) for item in value]
    return REDACTED if isinstance(value, str) and value else value


def texts_of(event: Event) -> Iterator[tuple[str, str]]:
    """The fields that may be blanked and say something, with their texts."""
    for _, name, text in found(event, Mark.REDACTABLE):
        if text not in ("", REDACTED):
            yield name, text


def fields_to_blank(seq: Seq, event: Event, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """The fields of an event that hold a text to take out: those wanted, or every redactable one.

    Raises NotRedactable: one that is wanted may not be blanked, or nothing is left in it.
    """
    allowed = fields_with(type(event), Mark.REDACTABLE)
    filled = {name for name, _ in texts_of(event)}
    blank = tuple(name for name in wanted or allowed if name in filled)
    if not blank or not set(wanted) <= set(allowed):
        raise NotRedactable(
            f"event {show(seq)} ({tag_of(event)}) can be redacted in {', '.join(allowed) or 'no field'}; "
            f"a text is left in {', '.join(sorted(filled)) or 'none'}",
            hint=f"{_texts(event)}Contents are redacted by `orchestrator journal redact --blob sha256:…`.",
        )
    return blank


def _texts(event: Event) -> str:
    """Where the texts are that a log shows beside this event: a change's are in what opened it."""
    opened = getattr(event, "change", None)
    return f"The change's texts: `orchestrator journal redact {show(opened)}`. " if isinstance(opened, int) else ""
