"""Parses `*** Begin Patch`: files added, updated, moved and deleted; hunks by context and heading."""

from __future__ import annotations

from orchestrator.core.errors import PatchInvalid
from orchestrator.core.text.forms.hunks import LAST, FilePatch, read_hunks
from orchestrator.core.text.forms.rows import Rows, plain_fence

BEGIN, END = "*** Begin Patch", "*** End Patch"
ADD, UPDATE, DELETE = "*** Add File:", "*** Update File:", "*** Delete File:"
MOVE = "*** Move to:"
HEADS = (ADD, UPDATE, DELETE)


def begins(row: str) -> bool:
    """Whether a row belongs to this form and to no other; with blanks before it, to be refused."""
    return row.strip() == BEGIN or row.lstrip().startswith(HEADS)


def parse_begin_patch(rows: Rows) -> tuple[FilePatch, ...]:
    """Read every file's part. The frame may be missing, but not its end alone. Raises PatchInvalid."""
    files: list[FilePatch] = []
    framed = False
    while rows.at < len(rows):
        row = rows.row
        if row.strip() in {BEGIN, END}:
            if framed and row.strip() == BEGIN:
                raise _cut_off(rows)
            framed = row.strip() == BEGIN
            rows.at += 1
            continue
        if row.startswith(ADD):
            top = rows.at
            files.append(_added(rows))
            if not framed and not files[-1].whole:
                raise rows.refused(f"'{ADD}' without a line and without '{BEGIN}' may be cut off", top)
        elif row.startswith(DELETE):
            files.append(FilePatch(_path(rows, DELETE), None, (), drops=True))
            if rows.at < len(rows) and rows.row[:1] in {"-", "+", " ", "@"} and rows.row.strip():
                raise rows.refused(
                    f"{rows.row[:60]!r} follows '{DELETE}', which deletes the whole file, whatever it contains",
                    hint="Leave the lines out, or send a unified diff to /dev/null, whose lines are checked.",
                )
        elif row.startswith(UPDATE):
            files.append(_updated(rows))
        elif row.lstrip().startswith(HEADS) or (
            files and (row[:1] in {"+", "@"} or (row.startswith("*** ") and row.strip() != LAST))
        ):
            hint = "Begin each file with '*** Update File: path', without blanks before it."
            raise rows.refused(f"{row[:60]!r} belongs to no file", hint=hint)
        else:
            rows.at += 1  # the frame, and what is written around it
    if framed and files:
        raise _cut_off(rows)
    if not files:
        raise rows.refused("no file is named", hint="Begin each file with '*** Update File: path'.")
    return tuple(files)


def _cut_off(rows: Rows) -> PatchInvalid:
    return rows.refused(
        f"'{END}' is missing here, so the patch may be cut off",
        hint=f"Send it whole, down to '{END}'; in parts, if it is long.",
    )


def _path(rows: Rows, head: str) -> str:
    path = rows.row[len(head) :].strip()
    if not path:
        raise rows.refused("the path is missing")
    rows.at += 1
    return path


def _ends(rows: Rows, at: int) -> bool:
    """Whether a row is of the frame, of the next hunk or file, or a fence behind which nothing of the patch comes."""
    row = rows.rows[at]
    if row.startswith(("*** ", "@@")) or row.strip() in {BEGIN, END}:
        return True
    return plain_fence(row) and rows.last_of_a_patch <= at


def _added(rows: Rows) -> FilePatch:
    path = _path(rows, ADD)
    lines: list[str] = []
    while rows.at < len(rows) and not _ends(rows, rows.at):
        row = rows.row
        if row and not row.startswith("+"):
            raise rows.refused("a line of an added file must begin with '+'")
        lines.append(row[1:] if row else "\n")
        rows.at += 1
    while lines and lines[-1] == "\n":  # blank rows without a sign, before what comes next
        lines.pop()
    if rows.row.strip() == LAST:
        rows.at += 1
    return FilePatch(None, path, (), whole="".join("\n" if line == "\n" else f"{line}\n" for line in lines))


def _updated(rows: Rows) -> FilePatch:
    top = rows.at
    path = _path(rows, UPDATE)
    target = _path(rows, MOVE) if rows.row.startswith(MOVE) else path
    hunks = read_hunks(rows, lambda at: _ends(rows, at), headless=True)
    if not hunks and target == path:
        raise rows.refused(f"nothing is changed in {path}", top)
    return FilePatch(path, target, hunks)
