"""What a session that begins must know: what is where, what to read first, who works on what, what it has open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Final

from msgspec import Meta

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.operation import Operation
from orchestrator.api.session_operations import LeaseInfo, OwnChange, PendingEdit, RecentRead, TaskInfo
from orchestrator.core.errors import escaped, plural

BRIEFING_TOKENS: Final = 2000
BRIEFING_URI: Final = "orchestrator://briefing"
"""The same text as an MCP resource."""


class GetBriefing(p.Params, frozen=True):
    max_tokens: Annotated[int, Meta(description="Token budget.", ge=200, le=50_000)] = BRIEFING_TOKENS


class FolderFiles(r.Result, frozen=True, kw_only=True):
    path: str
    files: int  # with those in the folders below it


class BriefedFile(r.Result, frozen=True, kw_only=True):
    """The beginning of a document that says what the workspace is, or how to work in it."""

    path: str
    version_id: str
    end: int  # the last line that is shown
    total_lines: int
    convention: bool = False  # it speaks to agents; untrusted, as all content of the workspace
    text: str  # numbered


class OtherSession(r.Result, frozen=True, kw_only=True):
    """Another open session that has a task, or changed files."""

    agent: str
    asserted: bool = False
    session: str
    tasks: tuple[TaskInfo, ...] = ()
    changed: tuple[str, ...] = ()  # newest first, as far as the caller may know of them


class LeftOut(r.Result, frozen=True, kw_only=True):
    what: str
    next: str  # the call that shows it


class Briefing(r.Result, frozen=True, kw_only=True):
    workspace: str
    session: str
    head: str
    files: int
    folders: tuple[FolderFiles, ...] = ()
    documents: tuple[BriefedFile, ...] = ()
    others: tuple[OtherSession, ...] = ()
    leases: tuple[LeaseInfo, ...] = ()
    tasks: tuple[TaskInfo, ...] = ()  # this and what follows: the caller's own
    pending: tuple[PendingEdit, ...] = ()
    uncommitted_changes: tuple[OwnChange, ...] = ()
    recent_reads: tuple[RecentRead, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    redactions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notices: tuple[r.Notice, ...] = ()


GET_BRIEFING = Operation(
    "get_briefing",
    GetBriefing,
    Briefing,
    "Begin here: folders, first documents, who works on what, your open work.",
    core=True,
    command="briefing",
)


# --- as text ----------------------------------------------------------------------------


def briefing_head(result: Briefing) -> str:
    """What it is about, on one line."""
    return f"{escaped(result.workspace)} at {result.head}: {plural(result.files, 'file')}"


def briefing_rows(result: Briefing) -> Iterator[str]:
    """Its parts, each under a heading; lines of documents are numbered, so none of them can pass for a heading."""
    yield from _part("folders, and the files in them and below", map(folder_row, result.folders))
    for document in result.documents:
        yield ""
        yield document_row(document)
        yield from document.text.removesuffix("\n").split("\n")
    yield from _part("other sessions", map(other_row, result.others))
    yield from _part("leases", map(lease_row, result.leases))
    yield from _part("your tasks", map(task_row, result.tasks))
    yield from _part("your changes that wait", map(pending_row, result.pending))
    yield from _part("your changes, newest first", map(change_row, result.uncommitted_changes))
    yield from _part("what you have read, newest first", map(read_row, result.recent_reads))


def _part(title: str, rows: Iterable[str]) -> Iterator[str]:
    first = next(rows := iter(rows), None)
    if first is not None:
        yield from ("", f"# {title}", first)
        yield from rows


def folder_row(folder: FolderFiles) -> str:
    """A folder by its own name, under the one that it is in."""
    return f"{'  ' * folder.path.count('/')}{escaped(folder.path.rpartition('/')[2])}/ {folder.files}"


def document_row(document: BriefedFile) -> str:
    """The heading of a document."""
    lines = f"lines 1-{document.end} of {document.total_lines}"
    kind = ": conventions found in the workspace, not verified by anybody" if document.convention else ""
    return f"# {escaped(document.path)} {document.version_id}, {lines}{kind}"


def other_row(other: OtherSession) -> str:
    """Who, what for, and where."""
    who = f"{escaped(other.agent)}{' (name not proven)' if other.asserted else ''}"
    parts = [f"task {task_row(task)}" for task in other.tasks]
    if other.changed:
        parts.append(f"changed {', '.join(map(escaped, other.changed))}")
    return f"{who}: {'; '.join(parts)}"


def lease_row(lease: LeaseInfo) -> str:
    """What is reserved, by whom, and why."""
    globs = ", ".join(map(escaped, lease.globs)) or "paths that are not shown"
    reason = f": {escaped(lease.reason)}" if lease.reason else ""
    return f"{lease.lease} {lease.mode} {globs}, by {escaped(lease.agent)}{reason}"


def task_row(task: TaskInfo) -> str:
    """A task by its id and title."""
    return f"{task.task} {escaped(task.title)}"


def pending_row(edit: PendingEdit) -> str:
    """What waits, and for what."""
    return f"{edit.id} {edit.kind}: {escaped(edit.path)}"


def change_row(change: OwnChange) -> str:
    """A change by its id, and the files that it changed."""
    return f"{change.change} {change.operation}: {', '.join(map(escaped, change.paths))}"


def read_row(read: RecentRead) -> str:
    """A file that was read; whether others changed it since."""
    lines = f", lines {read.lines}" if read.lines else ""
    return f"{escaped(read.path)} {read.version_id}{lines}{': changed since by others' if read.stale else ''}"
