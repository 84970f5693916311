"""The part of a session's status that an answer has room for, and the call that shows the rest."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.text.room import Room, size

LISTS = ("recent_reads", "pending", "uncommitted_changes", "tasks", "leases", "stale", "start_here")
"""In the order in which they are shown."""

PARTS = {"uncommitted_changes": "paths", "leases": "globs"}
"""The member of an item by which one that fits no answer is divided."""

LEASES = "leases:0:0"
"""The cursor at which the leases begin."""

NEXT_BYTES = 150
_CURSOR = re.compile(rf"({'|'.join(LISTS)}):([0-9]{{1,9}}):([0-9]{{1,9}})")
_ENCODER = msgspec.json.Encoder()


def session_page(info: r.SessionInfo, params: p.SessionStatus, room: Room) -> r.SessionInfo:
    """What fits of the lists, from the cursor on: list, item, and first part of that item. Raises ParameterInvalid."""
    first, index, part = _start(params.cursor)
    fields: dict[str, Any] = dict.fromkeys(LISTS, ())
    empty = msgspec.structs.replace(info, **fields)
    room = room.less(_bytes(empty) + NEXT_BYTES)
    for name in LISTS[LISTS.index(first) :]:
        for at in range(index, len(items := getattr(info, name))):
            item, member = items[at], PARTS.get(name)
            if part and member:
                item = msgspec.structs.replace(item, **{member: getattr(item, member)[part:]})
            goes_on = None
            if _bytes(item) > room.bytes:
                if any(fields.values()):
                    goes_on = f"{name}:{at}:{part}"
                elif member:
                    item, kept = _first_of(item, member, room)
                    goes_on = f"{name}:{at}:{part + kept}" if kept else f"{name}:{at + 1}:0"
            if goes_on is None or not any(fields.values()):
                fields[name] = (*fields[name], item)
            if goes_on is not None:
                asked = "all_leases=true, " if params.all_leases else ""
                return msgspec.structs.replace(empty, **fields, next=f'session_status({asked}cursor="{goes_on}")')
            room, part = room.less(_bytes(item)), 0
        index = part = 0
    return msgspec.structs.replace(empty, **fields)


def _start(cursor: str | None) -> tuple[str, int, int]:
    if cursor is None:
        return LISTS[0], 0, 0
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise ParameterInvalid("cursor", "is not one of ours; send the call that `next` of the last answer names")
    return match[1], int(match[2]), int(match[3])


def _first_of(item: Any, member: str, room: Room) -> tuple[Any, int]:
    """An item with as many of its parts as fit, and their number; 0 for all of them."""
    parts = getattr(item, member)
    room = room.less(_bytes(msgspec.structs.replace(item, **{member: ()})))
    kept = room.first((_bytes(part), 0) for part in parts)
    return msgspec.structs.replace(item, **{member: parts[:kept]}), kept if kept < len(parts) else 0


def _bytes(value: Any) -> int:
    """Of a value and its comma, as JSON within JSON."""
    return size(_ENCODER.encode(value).decode()) + 1
