"""The unified diff of two documents, as answers show it."""

from __future__ import annotations

from orchestrator.core.content import LineHunk
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.diff import Hunk, cut, unified
from orchestrator.core.text.encoding import Document


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
