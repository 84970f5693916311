"""Patches of files, and what their hunks edit; `forms` reads them, `placing` finds where they go."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.core.errors import ChangesOverlap, NothingToChange
from orchestrator.core.text.encoding import Document, Edit, edits_between, splice
from orchestrator.core.text.hunks import FilePatch, PatchHunk, Tag
from orchestrator.core.text.locate import Found, Passage
from orchestrator.core.text.passages import Likeness
from orchestrator.core.text.placing import Placed, Standing, place, stands_as_stated

__all__ = ["FilePatch", "PatchHunk", "Tag", "locate_patch"]


def locate_patch(patch: FilePatch, base: Document, likeness: Likeness | None = None) -> Found:
    """Where the hunks go in the base; with `likeness`, hunks whose lines stand there only nearly so too.

    The hunks may come in any order. Raises what `place` raises, ChangesOverlap (`details`: `hunk`, 0-based,
    and 1-based `lines`) if one hunk removes what another counts on or two insert at one place, NothingToChange.
    """
    placed = _locate(patch.hunks, base, likeness, first=0, believed=True)
    edits = _edits(placed)
    if patch.then:
        after = splice(base, edits)
        for hunks in patch.then:
            again = _locate(hunks, after, likeness, first=len(placed), believed=False)
            after = splice(after, _edits(again))
            placed += again
        edits = edits_between(base, after.lines, after.final_newline or not after.lines)
    if not edits:
        raise NothingToChange("the patch removes and adds no line.")
    scores = [one.score for one in placed if one.score is not None]
    return Found(
        tuple(Passage(edit.start, edit.start + edit.length, (edit,)) for edit in edits),
        score=min(scores, default=1.0),
        alike=bool(scores),
    )


def _locate(
    hunks: Sequence[PatchHunk], base: Document, likeness: Likeness | None, *, first: int, believed: bool
) -> list[Placed]:
    believed = believed and all(stands_as_stated(hunk, base) for hunk in hunks if hunk.old_start is not None)
    standing = Standing(base.lines)
    placed = [
        place(hunk, first + at, base, standing, believed=believed, likeness=likeness) for at, hunk in enumerate(hunks)
    ]
    _check_apart(placed, first)
    return placed


def _edits(placed: Sequence[Placed]) -> list[Edit]:
    """What all of them edit, ascending."""
    return sorted((edit for one in placed for edit in one.edits), key=lambda edit: (edit.start, edit.length))


def _check_apart(placed: Sequence[Placed], first: int) -> None:
    """Context may be shared; what one hunk removes may stand in no other, and each gap takes one insertion."""
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
