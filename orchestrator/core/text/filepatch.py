"""One file's part of a git patch: headers, then hunks."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from orchestrator.core.text.charsets import MARKS
from orchestrator.core.text.encoding import decode
from orchestrator.core.text.lines import join
from orchestrator.core.text.unified_diff import Side, UnifiedDiff, quoted, unified


class FileState(msgspec.Struct, frozen=True):
    """A file at one moment."""

    path: str
    data: bytes
    mode: int  # permission bits
    written: str | None = None  # its encoding, where that is known, ...
    like: str | None = None  # ... or that of another version


class FilePatch(UnifiedDiff, frozen=True):
    """How one file became another.

    `text` is for `git apply` (binary files: a note, as from git without `--binary`). Its lines
    keep a carriage return and a byte order mark, as git's do. `shown` is empty where lines can't be counted in the
    way that reads do.
    """

    binary: bool = False
    total_lines: int = 0


def file_patch(old: FileState | None, new: FileState | None, *, context: int = 3) -> FilePatch:
    """The patch between two states of a file, None where it is absent; two paths make it a rename.

    A file that is no valid UTF-8 is shown in its own encoding: to read, not to apply. Cost: that of `diff`.
    Raises ValueError where the file is absent on both sides.
    """
    if old is new is None:
        raise ValueError("absent on both sides")
    heads = [f"{head}\n" for head in _heads(old, new)]
    if old is not None and new is not None and old.data == new.data:
        return FilePatch("".join(heads) if len(heads) > 1 else "")
    before, after = _side(old), _side(new)
    if before is None or after is None:
        names = [quoted(f"{side}/{state.path}") if state else "/dev/null" for side, state in (("a", old), ("b", new))]
        return FilePatch(f"{''.join(heads)}Binary files {names[0]} and {names[1]} differ\n", binary=True)
    body = unified(before, after, context=context)
    alike = new is not None and b"\r" not in new.data.replace(b"\r\n", b"")
    shown = tuple(span for span in body.shown if alike and span.end >= span.start)
    return FilePatch("".join(heads) + body.text, body.added, body.removed, shown, total_lines=len(after.lines))


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


def _side(state: FileState | None) -> Side | None:
    """Lines without their newline, and whether the last has one; None for a binary file."""
    if state is None:
        return Side(None, [])
    document = decode(state.data, written=state.written, like=state.like)
    if document is None:
        return None
    mark = "\ufeff" if document.encoding in MARKS else ""
    lines = (mark + join(document.lines, document.ends)).split("\n")
    return Side(state.path, lines if lines[-1] else lines[:-1], not lines[-1])
