"""What sessions have read, changed and work on: status, tasks, reserved paths, and reads that are stale by now."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.operation import PATHS, SHORT_BYTES, Operation
from orchestrator.core import errors as e
from orchestrator.core.errors import escaped, plural
from orchestrator.core.events.sessions import LeaseMode

LeaseStatus = Literal["granted", "renewed", "clash", "released", "ended"]


class RecentRead(r.Result, frozen=True, kw_only=True):
    path: str
    version_id: str
    lines: str = ""  # "1-80, 120-140"
    stale: bool = False  # others changed what this session saw of it, as `stale` below shows in full; or it is gone


class PendingEdit(r.Result, frozen=True, kw_only=True):
    id: str
    kind: Literal["approval", "conflict"]
    path: str
    since: int


class OwnChange(r.Result, frozen=True, kw_only=True):
    change: str
    version_id: str
    operation: str
    paths: tuple[str, ...] = ()
    at: int


class TaskInfo(r.Result, frozen=True, kw_only=True):
    task: str
    title: str = ""
    session: str
    agent: str = ""
    since: int


class LeaseInfo(r.Result, frozen=True, kw_only=True):
    """A lease that holds."""

    lease: str
    agent: str
    session: str | None = None
    globs: tuple[str, ...] = ()
    mode: LeaseMode
    since: int
    expires_at: int
    task: str | None = None
    reason: str = ""


class BudgetInfo(r.Result, frozen=True, kw_only=True):
    """What the policy lets the caller take in this session, or in a day (in UTC)."""

    budget: Literal["tokens", "bytes", "calls"]
    period: Literal["session", "day"]
    most: int
    used: int = 0
    left: int = 0
    resets_at: int | None = None


class SessionInfo(r.Result, frozen=True, kw_only=True):
    session: str
    agent: str
    agent_class: str
    asserted: bool = False
    workspace: str
    head: str
    recent_reads: tuple[RecentRead, ...] = ()
    pending: tuple[PendingEdit, ...] = ()
    uncommitted_changes: tuple[OwnChange, ...] = ()
    tasks: tuple[TaskInfo, ...] = ()
    leases: tuple[LeaseInfo, ...] = ()  # the agent's own, and others' on files that this session has seen
    stale: tuple[r.Notice, ...] = ()  # what others changed of what it has read, with or without an earlier notice
    budgets: tuple[BudgetInfo, ...] = ()
    start_here: tuple[str, ...] = ()  # entrypoint documents that this session has not read


SESSION_STATUS = Operation(
    "session_status",
    p.Params,
    SessionInfo,
    "What this session read (stale reads marked), changed and works on, and what waits.",
    most_bytes=SHORT_BYTES,
    core=True,
    inline=True,
    unmetered=True,
    command="session",
)


class BeginTask(p.Params, frozen=True):
    title: Annotated[str, Meta(description="What you set out to do.", min_length=1, max_length=500)]
    request_id: p.RequestId = None


class EndTask(p.Params, frozen=True):
    task: Annotated[p.Version, Meta(description="'@N' of the task.")]
    outcome: Annotated[str, Meta(description="What came of it.", max_length=2000)] = ""
    request_id: p.RequestId = None


class TaskAnswer(r.Result, frozen=True, kw_only=True):
    task: str
    title: str = ""
    ended: bool = False


BEGIN_TASK = Operation(
    "begin_task",
    BeginTask,
    TaskAnswer,
    "Say what you work on; your changes carry the task until it ends.",
    writes=True,
    inline=True,
)

END_TASK = Operation(
    "end_task",
    EndTask,
    TaskAnswer,
    "Say that a task is over, and what came of it.",
    writes=True,
    unmetered=True,
    inline=True,
    raises=(e.VersionUnknown,),
)


class ReservePaths(p.Params, frozen=True):
    globs: Annotated[
        tuple[p.GlobText, ...],
        Meta(
            description="gitignore-style: 'src/api' and all in it, '/a.py' in the root only, '*.sql' at any depth, "
            "'!x' excepts.",
            min_length=1,
            max_length=p.MOST_ENTRIES,
        ),
    ]
    ttl_s: Annotated[
        int,
        Meta(description="Seconds; the same call again renews it.", ge=1, le=30 * 86_400),
    ] = 600
    mode: Annotated[
        LeaseMode,
        Meta(description="exclusive: you alone change them; shared: nobody may have them exclusively."),
    ] = "exclusive"
    reason: p.Reason = ""
    request_id: p.RequestId = None


class ReleasePaths(p.Params, frozen=True):
    lease: Annotated[p.Version, Meta(description="'@N' of the lease.")]
    request_id: p.RequestId = None


class LeaseAnswer(r.Result, frozen=True, kw_only=True):
    """`lease` is null with status `clash`: nothing was reserved, and `clashes` says who is there."""

    status: LeaseStatus
    message: str
    lease: str | None = None
    fencing: int | None = None  # grows with each lease; of two on one path, the higher is the later
    expires_at: int | None = None
    mode: LeaseMode | None = None
    globs: tuple[str, ...] = ()
    clashes: tuple[LeaseInfo, ...] = ()


RESERVE_PATHS = Operation(
    "reserve_paths",
    ReservePaths,
    LeaseAnswer,
    "Say where you work for a while, so that others keep away: a lease on paths. Others' changes there are "
    "warned, refused, queued or merged, as policy says. Where others were first: status clash, no lease.",
    writes=True,
    weight="tree",
    raises=(e.PathReserved, e.ParameterInvalid, e.RequestIdReused),
    command="lease reserve",
)

RELEASE_PATHS = Operation(
    "release_paths",
    ReleasePaths,
    LeaseAnswer,
    "Give a lease back before its time is over.",
    writes=True,
    unmetered=True,
    raises=(e.VersionUnknown, e.NotPermitted, e.RequestIdReused),
    command="lease release",
)


class StaleReaders(p.Params, frozen=True):
    path: p.PathText
    limit: Annotated[int, Meta(ge=1, le=200, description="Most sessions in one answer.")] = 20


class StaleReader(r.Result, frozen=True, kw_only=True):
    """One session whose view of the file is out of date."""

    agent: str | None = None
    session: str
    open: bool = False  # false: it ended, and may be resumed
    version_id: str  # the newest version that it saw
    lines: tuple[r.NoticeLines, ...] = ()  # that it saw, and that are otherwise now
    by: tuple[str, ...] = ()
    since: str


class StaleReadersAnswer(r.Result, frozen=True, kw_only=True):
    path: str
    version_id: str | None = None  # null: it is absent
    readers: tuple[StaleReader, ...] = ()
    total: int  # of those whose view is stale; some may not be listed


def notice_text(notice: r.Notice) -> str:
    """A notice in one line, without the diff; the last one says what its answer leaves out."""
    text = _of_file(notice)
    if notice.more_files:
        files = plural(notice.more_files, "more file")
        text += f"; others changed {files} that you read: session_status lists what is stale"
    return text


def _of_file(notice: r.Notice) -> str:
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


def _span(lines: r.NoticeLines) -> str:
    seen = seen_span(lines)
    if lines.now_start is None or lines.now_end is None:
        return f"{seen} of {lines.seen_in}"
    now = _lines(lines.now_start, lines.now_end) if lines.now_end >= lines.now_start else "gone"
    return f"{seen} of {lines.seen_in} (now {now})"


def seen_span(lines: r.NoticeLines) -> str:
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
    opens_session=False,
    raises=(*PATHS, e.Denied, e.ApprovalRequired),
    command="readers",
)
