"""Passages of the base that others have moved or indented since: found again in what the file holds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from orchestrator.core.content import LineHunk
from orchestrator.core.decisions.decision import Facts, Need
from orchestrator.core.text.diff import diff
from orchestrator.core.text.edits import Edit
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.indent import NEIGHBOURS, Rebasing, Uncertain, indent_of
from orchestrator.core.text.locate import Found
from orchestrator.core.text.matching import Passage
from orchestrator.core.text.merge import LineMerge
from orchestrator.core.text.merging.ambiguous_hunks import ambiguous_hunks
from orchestrator.core.text.merging.doubts import Surroundings
from orchestrator.core.text.symbols import Outline, Symbol


def found_again(old: Document, current: Document, found: Found, facts: Facts) -> list[Edit] | Need | None:
    """The edits of passages that are in the file now, every one of them whole and unchanged but for its indentation.

    In the file as a whole, else in the symbol that they were in. None where nobody moved or indented what the change
    replaces, and where one of the passages is not to be found, or is not sure.
    """
    held, base = facts.held, facts.base
    if held is None or base is None or any(passage.stop == passage.start for passage in found.passages):
        return None
    if untouched(old, current, [(edit.start, edit.length) for edit in found.edits]):
        return None
    edits: list[Edit] = []
    for passage in found.passages:
        here = _carried(old.lines, current.lines, passage)
        if here is None and _may_contain(current.lines, old.lines[passage.start : passage.stop]):
            texts = {base.digest: facts.contents[base.digest], held.digest: held.data}
            if (needed := facts.need_outlines(texts)) is not None:
                return needed
            here = _in_symbol(old, current, passage, [facts.outlines[base.digest], facts.outlines[held.digest]])
        if here is None:
            return None
        edits += here
    return _in_order(old, current, found, edits)


def _in_order(old: Document, current: Document, found: Found, edits: list[Edit]) -> list[Edit] | None:
    """The edits, ascending; None where two meet, or where one would be below other lines than in the base."""
    below = Surroundings(old.lines, current.lines)
    if any(
        below.differ((was.start, _rows(old, was)), (edit.start, _rows(current, edit)))
        for was, edit in zip((edit for passage in found.passages for edit in passage.edits), edits, strict=True)
    ):
        return None
    edits.sort(key=lambda edit: edit.start)
    if any(one.start + one.length > other.start for one, other in pairwise(edits)):
        return None
    return edits


def _rows(document: Document, edit: Edit) -> Sequence[str]:
    return document.lines[edit.start : edit.start + edit.length] or edit.lines


def untouched(old: Document, current: Document, anchors: Sequence[tuple[int, int]]) -> bool:
    """Whether others changed none of these lines of the base: (start, length), and the gaps where the length is 0."""
    return not any(
        hunk.old_start < start + length and start < hunk.old_end
        for hunk in diff(old.lines, current.lines)
        for start, length in anchors
    )


def _in_symbol(
    old: Document, current: Document, passage: Passage, outlines: Sequence[Outline | None]
) -> list[Edit] | None:
    """The edits at the place of the passage in its symbol, which may have been moved."""
    before, after = outlines
    both = _symbol_around(passage, (before, after)) if before is not None and after is not None else None
    if both is None:
        return None
    was, now = both
    first, start = was.line - 1, now.line - 1
    inside = Passage(passage.start - first, passage.stop - first, _shifted(passage.edits, -first))
    edits = _carried(old.lines[first : was.end_line], current.lines[start : now.end_line], inside)
    return None if edits is None else list(_shifted(edits, start))


def _shifted(edits: Sequence[Edit], by: int) -> tuple[Edit, ...]:
    return tuple(msgspec.structs.replace(edit, start=edit.start + by) for edit in edits)


def _carried(old: Sequence[str], current: Sequence[str], passage: Passage) -> list[Edit] | None:
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
    if ambiguous_hunks(LineMerge(was, now, new)):
        return None
    shift = at - passage.start
    try:
        return [Edit(edit.start + shift, edit.length, tuple(rebasing.lines(edit.lines))) for edit in passage.edits]
    except Uncertain:
        return None


def _may_contain(current: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether all lines of a passage are somewhere in a text, but for their indentation."""
    return {line.strip() for line in wanted} <= {line.strip() for line in current}


def _symbol_around(passage: Passage, outlines: tuple[Outline, Outline]) -> tuple[Symbol, Symbol] | None:
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
