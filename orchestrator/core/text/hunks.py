"""The parts of a patch. `forms` parses them, `patch` turns them into edits."""

from __future__ import annotations

from typing import Literal

import msgspec

Tag = Literal[" ", "-", "+"]


class PatchHunk(msgspec.Struct, frozen=True):
    """Consecutive lines of a patch.

    `old_start` is the 0-based line of the base at which the hunk says it is, None where it says none.
    `lines` are (tag, text without ending) in order: `" "` context, `"-"` removed, `"+"` added. The flags say
    that a side's last line is marked as having no newline.
    """

    old_start: int | None
    lines: tuple[tuple[Tag, str], ...]
    old_no_newline: bool = False
    new_no_newline: bool = False
    anchors: tuple[str, ...] = ()  # headings that it is below, the outermost first
    counted: bool = True  # the numbers of its header fit its lines, so its line may be believed
    at_end: bool = False  # it says that it ends with the file's last line
    bare: frozenset[int] = frozenset()  # which of the lines are context that came without its leading blank

    @property
    def old(self) -> tuple[str, ...]:
        """Context and removed lines: what must be in the base."""
        return tuple(text for tag, text in self.lines if tag != "+")

    @property
    def new(self) -> tuple[str, ...]:
        """Context and added lines: what shall be there."""
        return tuple(text for tag, text in self.lines if tag != "-")

    @property
    def first_change(self) -> int:
        """How many lines of context are before what it changes first; 0 where it changes nothing."""
        return next((at for at, (tag, _) in enumerate(self.lines) if tag != " "), 0)


class FilePatch(msgspec.Struct, frozen=True):
    """A patch of one file. A path is None for `/dev/null`; `headed` is False where no paths are named.

    Without hunks it is a rename, makes or removes an empty file, or only changes whether it is executable.
    """

    old_path: str | None
    new_path: str | None
    hunks: tuple[PatchHunk, ...]
    headed: bool = True
    executable: bool | None = None  # from here on; None: as before
    then: tuple[tuple[PatchHunk, ...], ...] = ()  # what is to be done to the result, in turn
    drops: bool = False  # the file goes, whatever it holds
    whole: str | None = None  # the whole new text; hunks beside it quote what it replaces

    @property
    def renames(self) -> bool:
        """Whether the file gets another name."""
        return None not in (self.old_path, self.new_path) and self.old_path != self.new_path

    @property
    def added(self) -> str:
        """The text of a file that the patch makes."""
        if self.whole is not None:
            return self.whole
        lines = [text for hunk in self.hunks for tag, text in hunk.lines if tag == "+"]
        ended = lines and not self.hunks[-1].new_no_newline
        return "\n".join(lines) + ("\n" if ended else "")


Form = Literal["unified", "begin_patch", "search_replace", "whole_file"]


class ParsedPatch(msgspec.Struct, frozen=True):
    """A patch, and the form in which it was written."""

    form: Form
    files: tuple[FilePatch, ...]
