"""What several sets show alike: file texts, listings of every page, sizes and times in words."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

import msgspec

from orchestrator.api.operations import FILE_INFO, FIND_FILES, GET_DIFF, LIST_FILES, READ_FILE
from orchestrator.api.results import ChangeAnswer, Entry, FileFacts, FileText, FileVersion, Listing
from orchestrator.core.errors import BinaryFile, OrchestratorError
from orchestrator.core.text.answer_space import UNBOUNDED, AnswerSpace, size
from orchestrator.servers.callable_hints import callable_hint
from orchestrator.servers.toolsets.tool import Calls, sentence

MOST_TOKENS = 200_000
PAGE = 5000
MOST_VERSIONS = 500
_UNITS = ("B", "KB", "MB", "GB", "TB")
CUT_BYTES = 400
"""For the note on what was left out."""


async def text_of(
    calls: Calls, path: str, start: int = 1, end: int | None = None, *, room: AnswerSpace | None = None
) -> FileText:
    """Lines of a file, all of them and without numbers, as many as the answer has room for.

    As the agent's profile says, a summary of a file that is too large to be read at once.
    """
    shown = await calls.make(
        READ_FILE,
        room=room,
        path=path,
        start=start,
        end=end,
        line_numbers=False,
        max_tokens=MOST_TOKENS,
        delta=False,
    )
    if shown.image is not None:
        raise BinaryFile(shown.path, "it is an image")
    warnings = (callable_hint(warning, calls.names) for warning in shown.warnings) if shown.summary else shown.warnings
    return msgspec.structs.replace(shown, warnings=tuple(warnings))


def cut_note(shown: FileText, *, end: int | None = None, how: str = "") -> tuple[str, ...]:
    """What a text leaves out of what was asked for, and what was put in place of secrets."""
    total = shown.total_lines
    wanted = shown.end + bool(shown.next) if total is None else total
    notes = list(shown.warnings)
    if not shown.summary and shown.end < (wanted if end is None else min(end, wanted)):
        of = f" of {total}" if total is not None else ""
        notes.append(f"[cut: lines {shown.start}-{shown.end}{of} are shown{how}]")
    elif shown.truncated and not shown.summary:
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


async def change_diff(
    calls: Calls, answer: ChangeAnswer, around: int = 3, *, room: AnswerSpace | None = None
) -> tuple[str, list[str]]:
    """The lines that a change made different. That it can't be shown does not undo the change."""
    before = answer.paths[0].before if answer.paths else None
    if answer.status == "preview" or before is None:
        return answer.diff or "", [f"[{answer.diff_rest}]"] if answer.diff_truncated else []
    try:
        shown = await calls.make(
            GET_DIFF,
            room=room,
            path=answer.paths[0].path,
            to=answer.paths[0].after,
            context_lines=around,
            from_=before,
        )
    except OrchestratorError as error:
        return "", [f"[the change is made; its diff is not shown: {sentence(error)}]"]
    return shown.diff, [f"[the change is made; the rest of its diff: {shown.next}]"] if shown.next else []


def last_own(versions: Sequence[FileVersion], session: str) -> str | None:
    """The newest change of this session that is not undone yet, and undoes none itself."""
    undone = {change for version in versions for change in version.reverts}
    for version in versions:
        own = version.session == session and version.change is not None and not version.reverts
        if own and version.change not in undone:
            return version.change
    return None


def escaped_glob(path: str) -> str:
    """A glob that names this path alone."""
    return re.sub(r"([\\*?\[\]])", r"\\\1", path)


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
