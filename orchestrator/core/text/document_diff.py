"""The unified diff of two documents, as answers show it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from orchestrator.core.content import LineHunk, LineRange
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.answer_space import AnswerSpace, size
from orchestrator.core.text.diff import counts, cut, diff, unified
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.regions import merged


def diff_text(
    path: WorkspacePath,
    old: Document,
    new: Document,
    *,
    gone: bool = False,
    hunks: tuple[LineHunk, ...] = (),
    max_lines: int,
) -> tuple[str, bool]:
    """A unified diff with three lines of context, cut to `max_lines`; `hunks` if they are known already."""
    return cut(_unified(path, None if gone else path, old, new, hunks=hunks or None), max_lines)


def _unified(
    path_before: WorkspacePath | None,
    path_after: WorkspacePath | None,
    old: Document,
    new: Document,
    *,
    context: int = 3,
    hunks: Sequence[LineHunk] | None = None,
) -> str:
    return unified(
        old.lines,
        new.lines,
        path_before=path_before,
        path_after=path_after,
        context=context,
        final_newline_before=old.final_newline or not old.lines,
        final_newline_after=new.final_newline or not new.lines,
        hunks=hunks,
    )


def shown_diff(
    path_before: WorkspacePath | None,
    path_after: WorkspacePath | None,
    old: Document,
    new: Document,
    *,
    context: int,
    room: AnswerSpace,
) -> tuple[ShownDiff, int, int]:
    """The part of a unified diff that there is room for, and how many lines the whole of it adds and removes.

    Of a diff that is shown whole, `shown` has the context also where the text ends before it.
    """
    hunks = diff(old.lines, new.lines)
    fitting = within(_unified(path_before, path_after, old, new, context=context, hunks=hunks), room)
    if fitting.goes_on is None:
        ranges = (LineRange(max(1, h.new_start + 1 - context), min(new.line_count, h.new_end + context)) for h in hunks)
        fitting = msgspec.structs.replace(fitting, shown=tuple(ranges))
    return fitting, *counts(hunks)


def line_hunks(before: Document, after: Document) -> tuple[LineHunk, ...]:
    """The changed lines, as `PathChange` keeps them."""
    return tuple(diff(before.lines, after.lines))


_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


class ShownDiff(msgspec.Struct, frozen=True):
    """`text` ends with a whole row. `goes_on`: the 1-based lines of the older and newer text where the rest begins."""

    text: str
    shown: tuple[LineRange, ...]
    goes_on: tuple[int, int] | None = None


def within(diff: str, room: AnswerSpace) -> ShownDiff:
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
