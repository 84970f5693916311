"""One file's part of a git patch: headers, then hunks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from orchestrator.core.content import LineRange
from orchestrator.core.text.charsets import MARKS
from orchestrator.core.text.diff import quoted, unified
from orchestrator.core.text.encoding import decode
from orchestrator.core.text.lines import join

Happened = Literal["added", "deleted", "modified", "renamed", "mode"]
"""What became of a file; `mode`: only its permission bits changed, `renamed`: perhaps changed too."""

_SPAN = re.compile(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@")


class FileState(msgspec.Struct, frozen=True):
    """A file at one moment."""

    path: str
    data: bytes
    mode: int  # permission bits
    written: str | None = None  # its encoding, where that is known, ...
    like: str | None = None  # ... or that of another version


class FilePatch(msgspec.Struct, frozen=True, kw_only=True):
    """How one file became another.

    `text` is for `git apply` (binary files: a note, as from git without `--binary`). Its lines
    keep a carriage return and a byte order mark, as git's do. `shown` are the 1-based lines of
    the new file that are in it; None where lines can't be counted in the way that reads do.
    """

    happened: Happened
    text: str
    added: int = 0
    removed: int = 0
    binary: bool = False
    shown: tuple[LineRange, ...] | None = None
    total_lines: int = 0


def file_patch(old: FileState | None, new: FileState | None, *, context: int = 3) -> FilePatch:
    """The patch between two states of a file, None where it is absent; two paths make it a rename.

    A file that is no valid UTF-8 is shown in its own encoding: to read, not to apply. Cost: that of `diff`.
    Raises ValueError where the file is absent on both sides.
    """
    happened = _happened(old, new)
    heads = list(_heads(old, new))
    if old is not None and new is not None and old.data == new.data:
        return FilePatch(happened=happened, text=_text(heads) if len(heads) > 1 else "")
    before, after = _lines(old), _lines(new)
    if before is None or after is None:
        names = [quoted(f"{side}/{state.path}") if state else "/dev/null" for side, state in (("a", old), ("b", new))]
        heads.append(f"Binary files {names[0]} and {names[1]} differ")
        return FilePatch(happened=happened, text=_text(heads), binary=True)
    body = unified(
        before[0],
        after[0],
        path_before=old.path if old else None,
        path_after=new.path if new else None,
        context=context,
        final_newline_before=before[1],
        final_newline_after=after[1],
    )
    added, removed, shown = _measured(body)
    alike = new is not None and b"\r" not in new.data.replace(b"\r\n", b"")
    return FilePatch(
        happened=happened,
        text=_text(heads) + body,
        added=added,
        removed=removed,
        shown=shown if alike else None,
        total_lines=len(after[0]),
    )


def _happened(old: FileState | None, new: FileState | None) -> Happened:
    if old is None or new is None:
        if old is new:
            raise ValueError("absent on both sides")
        return "added" if old is None else "deleted"
    if old.path != new.path:
        return "renamed"
    return "mode" if old.data == new.data else "modified"


def _heads(old: FileState | None, new: FileState | None) -> Iterator[str]:
    """The first has the names; more follow where something happened besides the lines."""
    names = [state.path for state in (old, new) if state is not None]
    yield f"diff --git {quoted(f'a/{names[0]}')} {quoted(f'b/{names[-1]}')}"
    if old is None and new is not None:
        yield f"new file mode {_git_mode(new)}"
    elif new is None and old is not None:
        yield f"deleted file mode {_git_mode(old)}"
    elif old is not None and new is not None:
        if _git_mode(old) != _git_mode(new):
            yield f"old mode {_git_mode(old)}"
            yield f"new mode {_git_mode(new)}"
        if old.path != new.path:
            if old.data == new.data:
                yield "similarity index 100%"
            yield f"rename from {quoted(old.path)}"
            yield f"rename to {quoted(new.path)}"


def _git_mode(state: FileState) -> str:
    """Git knows whether the owner may execute a file, and no more."""
    return "100755" if state.mode & 0o100 else "100644"


def _lines(state: FileState | None) -> tuple[list[str], bool] | None:
    """Lines without their newline, and whether the last has one; None for a binary file."""
    if state is None:
        return [], True
    document = decode(state.data, written=state.written, like=state.like)
    if document is None:
        return None
    mark = "\ufeff" if document.encoding in MARKS else ""
    text = mark + join(document.lines, document.ends)
    lines = text.split("\n")
    ended = not lines[-1]
    return (lines[:-1] if ended else lines), ended


def _measured(body: str) -> tuple[int, int, tuple[LineRange, ...]]:
    """Added lines, removed lines, and which lines of the new file are in it."""
    rows = body.split("\n")[2:]
    shown: list[LineRange] = []
    for row in rows:
        if (span := _SPAN.match(row)) is not None and span[2] != "0":
            first = int(span[1])
            shown.append(LineRange(first, first + int(span[2] or 1) - 1))
    added, removed = (sum(row.startswith(sign) for row in rows) for sign in "+-")
    return added, removed, tuple(shown)


def _text(heads: list[str]) -> str:
    return "".join(f"{head}\n" for head in heads)
