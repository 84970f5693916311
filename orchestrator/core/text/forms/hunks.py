"""The hunks of a patch, and how they are read from its rows, whether their counts are right, wrong or absent."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import takewhile
from typing import Final, Literal

import msgspec

from orchestrator.core.text.forms.rows import Rows, plain_fence

MAX_HEADINGS = 16
"""Above one hunk: more than anything is nested."""
LAST = "*** End of File"

_HEADER = re.compile(r"@@+ *-(\d{1,9})(?:,(\d{1,9}))? +\+(\d{1,9})(?:,(\d{1,9}))? *(?:@@+(?: ?(.*))?)?\Z")
_PLACEHOLDER = re.compile(r"@@+ *-[^\s@]* +\+[^\s@]* *(?:@@+(?: ?(.*))?)?\Z")
_HEADING = re.compile(r"@@+(.*?)(?:@@+(.*))?\Z")
_ELLIPSIS = re.compile(r"[.…\s]*\Z")

Ends = Callable[[int], bool]
"""Whether a row, by its index, is the first that can't be of a hunk any more."""

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
    short: bool = False  # it may lack lines at its end, which its header counts
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
    then: tuple[tuple[PatchHunk, ...], ...] = ()  # more of its sections, all of the same base
    drops: bool = False  # the file goes, whatever it holds
    whole: str | None = None  # the whole new text

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


class _Header(msgspec.Struct, frozen=True):
    """A row that begins with `@@`."""

    start: int | None = None  # 0-based
    counts: tuple[int, int] | None = None
    heading: str = ""


_BARE: Final = _Header()


def _header_of(row: str) -> _Header:
    """Read it: with numbers, with a heading, or with nothing."""
    if (found := _HEADER.match(row)) is not None:
        old, new = (int(n) if n is not None else 1 for n in (found[2], found[4]))
        start = int(found[1]) - (old > 0)  # an empty span is named by the line before it
        return _Header(start if start >= 0 else None, (old, new), (found[5] or "").strip())
    if (found := _PLACEHOLDER.match(row)) is not None:
        return _Header(heading=(found[1] or "").strip())
    found = _HEADING.match(row)
    text = (found[1].strip() or (found[2] or "").strip()) if found else ""
    return _Header(heading="" if _ELLIPSIS.match(text) else text)


def read_hunks(rows: Rows, ends: Ends, *, headless: bool = False) -> tuple[PatchHunk, ...]:
    """The hunks from here on, each with the headings above it; `headless`: the first may have no header.

    Raises PatchInvalid for a header without lines, more headings than anything is nested, and as `read_hunk`.
    """
    hunks: list[PatchHunk] = []
    anchors: tuple[str, ...] = ()
    while rows.at < len(rows):
        header = _BARE
        if rows.row.startswith("@@"):
            header = _header_of(rows.row)
            rows.at += 1
        elif hunks and rows.row.strip() == LAST:
            hunks[-1] = msgspec.structs.replace(hunks[-1], at_end=True)
            rows.at += 1
            continue
        elif not headless or ends(rows.at):
            break
        headless = False
        hunk = read_hunk(rows, ends, header)
        anchors = (*anchors, header.heading) if header.heading else anchors
        if len(anchors) > MAX_HEADINGS:
            raise rows.refused(f"more than {MAX_HEADINGS} headings are above one hunk", hint="Name the innermost ones.")
        if hunk is not None:
            # Below a bare `@@` lines are added at the file's end, as the agents that send it have it.
            bare = header.start is None and not anchors and not hunk.old
            hunks.append(msgspec.structs.replace(hunk, anchors=anchors, at_end=bare))
            anchors = ()
            skip_blank(rows)
        elif not rows.row.startswith("@@") or (header.counts is not None and not header.heading):
            raise rows.refused("the hunk is empty")
    return tuple(hunks)


def skip_blank(rows: Rows) -> None:
    """To the next hunk of the same file, over blank rows and fences alone."""
    at = rows.at
    while at < len(rows) and (not rows.rows[at].strip() or plain_fence(rows.rows[at])):
        at += 1
    if at < len(rows) and rows.rows[at].startswith("@@"):
        rows.at = at


def read_hunk(rows: Rows, ends: Ends, header: _Header = _BARE) -> PatchHunk | None:
    """Read the lines below a header; None where there are none.

    They are those that the header counts, if what follows then is the end of the hunk; else all to
    where it ends, blank rows at the end left out. Raises PatchInvalid for a mark of a missing newline
    without a line.
    """
    top = rows.at
    counted = _counted_end(rows, header.counts, ends) if header.counts is not None else None
    rows.at = next((at for at in range(top, len(rows)) if ends(at)), len(rows)) if counted is None else counted
    end = rows.at
    while counted is None and end > top and not rows.rows[end - 1]:
        end -= 1
    lines: list[tuple[Tag, str]] = []
    bare: set[int] = set()
    unended: set[str] = set()
    for at in range(top, end):
        row = rows.rows[at]
        tag = _tag(row)
        if not row.startswith("\\ "):
            if row and row[0] != tag:
                bare.add(len(lines))
            lines.append((tag, row.removeprefix(tag)))
        elif lines:
            unended.update("-+" if lines[-1][0] == " " else lines[-1][0])
        else:
            raise rows.refused("the mark of a missing newline must follow a line", at)
    if not lines:
        return None
    old, new = header.counts or (0, 0)
    fewer = sum(tag != "+" for tag, _ in lines) < old or sum(tag != "-" for tag, _ in lines) < new
    return PatchHunk(
        header.start,
        tuple(lines),
        "-" in unended,
        "+" in unended,
        counted=counted is not None or header.counts is None,
        short=fewer and lines[-1][0] != " ",
        bare=frozenset(bare),
    )


def _tag(row: str) -> Tag:
    return "-" if row.startswith("-") else "+" if row.startswith("+") else " "


def _counted_end(rows: Rows, counts: tuple[int, int], ends: Ends) -> int | None:
    """Where a hunk ends by what its header counts; None if other lines are there."""
    old, new = counts
    done = ""  # tags of which a line that is marked as without newline was the last
    for at in range(rows.at, len(rows)):
        row, tag = rows.rows[at], _tag(rows.rows[at])
        if row.startswith("\\ "):
            done += {"-": " -", "+": " +"}.get(rows.rows[at - 1][:1], " -+")
        elif not old and not new:
            break
        elif tag in done or (row[:1] not in {"", " ", "+", "-"} and ends(at)) or (not row and at == len(rows) - 1):
            return None
        else:
            old, new = old - (tag != "+"), new - (tag != "-")
            if old < 0 or new < 0:
                return None
    else:
        at = len(rows)
    if old or new:
        return None
    following = next((n for n in range(at, len(rows)) if rows.rows[n].strip()), len(rows))
    rest = takewhile(lambda n: not ends(n), range(following, len(rows)))
    prose = following > at and not any(rows.rows[n].startswith(("+", "-", " ")) for n in rest)
    return at if prose or following == len(rows) or ends(following) else None
