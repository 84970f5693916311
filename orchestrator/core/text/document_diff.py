"""The unified diff of two documents, as answers show it."""

from __future__ import annotations

import msgspec

from orchestrator.core.content import LineHunk, LineRange
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.diff import Hunk, counts, cut, diff, unified
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.room import Room
from orchestrator.core.text.shown_diff import ShownDiff, within


def diff_text(
    path: WorkspacePath, old: Document, new: Document, *, gone: bool = False, hunks: tuple[LineHunk, ...] = ()
) -> tuple[str, bool]:
    """A unified diff with three lines of context, at most 120 lines of it; `hunks` if they are known already."""
    known = [Hunk(h.old_start, h.old_len, h.new_start, h.new_len) for h in hunks]
    return cut(
        unified(
            old.lines,
            new.lines,
            path_before=path,
            path_after=None if gone else path,
            final_newline_before=old.final_newline or not old.lines,
            final_newline_after=new.final_newline or not new.lines,
            hunks=known or None,
        )
    )


def shown_diff(
    path_before: WorkspacePath | None,
    path_after: WorkspacePath | None,
    old: Document,
    new: Document,
    *,
    context: int,
    room: Room,
) -> tuple[ShownDiff, int, int]:
    """The part of a unified diff that there is room for, and how many lines the whole of it adds and removes.

    Of a diff that is shown whole, `shown` has the context also where the text ends before it.
    """
    text = unified(
        old.lines,
        new.lines,
        path_before=path_before,
        path_after=path_after,
        context=context,
        final_newline_before=old.final_newline or not old.lines,
        final_newline_after=new.final_newline or not new.lines,
    )
    hunks = diff(old.lines, new.lines)
    fitting = within(text, room)
    if fitting.goes_on is None:
        ranges = (
            LineRange(max(1, h.new_start + 1 - context), min(new.line_count, h.new_start + h.new_len + context))
            for h in hunks
        )
        fitting = msgspec.structs.replace(fitting, shown=tuple(ranges))
    return fitting, *counts(hunks)


def line_hunks(before: Document, after: Document) -> tuple[LineHunk, ...]:
    """The changed lines, as `PathChange` keeps them."""
    return tuple(LineHunk(h.old_start, h.old_len, h.new_start, h.new_len) for h in diff(before.lines, after.lines))
