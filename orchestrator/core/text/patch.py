"""Patches of files, and where their hunks go; `unified` reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from orchestrator.core.errors import (
    ChangesOverlap,
    NothingToChange,
    SearchAmbiguous,
    SearchNotFound,
    shown_lines,
)
from orchestrator.core.text.encoding import Document, Edit
from orchestrator.core.text.nearest import nearest

Tag = Literal[" ", "-", "+"]


class PatchHunk(msgspec.Struct, frozen=True):
    """Consecutive lines of a patch.

    `old_start` is the 0-based line of the base at which the hunk says it stands. `lines` are
    (tag, text without ending) in order: `" "` context, `"-"` removed, `"+"` added. The flags say
    that a side's last line is marked as having no newline.
    """

    old_start: int
    lines: tuple[tuple[Tag, str], ...]
    old_no_newline: bool = False
    new_no_newline: bool = False

    @property
    def old(self) -> tuple[str, ...]:
        """Context and removed lines: what must stand in the base."""
        return tuple(text for tag, text in self.lines if tag != "+")


class FilePatch(msgspec.Struct, frozen=True):
    """A patch of one file. A path is None for `/dev/null`; `headed` is False where no paths are named.

    Without hunks it is a rename, makes or removes an empty file, or only changes whether it is executable.
    """

    old_path: str | None
    new_path: str | None
    hunks: tuple[PatchHunk, ...]
    headed: bool = True
    executable: bool | None = None  # from here on; None: as before

    @property
    def renames(self) -> bool:
        """Whether the file gets another name."""
        return None not in (self.old_path, self.new_path) and self.old_path != self.new_path


def locate_patch(patch: FilePatch, base: Document) -> list[Edit]:
    """Where the hunks go, as edits of the base, ascending.

    A hunk stands at its stated line if its context and removed lines are there exactly, else at
    the one place where they are. A hunk marked as ending without newline stands at the end of a
    base that has none. Raises SearchNotFound, SearchAmbiguous (`details`: `hunk`, 0-based,
    and `nearest`, or 1-based `lines`), ChangesOverlap if hunks overlap or change their order, NothingToChange.
    """
    edits: list[Edit] = []
    end = 0
    for index, hunk in enumerate(patch.hunks):
        start = _place(hunk, index, base)
        if start < end:
            raise ChangesOverlap(
                f"hunk {index + 1} stands at line {start + 1}, before the end of the hunk above it.",
                details={"hunk": index, "lines": [start + 1, end]},
            )
        edits += _edits(hunk, start)
        end = start + len(hunk.old)
    if not edits:
        raise NothingToChange("the patch removes and adds no line.")
    return edits


def _place(hunk: PatchHunk, index: int, base: Document) -> int:
    old = hunk.old
    if _stands(hunk, old, hunk.old_start, base):
        return hunk.old_start
    places = [at for at in _candidates(old, base.lines) if _stands(hunk, old, at, base)] if old else []
    if len(places) == 1:
        return places[0]
    if not places:
        raise SearchNotFound(
            f"hunk {index + 1}: its context and removed lines stand nowhere in the base.",
            details={"hunk": index, "line": hunk.old_start + 1, "nearest": nearest(base.lines, old)},
        )
    lines = [at + 1 for at in places]
    raise SearchAmbiguous(
        f"hunk {index + 1} does not fit at its line {hunk.old_start + 1}, and its lines stand {len(lines)} times in "
        f"the base: lines {shown_lines(lines)}.",
        hint="Give the hunk more context, or the right line number.",
        details={"hunk": index, "lines": lines},
    )


def _stands(hunk: PatchHunk, old: tuple[str, ...], at: int, base: Document) -> bool:
    end = at + len(old)
    if end > len(base.lines) or base.lines[at:end] != old:
        return False
    return not hunk.old_no_newline or (end == len(base.lines) and not base.final_newline)


def _candidates(old: Sequence[str], lines: Sequence[str]) -> list[int]:
    """Where the longest of the old lines stands, carried to the first; ascending."""
    probe = max(range(len(old)), key=lambda at: len(old[at]))
    return [at - probe for at, line in enumerate(lines) if line == old[probe] and at >= probe]


def _edits(hunk: PatchHunk, start: int) -> list[Edit]:
    """One edit for each run of removed and added lines."""
    edits: list[Edit] = []
    at = start
    removed, added = 0, list[str]()
    for tag, text in (*hunk.lines, (" ", "")):
        if tag == "-":
            removed += 1
        elif tag == "+":
            added.append(text)
        else:
            if removed or added:
                edits.append(Edit(at, removed, tuple(added)))
            at, removed, added = at + removed + 1, 0, []
    if edits and hunk.old_no_newline != hunk.new_no_newline:
        edits[-1] = msgspec.structs.replace(edits[-1], final_newline=hunk.old_no_newline)
    return edits
