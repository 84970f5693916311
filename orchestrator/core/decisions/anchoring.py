"""Passages of the base that others have moved or indented since: found again in what the file holds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from orchestrator.core.decisions.decision import Facts, Held, Need, Source
from orchestrator.core.text.anchors import carried_to, in_place, in_symbol, may_stand
from orchestrator.core.text.diff import Hunk, diff
from orchestrator.core.text.encoding import Document, Edit, decode
from orchestrator.core.text.locate import Found


class Again(msgspec.Struct, frozen=True):
    """The same edits, of the file as it is now."""

    held: Held
    document: Document
    edits: list[Edit]


def found_again(old: Document, found: Found, facts: Facts, anchors: Sequence[tuple[int, int]]) -> Again | Need | None:
    """Where passages of the base stand now, every one of them whole and unchanged but for its indentation.

    None where nobody touched the lines that the change replaces, and where one of the passages is
    not to be found: then it is for the merge to say what becomes of it.
    """
    held, base = facts.held, facts.base
    current = held.document or decode(held.data) if held else None
    if held is None or base is None or current is None:
        return None
    moved = diff(old.lines, current.lines)
    if not _touched(moved, anchors) or any(passage.stop == passage.start for passage in found.passages):
        return None
    if not all(may_stand(old.lines, current.lines, passage) for passage in found.passages):
        return None
    sources = (Source(facts.path, base.digest, facts.contents[base.digest]), Source(facts.path, held.digest, held.data))
    missing = tuple(source for source in sources if source.digest not in facts.outlines)
    if missing:
        return Need(outlines=missing)
    before, after = (facts.outlines[source.digest] for source in sources)
    edits: list[Edit] = []
    for passage in found.passages:
        at = None
        if before is not None and after is not None:
            at = in_symbol(old.lines, current.lines, (before, after), passage, moved)
        if at is None:
            at = in_place(old.lines, current.lines, passage, moved)
        if at is None:
            return None
        edits += carried_to(old.lines, current.lines, passage, at)
    edits.sort(key=lambda edit: edit.start)
    if any(one.start + one.length > other.start for one, other in pairwise(edits)):
        return None
    return Again(held, current, edits)


def untouched(old: Document, current: Document, anchors: Sequence[tuple[int, int]]) -> bool:
    """Whether others changed none of these lines of the base: (start, length), and the gaps where the length is 0."""
    return not _touched(diff(old.lines, current.lines), anchors)


def _touched(moved: Sequence[Hunk], anchors: Sequence[tuple[int, int]]) -> bool:
    return any(
        hunk.old_start < start + length and start < hunk.old_start + hunk.old_len
        for start, length in anchors
        for hunk in moved
    )
