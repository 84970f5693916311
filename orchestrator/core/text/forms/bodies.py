"""Parses the lines of a hunk, whether its counts are right, wrong or absent."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from orchestrator.core.text.forms.rows import Rows
from orchestrator.core.text.hunks import PatchHunk, Tag

Ends = Callable[[int], bool]
"""Whether a row, by its index, is the first that can't be of a hunk any more."""

_HEADER = re.compile(r"@@+ *-(\d{1,9})(?:,(\d{1,9}))? +\+(\d{1,9})(?:,(\d{1,9}))? *(?:@@+(?: ?(.*))?)?\Z")
_PLACEHOLDER = re.compile(r"@@+ *-[^\s@]* +\+[^\s@]* *(?:@@+(?: ?(.*))?)?\Z")
_HEADING = re.compile(r"@@+(.*?)(?:@@+(.*))?\Z")
_ELLIPSIS = re.compile(r"[.…\s]*\Z")


class Header(msgspec.Struct, frozen=True):
    """A row that begins with `@@`."""

    start: int | None = None  # 0-based
    counts: tuple[int, int] | None = None
    heading: str = ""


def header_of(row: str) -> Header:
    """Read it: with numbers, with a heading, or with nothing."""
    if (found := _HEADER.match(row)) is not None:
        old, new = (int(n) if n is not None else 1 for n in (found[2], found[4]))
        start = int(found[1]) - (old > 0)  # an empty span is named by the line before it
        return Header(start if start >= 0 else None, (old, new), (found[5] or "").strip())
    if (found := _PLACEHOLDER.match(row)) is not None:
        return Header(heading=(found[1] or "").strip())
    found = _HEADING.match(row)
    text = (found[1].strip() or (found[2] or "").strip()) if found else ""
    return Header(heading="" if _ELLIPSIS.match(text) else text)


class _Body:
    """Lines as they are gathered."""

    def __init__(self) -> None:
        self.lines: list[tuple[Tag, str]] = []
        self.bare: set[int] = set()
        self.unended = {"-": False, "+": False}

    def add(self, row: str) -> Tag:
        tag: Tag = "-" if row.startswith("-") else "+" if row.startswith("+") else " "
        if row and row[0] != tag:
            self.bare.add(len(self.lines))
        self.lines.append((tag, row.removeprefix(tag)))
        return tag

    def unend(self) -> None:
        for side in ("-", "+") if self.lines[-1][0] == " " else (self.lines[-1][0],):
            self.unended[side] = True


def read_hunk(rows: Rows, header: Header, ends: Ends) -> PatchHunk | None:
    """Read the lines below a header; None where there are none.

    They are those that the header counts, if what follows then is the end of the hunk; else all to
    where it ends, blank rows at the end left out. Raises PatchInvalid for a mark of a missing newline
    without a line.
    """
    top = rows.at
    body = _counted(rows, header.counts, ends) if header.counts is not None else None
    counted = body is not None
    if body is None:
        rows.at = top
        body = _to_the_end(rows, ends)
    if not body.lines:
        return None
    return PatchHunk(
        header.start,
        tuple(body.lines),
        body.unended["-"],
        body.unended["+"],
        (header.heading,) if header.heading else (),
        counted or header.counts is None,
        bare=frozenset(body.bare),
    )


def at_the_end(hunk: PatchHunk) -> PatchHunk:
    """A hunk below a bare `@@` that only adds lines adds them at the file's end, as the agents that send it have it."""
    bare = hunk.old_start is None and not hunk.anchors and not hunk.old
    return msgspec.structs.replace(hunk, at_end=True) if bare else hunk


def cut_off(header: Header, hunk: PatchHunk) -> bool:
    """Whether lines that the header counts may be missing at the hunk's end; context there shows that it ends so."""
    if header.counts is None or hunk.lines[-1][0] == " ":
        return False
    return len(hunk.old) < header.counts[0] or len(hunk.new) < header.counts[1]


def _counted(rows: Rows, counts: tuple[int, int], ends: Ends) -> _Body | None:
    """As many lines as the header counts; None if that is not how many there are."""
    old, new = counts
    body = _Body()
    while old or new or rows.row.startswith("\\ "):
        if rows.at >= len(rows) or (rows.row[:1] not in {" ", "+", "-", "\\"} and rows.row and ends(rows.at)):
            return None
        if rows.row.startswith("\\ "):
            if not body.lines:
                raise rows.refused("the mark of a missing newline must follow a line")
            body.unend()
        elif not rows.row and rows.at == len(rows) - 1:
            return None
        else:
            tag = body.add(rows.row)
            old, new = old - (tag != "+"), new - (tag != "-")
            marked = (body.unended["-"] and tag != "+") or (body.unended["+"] and tag != "-")
            if old < 0 or new < 0 or marked:
                return None
        rows.at += 1
    at = rows.at
    while at < len(rows) and not rows.rows[at].strip():
        at += 1
    return body if at == len(rows) or ends(at) or (at > rows.at and _no_change(rows, at, ends)) else None


def _no_change(rows: Rows, at: int, ends: Ends) -> bool:
    """Whether nothing up to the next header is a line of the hunk: then it is prose."""
    while at < len(rows) and not ends(at):
        if rows.rows[at].startswith(("+", "-", " ")):
            return False
        at += 1
    return True


def _to_the_end(rows: Rows, ends: Ends) -> _Body:
    body = _Body()
    blank = 0  # rows at the end of what was read
    while rows.at < len(rows) and not ends(rows.at):
        row = rows.row
        if row.startswith("\\ "):
            if not body.lines:
                raise rows.refused("the mark of a missing newline must follow a line")
            body.unend()
        else:
            body.add(row)
            blank = 0 if row else blank + 1
        rows.at += 1
    if blank:
        del body.lines[-blank:]
        body.bare -= set(range(len(body.lines), len(body.lines) + blank))
    return body
