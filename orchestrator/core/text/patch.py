"""Patches of files and the edits that their hunks make."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from orchestrator.core.errors import ChangesOverlap, NothingToChange, SearchAmbiguous
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.forms.hunks import FilePatch, PatchHunk
from orchestrator.core.text.hunk_location import HunkLocator
from orchestrator.core.text.locate import Found
from orchestrator.core.text.matching import Passage


def locate_patch(patch: FilePatch, base: Document, *, fuzzy: bool = False, unread: bool = False) -> Found:
    """Where the hunks go in the base; with `fuzzy`, hunks whose lines are there but for typography too.

    The hunks may come in any order; where a hunk's lines occur several times, an ascending order decides. A passage
    is all that a hunk quotes, context included. `unread`: the author did not see the file, so no line number counts.
    Every section of a file is of the base: what one changes may be another's context, but what one writes no other
    may replace, unless it is at its line: it could be meant where it was written.
    Raises what `HunkLocator.locate` does, ChangesOverlap (`details`: `hunk`, 0-based, and 1-based `lines`) if one hunk
    removes what another counts on or two insert at one place, NothingToChange.
    """
    sections = (patch.hunks, *patch.then)
    locator = HunkLocator(base, [hunk for hunks in sections for hunk in hunks], fuzzy=fuzzy, believed=not unread)
    placed: list[Passage] = []
    written: set[str] = set()
    for hunks in sections:
        for number, hunk in enumerate(hunks, len(placed)):
            sure = hunk.old_start is not None and locator.is_as_stated(hunk)
            if not sure and any(tag == "-" and text.strip() and text in written for tag, text in hunk.lines):
                raise SearchAmbiguous(
                    f"hunk {number + 1}: it replaces a line that an earlier section of this file writes.",
                    hint="Write each section for the file as it is, and all hunks of it under one header.",
                    details={"hunk": number, "lines": []},
                )
        placed += _locate(locator, hunks, base, first=len(placed))
        written |= {text for hunk in hunks for tag, text in hunk.lines if tag == "+"}
    edits = ((edit.start, edit.length, index) for index, one in enumerate(placed) for edit in one.edits)
    for (start, length, index), (next_start, next_length, other) in pairwise(sorted(edits)):
        if next_start < start + length or (next_start, next_length) == (start, length):
            raise _overlap(index, other, next_start)
    found = Found(tuple(placed))
    if not found.edits:
        raise NothingToChange("the patch removes and adds no line.")
    return found


def _locate(locator: HunkLocator, hunks: Sequence[PatchHunk], base: Document, *, first: int) -> list[Passage]:
    placed: list[Passage | SearchAmbiguous] = []
    for number, hunk in enumerate(hunks, first):
        try:
            placed.append(locator.locate(hunk, number))
        except SearchAmbiguous as error:
            placed.append(error)
    sure = [one for one in placed if isinstance(one, Passage)]
    ordered = all(one.stop <= other.start for one, other in pairwise(sure))
    for at, one in enumerate(placed):
        if isinstance(one, Passage):
            continue
        if not ordered or not hunks[at].old:
            raise one
        start = max((other.stop for other in placed[:at] if isinstance(other, Passage)), default=0)
        behind = (other.start for other in placed[at + 1 :] if isinstance(other, Passage))
        placed[at] = locator.locate(hunks[at], first + at, range(start, min(behind, default=len(base.lines))))
    done = [one for one in placed if isinstance(one, Passage)]
    _check_apart(done, first)
    return done


def _check_apart(placed: Sequence[Passage], first: int) -> None:
    """Context may be shared; what one hunk removes may be in no other, and each gap takes one insertion."""
    counted_on: dict[int, int] = {}
    inserted: dict[int, int] = {}
    for index, one in enumerate(placed):
        for edit in one.edits:
            if edit.length == 0 and inserted.setdefault(edit.start, index) != index:
                raise _overlap(first + index, first + inserted[edit.start], edit.start)
        for at in range(one.start, one.stop):
            counted_on[at] = counted_on.get(at, 0) + 1
    for index, one in enumerate(placed):
        for edit in one.edits:
            for at in range(edit.start, edit.start + edit.length):
                if counted_on[at] > 1:
                    other = next(i for i, its in enumerate(placed) if i != index and its.start <= at < its.stop)
                    raise _overlap(first + max(index, other), first + min(index, other), at)


def _overlap(hunk: int, other: int, at: int) -> ChangesOverlap:
    return ChangesOverlap(
        f"hunks {min(hunk, other) + 1} and {max(hunk, other) + 1} both change the place at line {at + 1}.",
        hint="Join them into one hunk.",
        details={"hunk": hunk, "lines": [at + 1]},
    )
