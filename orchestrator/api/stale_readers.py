"""Read sets: which sessions read lines that changed since; and a notice as one line of text."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from orchestrator.api.operation import PATHS, Operation
from orchestrator.api.parameters import Params, PathText
from orchestrator.api.results import Notice, NoticeLines, Result
from orchestrator.core import errors as e
from orchestrator.core.errors import escaped, plural


class StaleReaders(Params, frozen=True):
    path: PathText
    limit: Annotated[int, Meta(ge=1, le=200, description="Most sessions in one answer.")] = 20


class StaleReader(Result, frozen=True, kw_only=True):
    """One session whose view of the file is out of date."""

    agent: str | None = None
    session: str
    open: bool = False  # false: it ended, and may be resumed
    version_id: str  # the newest version that it saw
    lines: tuple[NoticeLines, ...] = ()  # that it saw, and that are otherwise now
    changes: int  # by others, since the oldest version that it still counts on
    by: tuple[str, ...] = ()
    since: str


class StaleReadersAnswer(Result, frozen=True, kw_only=True):
    path: str
    version_id: str | None = None  # null: it is absent
    readers: tuple[StaleReader, ...] = ()
    total: int  # of those whose view is stale; some may not be listed


def notice_text(notice: Notice) -> str:
    """A notice in one line, without the diff; the last one says what its answer leaves out."""
    text = _of_file(notice)
    if notice.more_files:
        files = plural(notice.more_files, "more file")
        text += f"; others changed {files} that you read: session_status lists what is stale"
    return text


def _of_file(notice: Notice) -> str:
    path, by = escaped(notice.path), ", ".join(map(escaped, notice.by))
    how = f"by {by} since {notice.since}"
    if notice.kind == "deleted":
        return f"{path}, which you read, was deleted {how}"
    spans = ", ".join(_span(lines) for lines in notice.lines)
    if notice.more_lines:
        spans += f" and {notice.more_lines} more places"
    if notice.kind == "moved":
        moved = f"{escaped(notice.moved_from or '?')}, which you read, was moved to {path} {how}"
        return f"{moved}; changed: {spans}" if spans else moved
    added = bool(notice.lines) and all(lines.added for lines in notice.lines)
    what = "lines were added to what you read" if added else "lines that you read were changed"
    return f"{path}: {what} {how}: {spans}; it is at {notice.version_id} now"


def _span(lines: NoticeLines) -> str:
    seen = seen_span(lines)
    if lines.now_start is None or lines.now_end is None:
        return f"{seen} of {lines.seen_in}"
    now = _lines(lines.now_start, lines.now_end) if lines.now_end >= lines.now_start else "gone"
    return f"{seen} of {lines.seen_in} (now {now})"


def seen_span(lines: NoticeLines) -> str:
    """The lines as they were seen; of two that others were added to, the place between them."""
    return f"between {lines.start} and {lines.end}" if lines.added else _lines(lines.start, lines.end)


def _lines(start: int, end: int) -> str:
    return str(start) if start == end else f"{start}-{end}"


STALE_READERS = Operation(
    "stale_readers",
    StaleReaders,
    StaleReadersAnswer,
    "Sessions that read lines of a file which others have changed since, with "
    "the version and the lines that each one saw.",
    raises=(*PATHS, e.Denied, e.ApprovalRequired),
    command="readers",
)
