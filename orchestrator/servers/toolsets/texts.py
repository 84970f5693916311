"""What several sets show alike: file texts, listings of every page, sizes and times in words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

from orchestrator.api.operations import FILE_INFO, FIND_FILES, LIST_FILES, READ_FILE
from orchestrator.api.parameters import FAR
from orchestrator.api.results import Entry, FileFacts, FileText, Listing
from orchestrator.core.text.answer_space import UNBOUNDED, AnswerSpace, size
from orchestrator.servers.toolsets.tool import Calls

MOST_TOKENS = 200_000
PAGE = 5000
_UNITS = ("B", "KB", "MB", "GB", "TB")
CUT_BYTES = 400
"""For the note on what was left out."""


async def text_of(calls: Calls, path: str, start: int = 1, end: int | None = None) -> FileText:
    """Lines of a file without numbers, as many as the answer has room for."""
    last = FAR if end is None else end  # all that is there, not a summary of it
    return await calls.make(
        READ_FILE, path=path, start=start, end=last, line_numbers=False, max_tokens=MOST_TOKENS, delta=False
    )


def cut_note(shown: FileText, *, end: int | None = None, how: str = "") -> tuple[str, ...]:
    """What a text leaves out of what was asked for, and what was put in place of secrets."""
    total = shown.total_lines
    wanted = shown.end + bool(shown.next) if total is None else total
    notes = list(shown.warnings)
    if shown.end < (wanted if end is None else min(end, wanted)):
        of = f" of {total}" if total is not None else ""
        notes.append(f"[cut: lines {shown.start}-{shown.end}{of} are shown{how}]")
    elif shown.truncated:
        notes.append("[some long lines were shortened]")
    if shown.redactions:
        notes.append(f"[redacted: {', '.join(shown.redactions)}]")
    return tuple(notes)


async def facts(calls: Calls, path: str) -> FileFacts:
    """What is known of a path; of an absent one that it is."""
    return await calls.make(FILE_INFO, path=path)


async def entries(  # a listing's own
    calls: Calls,
    path: str,
    *,
    globs: tuple[str, ...] = (),
    recursive: bool = False,
    max_depth: int | None = None,
    hidden: bool = True,
) -> AsyncIterator[Entry]:
    """Every entry below a directory, page by page."""
    cursor: str | None = None
    while True:
        page: Listing = await calls.make(
            LIST_FILES,
            room=UNBOUNDED,
            path=path,
            globs=globs,
            recursive=recursive,
            max_depth=max_depth,
            include_hidden=hidden,
            limit=PAGE,
            cursor=cursor,
        )
        for entry in page.entries:
            yield entry
        cursor = page.cursor
        if cursor is None:
            return


async def found(calls: Calls, path: str, glob: str, *, recursive: bool) -> AsyncIterator[Entry]:
    """Every file below a directory that a glob names, page by page."""
    cursor: str | None = None
    while True:
        page: Listing = await calls.make(
            FIND_FILES, room=UNBOUNDED, path=path, glob=glob, recursive=recursive, limit=PAGE, cursor=cursor
        )
        for entry in page.entries:
            yield entry
        cursor = page.cursor
        if cursor is None:
            return


class Rows:
    """Lines of an answer, as many as it has room for."""

    def __init__(self, room: AnswerSpace) -> None:
        self._room, self.rows, self.left_out = room.less(CUT_BYTES), list[str](), 0

    def add(self, row: str) -> bool:
        """False: it had no room."""
        bigger = self._room.less(size(row) + 2, 1)
        if not bigger.bytes or not bigger.lines:
            self.left_out += 1
            return False
        self._room = bigger
        self.rows.append(row)
        return True

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out."""
        if not self.left_out:
            return ()
        return (f"[cut: {len(self.rows)} lines are shown, and more is there; name a directory further down]",)


def human_size(count: int, *, digits: int = 2) -> str:
    """A number of bytes in the largest fitting unit of 1024."""
    value, unit = float(max(count, 0)), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{int(value)} B" if unit == 0 else f"{value:.{digits}f} {_UNITS[unit]}"


def moment(ms: int) -> datetime:
    """Milliseconds since the epoch as a time in UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC)
