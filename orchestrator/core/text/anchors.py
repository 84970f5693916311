"""Finds a passage that was moved or indented, by the lines around it."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.core.content import LineHunk
from orchestrator.core.text.diff import diff
from orchestrator.core.text.encoding import Edit
from orchestrator.core.text.indent import NEIGHBOURS, Rebasing, Uncertain, indent_of
from orchestrator.core.text.matching import Passage
from orchestrator.core.text.merging.ambiguous_hunks import ambiguous_hunks
from orchestrator.core.text.symbols import Outline, Symbol


def carried(old: Sequence[str], current: Sequence[str], passage: Passage) -> list[Edit] | None:
    """The edits of a passage of `old` where it is in `current`: whole, unchanged but for its indentation there.

    A diff without indentation pairs the lines. None where the place or the indentation is not sure,
    where others changed a line that touches an edit, or where what an edit brings is there already.
    """
    was, now = [line.strip() for line in old], [line.strip() for line in current]
    moved = diff(was, now)
    if any(_touches(hunk, passage) for hunk in moved):
        return None
    at = passage.start + sum(hunk.new_len - hunk.old_len for hunk in moved if hunk.old_end <= passage.start)
    length = passage.stop - passage.start
    pairs = list(zip(old[passage.start : passage.stop], current[at : at + length], strict=True))
    quoted = old[max(0, passage.start - NEIGHBOURS) : passage.stop + NEIGHBOURS]
    rebasing = Rebasing(pairs, quoted, current[max(0, at - NEIGHBOURS) : at + length + NEIGHBOURS])
    if not rebasing.consistent or _reindents(old, passage):
        return None
    if any(_holds(now, edit, at - passage.start) for edit in passage.edits):
        return None
    new = list(was)
    for edit in reversed(passage.edits):
        new[edit.start : edit.start + edit.length] = [line.strip() for line in edit.lines]
    if ambiguous_hunks(was, now, new):
        return None
    shift = at - passage.start
    try:
        return [Edit(edit.start + shift, edit.length, tuple(rebasing.lines(edit.lines))) for edit in passage.edits]
    except Uncertain:
        return None


def may_contain(current: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether all lines of a passage are somewhere in a text, but for their indentation."""
    return {line.strip() for line in wanted} <= {line.strip() for line in current}


def symbol_around(passage: Passage, outlines: tuple[Outline, Outline]) -> tuple[Symbol, Symbol] | None:
    """The innermost symbol that holds all of a passage, before and now, if each text has one alone of that name."""
    named: list[tuple[str, str]] = [
        (name, symbol.kind)
        for name, symbol in outlines[0].walk()
        if symbol.line <= passage.start + 1 and passage.stop <= symbol.end_line
    ]
    if not named:
        return None
    both = [[symbol for name, symbol in one.walk() if (name, symbol.kind) == named[-1]] for one in outlines]
    return (both[0][0], both[1][0]) if len(both[0]) == len(both[1]) == 1 else None


def _touches(hunk: LineHunk, passage: Passage) -> bool:
    """Whether others changed a passage, or what touches an edit."""
    if hunk.old_start < passage.stop and passage.start < hunk.old_end:
        return True
    if not hunk.old_len and passage.start < hunk.old_start < passage.stop:
        return True
    return any(hunk.old_start <= edit.start + edit.length and edit.start <= hunk.old_end for edit in passage.edits)


def _reindents(old: Sequence[str], passage: Passage) -> bool:
    """Whether an edit keeps a line that it replaces but for its indentation."""
    for edit in passage.edits:
        depths = {line.strip(): indent_of(line) for line in old[edit.start : edit.start + edit.length] if line.strip()}
        if any(depths.get(line.strip(), indent_of(line)) != indent_of(line) for line in edit.lines):
            return True
    return False


def _holds(now: Sequence[str], edit: Edit, shift: int) -> bool:
    """Whether the new lines of an edit are around its place already."""
    new = [line.strip() for line in edit.lines]
    while new and not new[0]:
        del new[0]
    size = len(new)
    start, stop = max(0, edit.start + shift - size), edit.start + shift + edit.length + size
    return size > 0 and any(list(now[at : at + size]) == new for at in range(start, stop - size + 1))
