"""One file's way from one state to another, as a patch with git's headers; and all of it for who decides on it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from orchestrator.core.content import LineHunk, digest_of
from orchestrator.core.text.answer_space import UNBOUNDED, AnswerSpace
from orchestrator.core.text.charsets import MARKS
from orchestrator.core.text.encoding import Document, decode
from orchestrator.core.text.lines import join
from orchestrator.core.text.unified_diff import Side, UnifiedDiff, ended, quoted, unified

EVERY_LINE = 1 << 40
"""Of context: more than a file has."""


class FileState(msgspec.Struct, frozen=True):
    """A file at one moment."""

    path: str
    data: bytes
    mode: int  # permission bits
    written: str | None = None  # its encoding, where that is known, ...
    like: str | None = None  # ... or that of another version
    shown: Document | None = None  # its text as it is shown, where something is hidden


class FilePatch(UnifiedDiff, frozen=True):
    """How one file became another.

    `text` is for `git apply` (binary files: a note, as from git without `--binary`). Its lines
    keep a carriage return and a byte order mark, as git's do. `shown` is empty where lines can't be counted in the
    way that reads do.
    """

    binary: bool = False
    total_lines: int = 0


def file_patch(
    old: FileState | None,
    new: FileState | None,
    *,
    context: int = 3,
    compared: bool = True,
    room: AnswerSpace = UNBOUNDED,
) -> FilePatch:
    """The patch between two states of a file, None where it is absent on one side; two paths make it a rename.

    A file that is no valid UTF-8 is shown in its own encoding: to read, not to apply. Not `compared`: all lines of
    one, then all of the other. Cost: that of `diff`, or of a pass over both.
    """
    lines = [f"{head}\n" for head in heads(old, new)]
    if old is not None and new is not None and old.data == new.data:
        return FilePatch("".join(lines) if len(lines) > 1 else "")
    before, after = _side(old), _side(new)
    if before is None or after is None:
        names = [quoted(f"{side}/{state.path}") if state else "/dev/null" for side, state in (("a", old), ("b", new))]
        return FilePatch(f"{''.join(lines)}Binary files {names[0]} and {names[1]} differ\n", binary=True)
    hunks = None
    if not compared:
        before, after = (Side(side.path, ended(side)) for side in (before, after))
        hunks = [LineHunk(0, len(before.lines), 0, len(after.lines))]
    body = unified(before, after, context=context, hunks=hunks, room=room)
    alike = new is not None and b"\r" not in new.data.replace(b"\r\n", b"")
    shown = tuple(span for span in body.shown if alike and span.end >= span.start)
    text = "".join(lines) + body.text
    return FilePatch(text, body.added, body.removed, shown, body.goes_on, total_lines=len(after.lines))


def heads(old: FileState | None, new: FileState | None) -> Iterator[str]:
    """The first has the names; more follow where something happened besides the lines."""
    names = [state.path for state in (old, new) if state is not None]
    yield f"diff --git {quoted(f'a/{names[0]}')} {quoted(f'b/{names[-1]}')}"
    if old is None and new is not None:
        yield f"new file mode {git_mode(new)}"
    elif new is None and old is not None:
        yield f"deleted file mode {git_mode(old)}"
    elif old is not None and new is not None:
        if git_mode(old) != git_mode(new):
            yield f"old mode {git_mode(old)}"
            yield f"new mode {git_mode(new)}"
        if old.path != new.path:
            yield f"rename from {quoted(old.path)}"
            yield f"rename to {quoted(new.path)}"


def git_mode(state: FileState) -> str:
    """Git knows whether the owner may execute a file, and no more."""
    return "100755" if state.mode & 0o100 else "100644"


def _side(state: FileState | None) -> Side | None:
    """Lines without their newline, and whether the last has one; None for a binary file."""
    if state is None:
        return Side(None, [])
    document = state.shown or decode(state.data, written=state.written, like=state.like)
    if document is None:
        return None
    mark = "\ufeff" if document.encoding in MARKS else ""
    lines = (mark + join(document.lines, document.ends)).split("\n")
    return Side(state.path, lines if lines[-1] else lines[:-1], not lines[-1])


def whole_patch(old: FileState | None, new: FileState | None, *, compared: bool = True) -> str:
    """How one state of a file becomes another, None where it is absent; never cut, and never empty.

    A file that moves comes with all of its lines: where it comes to lie they may mean more than where they were.
    Rows beginning with `# ` are no lines of the file: permission bits that git does not tell apart, and sizes and
    hashes where no lines show how the contents differ (binary files, encodings). Cost: as of `file_patch`.
    """
    moved = old is not None and new is not None and old.path != new.path
    patch = file_patch(old, new, compared=compared, context=EVERY_LINE if moved else 3)
    before, after = (state.data if state is not None else b"" for state in (old, new))
    unshown = before != after and not patch.added and not patch.removed
    text = patch.text or f"{next(heads(old, new))}\n"
    if moved and old is not None and new is not None and before == after:
        side = _side(new)
        unshown = side is None
        if side is not None and side.lines:  # all of them, in a hunk that changes none
            text += unified(side._replace(path=old.path), side, context=EVERY_LINE, hunks=[LineHunk(0, 0, 0, 0)]).text
    notes = [*_modes(old, new), *(_contents(old, new) if patch.binary or unshown else ())]
    return text + "".join(f"# {note}\n" for note in notes)


def _modes(old: FileState | None, new: FileState | None) -> Iterator[str]:
    """The permission bits of what is there after, where git's patch leaves them open."""
    if new is None or (old is not None and old.mode == new.mode):
        return
    if old is not None and git_mode(old) == git_mode(new):
        yield f"mode {old.mode:04o} becomes {new.mode:04o}"
    elif new.mode not in (0o644, 0o755):
        yield f"mode {new.mode:04o}"


def _contents(old: FileState | None, new: FileState | None) -> Iterator[str]:
    for name, state in (("before", old), ("after", new)):
        yield f"{name}: {f'{len(state.data)} bytes, {digest_of(state.data)}' if state is not None else 'no file'}"
