"""A passage found again after others moved or indented it, by its place and by the symbol that it stands in."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.core.text.diff import Hunk
from orchestrator.core.text.encoding import Edit
from orchestrator.core.text.indent import Rebasing
from orchestrator.core.text.locate import Passage
from orchestrator.core.text.symbols import Outline, Symbol

NEIGHBOURS = 100
"""Lines around a place from which the width of a level of indentation is read."""


def may_stand(old: Sequence[str], current: Sequence[str], passage: Passage) -> bool:
    """Whether all the lines of a passage are somewhere in a text, but for their indentation."""
    wanted = {line.strip() for line in old[passage.start : passage.stop]}
    for line in current:
        wanted.discard(line.strip())
        if not wanted:
            return True
    return not wanted


def in_symbol(
    old: Sequence[str],
    current: Sequence[str],
    outlines: tuple[Outline, Outline],
    passage: Passage,
    moved: Sequence[Hunk],
) -> int | None:
    """The 0-based line of `current` where a passage of `old` stands in the symbol that it stood in.

    The lines must be equal but for one shift of their indentation, in one place of the symbol; and they
    must stand where they stood: among the lines around them, or as far from the symbol's beginning
    or end. An equal passage that somebody else wrote elsewhere in it is not taken for the same.
    """
    before = _innermost(outlines[0], passage)
    if before is None:
        return None
    name, symbol = before
    after = [other for path, other in outlines[1].walk() if path == name and other.kind == symbol.kind]
    if len(after) != 1:
        return None
    now = after[0]
    length = passage.stop - passage.start
    found = [
        at
        for at in range(now.line - 1, now.end_line - length + 1)
        if reindented(old[passage.start : passage.stop], current[at : at + length])
    ]
    if len(found) != 1:
        return None
    at = found[0]
    low, high = mapped(passage.start, passage.stop, moved)
    from_start = at - (now.line - 1) == passage.start - (symbol.line - 1)
    from_end = now.end_line - at == symbol.end_line - passage.start
    return at if from_start or from_end or (low <= at and at + length <= high) else None


def in_place(old: Sequence[str], current: Sequence[str], passage: Passage, moved: Sequence[Hunk]) -> int | None:
    """The line where a passage stands among the lines around it, equal but for its indentation."""
    low, high = mapped(passage.start, passage.stop, moved)
    length = passage.stop - passage.start
    found = [
        at
        for at in range(low, high - length + 1)
        if reindented(old[passage.start : passage.stop], current[at : at + length])
    ]
    return found[0] if len(found) == 1 else None


def carried_to(old: Sequence[str], current: Sequence[str], passage: Passage, at: int) -> list[Edit]:
    """The passage's edits at the place where it stands now, with its indentation there."""
    pairs = list(zip(old[passage.start : passage.stop], current[at:], strict=False))
    quoted = (*old[max(0, passage.start - NEIGHBOURS) : passage.stop + NEIGHBOURS],)
    present = current[max(0, at - NEIGHBOURS) : at + len(pairs) + NEIGHBOURS]
    rebasing = Rebasing(pairs, quoted, present)
    edits: list[Edit] = []
    for edit in passage.edits:
        beside = old[min(edit.start, passage.stop - 1)] if passage.stop > passage.start else None
        lines = tuple(rebasing.lines(edit.lines, after=beside))
        edits.append(Edit(edit.start - passage.start + at, edit.length, lines, None))
    return edits


def mapped(start: int, stop: int, moved: Sequence[Hunk]) -> tuple[int, int]:
    """The lines of the new text that lie between what stood unchanged around lines of the old."""
    low, high, shift = start, stop, 0
    for hunk in moved:
        if hunk.old_end <= start and hunk.old_start < start:
            shift += hunk.new_len - hunk.old_len
            low, high = start + shift, stop + shift
        elif hunk.old_start < stop or (hunk.old_start == stop and hunk.old_len == 0):
            low = min(low, hunk.new_start)
            shift += hunk.new_len - hunk.old_len
            high = max(stop, hunk.old_end) + shift
    return low, high


def reindented(lines: Sequence[str], others: Sequence[str]) -> bool:
    """Whether two passages of one length differ in nothing but their indentation, each depth in one way."""
    if any(a.strip() != b.strip() for a, b in zip(lines, others, strict=True)):
        return False
    return Rebasing(zip(lines, others, strict=True), (), ()).consistent


def _innermost(outline: Outline, passage: Passage) -> tuple[str, Symbol] | None:
    """The innermost symbol that holds all of a passage, with its dotted name."""
    holding = [
        (name, symbol)
        for name, symbol in outline.walk()
        if symbol.line <= passage.start + 1 and passage.stop <= symbol.end_line
    ]
    return holding[-1] if holding else None
