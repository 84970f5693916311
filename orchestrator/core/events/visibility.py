"""What of an event a caller may see, by the paths that it may read or list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from orchestrator.core.annotations import Mark, paths_of, shape
from orchestrator.core.events.base import Event
from orchestrator.core.ids import WorkspacePath

S = TypeVar("S", bound=msgspec.Struct)
Allowed = Callable[[WorkspacePath], bool]

_OF_FILE = ("file:", "conflict:", "approval:")
"""Streams that are about one path."""


def visible(event: Event, stream: str, readable: Allowed, *, of: Event | None = None) -> dict[str, Any]:
    """An event as plain data, without what only the daemon may know, nor what reveals contents that can't be read.

    A hash lets a content be guessed at leisure, and places and counts say if a guess fits. A struct within the
    event is judged by its own paths; one without a path of its own, with what it is in. `of`: the whole event,
    where `event` is what is left of it.
    """
    plain: dict[str, Any] = msgspec.to_builtins(event)
    plain.pop("event", None)
    about = {WorkspacePath(stream.partition(":")[2])} if stream.startswith(_OF_FILE) else set[WorkspacePath]()
    return _visible(event, plain, readable, all(map(readable, about.union(paths_of(of or event)))))


def _visible(part: msgspec.Struct, plain: dict[str, Any], readable: Allowed, contents: bool) -> dict[str, Any]:
    known = shape(type(part))
    left_out = set(known.marked[Mark.SECRET])
    if not contents:
        left_out.update(known.marked[Mark.CONTENT], known.marked[Mark.REVEALING])
    shown = {name: value for name, value in plain.items() if name not in left_out}
    for name in known.nested:
        if name in shown:
            shown[name] = _within(getattr(part, name), shown[name], readable, contents)
    return shown


def _within(value: Any, plain: Any, readable: Allowed, contents: bool) -> Any:
    if isinstance(value, tuple):
        return [_within(item, found, readable, contents) for item, found in zip(value, plain, strict=True)]
    if not isinstance(value, msgspec.Struct):
        return plain
    judged = shape(type(value)).marked[Mark.PATH]
    return _visible(value, plain, readable, all(map(readable, paths_of(value))) if judged else contents)


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
