"""Read sets: who holds a stale view of a file; and a notice as one line of text."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from orchestrator.api.operation import PATHS, Operation
from orchestrator.api.parameters import Params
from orchestrator.api.results import Notice, NoticeLines, Result
from orchestrator.core import errors as e
from orchestrator.core.errors import escaped


class StaleReaders(Params, frozen=True, kw_only=True):
    path: Annotated[str, Meta(description="Path from the workspace's root, with '/'.")]
    limit: Annotated[int, Meta(ge=1, le=200, description="At most so many sessions.")] = 20


class StaleReader(Result, frozen=True, kw_only=True):
    """One session whose view of the file is out of date."""

    agent: str | None
    session: str
    open: bool  # false: it ended, and may be resumed
    version_id: str  # the newest version that it saw
    lines: tuple[NoticeLines, ...]  # that it saw, and that are otherwise now
    changes: int  # by others, since the oldest version that it still counts on
    by: tuple[str, ...]
    since: str


class StaleReadersAnswer(Result, frozen=True, kw_only=True):
    path: str
    version_id: str | None  # null: nothing stands there
    readers: tuple[StaleReader, ...]
    total: int  # of those whose view is stale; some may not be listed


def told(notice: Notice) -> str:
    """A notice in one line, without the diff."""
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
    return f"{path}: lines that you read were changed {how}: {spans}; it is at {notice.version_id} now"


def _span(lines: NoticeLines) -> str:
    seen = _lines(lines.start, lines.end)
    if lines.now_start is None or lines.now_end is None:
        return f"{seen} of {lines.seen_in}"
    now = _lines(lines.now_start, lines.now_end) if lines.now_end >= lines.now_start else "gone"
    return f"{seen} of {lines.seen_in} (now {now})"


def _lines(start: int, end: int) -> str:
    return str(start) if start == end else f"{start}-{end}"


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="stale_readers",
        params=StaleReaders,
        result=StaleReadersAnswer,
        summary="Who holds a stale view of a file: sessions that read lines of it which others changed since, with "
        "the version and the lines that each one saw.",
        raises=(*PATHS, e.Denied),
    ),
)
