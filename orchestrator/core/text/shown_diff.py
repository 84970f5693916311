"""The part of a unified diff that fits an answer, and the new lines that it shows."""

from __future__ import annotations

import re

import msgspec

from orchestrator.core.content import LineRange
from orchestrator.core.projections.seen import merged
from orchestrator.core.text.room import Room, size

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


class ShownDiff(msgspec.Struct, frozen=True):
    """`text` ends with a whole row. `goes_on`: the 1-based lines of the older and newer text where the rest begins."""

    text: str
    shown: tuple[LineRange, ...]
    goes_on: tuple[int, int] | None = None


def within(diff: str, room: Room) -> ShownDiff:
    """As many rows of a diff of one file as there is room for."""
    rows = [f"{row}\n" for row in diff.split("\n")[:-1]]
    old = new = 1
    shown: list[LineRange] = []
    for count, row in enumerate(rows):
        head = _HUNK.match(row)
        if head is not None:
            old, new = int(head[1]), int(head[2])
        room = room.less(size(row), 1)
        if not room.bytes or not room.lines:
            return ShownDiff("".join(rows[:count]), merged(tuple(shown)), (max(1, old), max(1, new)))
        if count > 1 and head is None:
            if row[0] in " +":
                shown.append(LineRange(new, new))
            old += row[0] in " -"
            new += row[0] in " +"
    return ShownDiff(diff, merged(tuple(shown)))
