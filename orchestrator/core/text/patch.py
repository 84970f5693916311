"""Patches of files and the edits that their hunks make."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from orchestrator.core.errors import ChangesOverlap, NothingToChange, SearchAmbiguous
from orchestrator.core.text.edits import Edit, splice
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.forms.hunks import FilePatch, PatchHunk, Tag
from orchestrator.core.text.hunk_location import HunkLocator, LineIndex, readings
from orchestrator.core.text.locate import Found
from orchestrator.core.text.matching import Passage
from orchestrator.core.text.unicode_escapes import respelled


def locate_patch(patch: FilePatch, base: Document, *, fuzzy: bool = False, unread: bool = False) -> Found:
    """Where the hunks go in the base; with `fuzzy`, hunks whose lines are there but for typography too.

    The hunks may come in any order; where a hunk's lines occur several times, an ascending order decides. A passage
    is all that a hunk quotes, context included. `unread`: the author did not see the file, so no line number counts.
    Every section of a file is of the base: what one changes may be another's context, but no two may change one
    place, and none may quote what is also where others write: it could be of the file that they leave.
    Raises what `HunkLocator.locate` does, ChangesOverlap (`details`: `hunk`, 0-based, and 1-based `lines`) if one hunk
    removes what another counts on or two insert at one place, NothingToChange.
    """
    sections = (patch.hunks, *patch.then)
    locator = HunkLocator(base, [hunk for hunks in sections for hunk in hunks], fuzzy=fuzzy, believed=not unread)
    placed: list[Passage] = []
    for hunks in sections:
        unsure = _of_the_result(locator, hunks, base, Found(tuple(placed)).edits) if placed else None
        if unsure is not None:
            raise SearchAmbiguous(
                f"hunk {len(placed) + unsure + 1}: its lines are also where an earlier section of this file writes.",
                hint="Write each section for the file as it is, and all hunks of it under one header.",
                details={"hunk": len(placed) + unsure, "lines": []},
            )
        placed += _locate(locator, hunks, base, first=len(placed))
        edits = ((edit.start, edit.length, index) for index, one in enumerate(placed) for edit in one.edits)
        for (start, length, index), (next_start, next_length, other) in pairwise(sorted(edits)):
            if next_start < start + length or (next_start, next_length) == (start, length):
                raise _overlap(index, other, next_start)
    found = Found(tuple(placed))
    if not found.edits:
        raise NothingToChange("the patch removes and adds no line.")
    return found


def respelled_patch(patch: FilePatch, base: Document) -> FilePatch:
    """The patch as the file spells it, where a client decoded escapes in its hunks: those whose lines are not there."""
    hunks = tuple(_respelled(hunk, base.text) for hunk in patch.hunks)
    return msgspec.structs.replace(patch, hunks=hunks) if hunks != patch.hunks else patch


def _respelled(hunk: PatchHunk, text: str) -> PatchHunk:
    old, new = "\n".join(hunk.old), "\n".join(hunk.new)
    both = "" if old in text else respelled(text, old, new)
    if isinstance(both, str):
        return hunk
    before, after = iter(both[0].split("\n")), iter(both[1].split("\n"))
    lines = list[tuple[Tag, str]]()
    for tag, _ in hunk.lines:
        sides = {next(side) for side, others in ((before, "+"), (after, "-")) if tag != others}
        if len(sides) > 1:
            return hunk
        lines.append((tag, sides.pop()))
    return msgspec.structs.replace(hunk, lines=tuple(lines))


def _of_the_result(
    locator: HunkLocator, hunks: Sequence[PatchHunk], base: Document, edits: Sequence[Edit]
) -> int | None:
    """The first hunk that may be of the file as these edits leave it: what it quotes is there where it was not before.

    Of a hunk whose header is right, only the line that it states counts.
    """
    origin: list[int] = []  # of each line that the edits leave, where it was; -1 of those that they bring
    at = 0
    for edit in edits:
        origin += (*range(at, edit.start), *([-1] * len(edit.lines)))
        at = edit.start + edit.length
    origin += range(at, len(base.lines))
    index = LineIndex(splice(base, edits).lines)
    for number, hunk in enumerate(hunks):
        stated = hunk.old_start if hunk.old_start is not None and locator.is_as_stated(hunk) else None
        if not hunk.old and stated is not None and len(origin) != len(base.lines):
            return number
        for place in (at for reading in readings(hunk) for at in (index.places(reading.old) if hunk.old else ())):
            was = origin[place] if stated is None else stated
            as_before = was >= 0 and origin[place : place + len(hunk.old)] == [*range(was, was + len(hunk.old))]
            if stated in (None, place) and not as_before:
                return number
    return None


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
