"""What operations answer. `@N` strings throughout; sizes in bytes, times in ms since the epoch."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from orchestrator.core.errors import plural

ChangeStatus = Literal[
    "applied", "preview", "waiting", "conflict", "denied", "expired", "dropped", "diverged", "still_waiting"
]

DifferenceKind = Literal["content", "mode", "missing", "extra", "kind", "unreadable", "lost", "history"]


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The base of all answers. A member at its default is left out: no answer holds null, false or what is empty."""


class Lines(Result, frozen=True, kw_only=True):
    """1-based lines, ends included (end < start: nothing there any more)."""

    start: int
    end: int


class NoticeLines(Result, frozen=True, kw_only=True):
    """Lines that the session saw in version `seen_in`, and those in their place now (end < start: none).

    `added`: the lines `start` and `end` are unchanged, those from `now_start` on were inserted between them.
    """

    seen_in: str
    start: int
    end: int
    now_start: int | None = None  # null: the file is gone, or its content is not shown to the caller
    now_end: int | None = None
    added: bool = False


class Notice(Result, frozen=True, kw_only=True):
    """Somebody else changed what this session has read. Told once for each change; read the file to see it whole."""

    path: str
    kind: Literal["changed", "deleted", "moved"]
    by: tuple[str, ...] = ()  # agents, or "outside", the one who touched the lines first before the others
    since: str  # the first change that touched them
    changes: int  # by others to the file, since this session saw it
    version_id: str | None = None  # of what is there now; null: nothing
    moved_from: str | None = None
    lines: tuple[NoticeLines, ...] = ()
    more_lines: int = 0  # further pieces, that are not listed
    diff: str | None = None  # of these lines only, a few of them
    diff_truncated: bool = False
    more_files: int = 0  # on the last notice of an answer: files that others changed too, which it leaves out


class UnseenText(NoticeLines, frozen=True, kw_only=True):
    """Lines that the author of a change had read, and that others had changed when it was decided; at most 20."""

    path: str
    by: tuple[str, ...] = ()
    since: str


class ChangedPath(Result, frozen=True, kw_only=True):
    path: str
    before: str | None = None  # version_id, null: was absent
    after: str | None = None  # version_id, null: is absent now, or not applied
    written: tuple[Lines, ...] = ()  # the lines of `after` that the change wrote


class RegionLines(Result, frozen=True, kw_only=True):
    """One place of a merge or conflict on each side. Lines [first, last] from 1; last < first: none there."""

    base: tuple[int, int]
    current: tuple[int, int]
    proposed: tuple[int, int]


class MergeText(RegionLines, frozen=True, kw_only=True):
    """One place where a change met what others had done."""

    path: str
    lines: tuple[int, int]  # in the file as it is now
    rule: str
    why: str


class ChangeAnswer(Result, frozen=True, kw_only=True):
    status: ChangeStatus
    success: bool = False  # true for `applied` and `preview`
    message: str
    would_be: str | None = None
    conflict: str | None = None
    diff: str | None = None  # of an applied change only where the result is not what the caller sent
    diff_truncated: bool = False
    added: int = 0  # lines, of an applied change
    removed: int = 0
    version_id: str | None = None
    change: str | None = None
    paths: tuple[ChangedPath, ...] = ()
    rung: str | None = None
    score: float | None = None  # 0.0-1.0, of a passage that was found again by likeness
    base: str | None = None
    same_symbol: tuple[str, ...] = ()
    approval: str | None = None
    regions: tuple[RegionLines, ...] = ()
    merge: tuple[MergeText, ...] = ()  # of a merge: each place, the rule that brought it together, and why
    merge_truncated: bool = False
    notices: tuple[Notice, ...] = ()
    warnings: tuple[str, ...] = ()
    unseen: tuple[UnseenText, ...] = ()  # what others did to lines that its author had read and not seen since
    shown: str | None = None  # current lines of a conflict; over MCP a second text block
    form: str | None = None  # of apply_patch's own answer: as what the patch was read


class Entry(Result, frozen=True, kw_only=True):
    """One name in a listing."""

    type: Literal["FileEntry", "DirectoryEntry", "SymbolicLinkEntry", "OtherEntry"] = msgspec.field(name="@type")
    name: str
    path: str
    size: int | None = None  # left out where the content may not be shown
    last_modified: int = msgspec.field(name="lastModified")
    target: str | None = None
    version_id: str | None = None
    tags: tuple[str, ...] = ()
    sensitivity: str | None = None


class FileFacts(Result, frozen=True, kw_only=True):
    """An entry, and what is known of its content; of an absent path only the path."""

    path: str
    exists: bool = False
    type: str | None = msgspec.field(default=None, name="@type")
    name: str | None = None
    size: int | None = None
    last_modified: int | None = msgspec.field(default=None, name="lastModified")
    target: str | None = None
    mode: str | None = None  # octal, e.g. "0644"
    encoding: str | None = None
    eol: str | None = None
    line_count: int | None = None
    is_binary: bool = False
    content_hash: str | None = None
    tags: tuple[str, ...] = ()
    sensitivity: str | None = None
    version_id: str | None = None
    last_change: str | None = None  # the change that gave it its content, if one did
    reads: int = 0  # how often its content was shown


class Listing(Result, frozen=True, kw_only=True):
    path: str
    entries: tuple[Entry, ...] = ()
    total: int
    truncated: bool = False
    cursor: str | None = None


class Submatch(Result, frozen=True, kw_only=True):
    start: int  # characters in `text`, half-open
    end: int


class Hit(Result, frozen=True, kw_only=True):
    path: str
    line: int
    text: str = ""
    submatches: tuple[Submatch, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    context: str | None = None  # the symbol around it, once outlines are built
    score: float = 1.0


class SearchResult(Result, frozen=True, kw_only=True):
    hits: tuple[Hit, ...] = ()
    total: int  # matching lines in all files searched
    files_searched: int
    files_left_out: int  # kept out by policy
    truncated: bool = False
    partial: bool = False  # not every file could be searched (too large, changed meanwhile)
    cursor: str | None = None
    versions: dict[str, str] = {}  # path → version_id of each file with a hit
    warnings: tuple[str, ...] = ()


class FileText(Result, frozen=True, kw_only=True):
    path: str
    version_id: str  # `@0`: the content can't be noted now, and has no version; `warnings` say why
    start: int  # 1-based; 0 for an empty file
    end: int
    total_lines: int
    text: str = ""  # numbered when asked
    encoding: str
    eol: str
    content_hash: str
    truncated: bool = False
    cut: str | None = None  # what the client shows its model, where that is less than `max_tokens`
    next: str | None = None  # the exact call that goes on
    redactions: tuple[str, ...] = ()
    unchanged_since: str | None = None
    warnings: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()


class Authored(Result, frozen=True, kw_only=True):
    """When something was changed, by whom, and by what."""

    at: int
    agent: str | None = None  # "outside" where no agent is certain
    session: str | None = None
    task: str | None = None
    change: str | None = None  # null for what did not come through the daemon
    operation: str | None = None


class FileVersion(Authored, frozen=True, kw_only=True):
    version_id: str
    kind: str
    size: int | None = None
    hash: str | None = None
    approver: str | None = None
    reverts: tuple[str, ...] = ()  # changes that it undid, or the group that they are
    more_reverts: int = 0  # that it undid besides
    reason: str | None = None
    moved_from: str | None = None
    not_kept: bool = False  # its content, so that it can't be undone
    removed: bool = False  # the path is absent since


class History(Result, frozen=True, kw_only=True):
    path: str
    versions: tuple[FileVersion, ...] = ()
    cursor: str | None = None
    warnings: tuple[str, ...] = ()


FileStatus = Literal["added", "deleted", "modified", "renamed", "mode"]
LeftOut = Literal["policy", "not_kept", "too_large"]


class FileDiff(Result, frozen=True, kw_only=True):
    """One file in the diff of a tree. `mode`: only permission bits changed; git's patch knows but the executable bit.

    left_out: why its lines are not in `diff`. With `too_large`, `next` is the call that shows them.
    """

    path: str
    status: FileStatus
    moved_from: str | None = None
    added: int | None = None  # lines; null where they are left out or it is binary
    removed: int | None = None
    binary: bool = False
    mode_before: str | None = None  # octal, where the mode changed
    mode_after: str | None = None
    left_out: LeftOut | None = None
    next: str | None = None


class Diff(Result, frozen=True, kw_only=True):
    """Of one file, or of the tree: then path is `.`, and `files` says what is in `diff` and what was left out."""

    path: str
    from_version: str
    to_version: str
    diff: str = ""
    added: int  # of what `diff` shows
    removed: int
    next: str | None = None  # of one file, where the answer has no room for all: the call that shows the rest
    files: tuple[FileDiff, ...] = ()
    total_files: int | None = None  # of the tree: all that differ, on this page and others
    unlisted: int = 0  # of those: names that the caller may not see either
    cut: str | None = None  # what the client shows its model, where that is less than `max_tokens`
    cursor: str | None = None
    warnings: tuple[str, ...] = ()


class RecentRead(Result, frozen=True, kw_only=True):
    path: str
    version_id: str
    lines: str = ""  # "1-80, 120-140"
    stale: bool = False  # others changed what this session saw of it, as `stale` below shows in full; or it is gone


class PendingEdit(Result, frozen=True, kw_only=True):
    id: str
    kind: Literal["approval", "conflict"]
    path: str
    since: int


class OwnChange(Result, frozen=True, kw_only=True):
    change: str
    version_id: str
    operation: str
    paths: tuple[str, ...] = ()
    at: int


class TaskInfo(Result, frozen=True, kw_only=True):
    task: str
    title: str = ""
    session: str
    agent: str = ""
    since: int


class LeaseInfo(Result, frozen=True, kw_only=True):
    """A lease that holds."""

    lease: str
    agent: str
    session: str | None = None
    globs: tuple[str, ...] = ()
    mode: Literal["exclusive", "shared"]
    since: int
    expires_at: int
    task: str | None = None
    reason: str = ""


class SessionInfo(Result, frozen=True, kw_only=True):
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
    stale: tuple[
        Notice, ...
    ] = ()  # what others changed of what this session has read, with or without an earlier notice
    start_here: tuple[str, ...] = ()  # entrypoint documents that this session has not read
    next: str | None = None  # where the answer has no room for all: the call that shows the rest


class TaskAnswer(Result, frozen=True, kw_only=True):
    task: str
    title: str = ""
    ended: bool = False


class Party(Result, frozen=True, kw_only=True):
    """Whose side it is, and what for."""

    agent: str
    task: str = ""
    reason: str = ""


class ReviewLine(Result, frozen=True, kw_only=True):
    """One reviewer that was asked."""

    review: str
    reviewer: str
    state: Literal["requested", "answered", "failed", "accepted", "rejected"]
    deadline: int  # ms since the epoch
    verdict: str | None = None
    reason: str = ""  # the reviewer's
    model: str = ""
    code: str = ""  # why it failed
    message: str = ""  # the same in words; they may quote the file
    hint: str = ""  # what to do about it


class ConflictInfo(Result, frozen=True, kw_only=True):
    conflict: str
    path: str
    agent: str | None = None
    session: str | None = None
    task: str | None = None
    since: int
    operation: str
    reason: str = ""
    base_version: str | None = None
    current_version: str | None = None
    regions: tuple[RegionLines, ...] = ()
    base: str | None = None  # whole texts, where they are text and kept
    current: str | None = None
    proposed: str | None = None
    diff: str | None = None  # current → proposed
    diff_truncated: bool = False
    state: str = "found"  # found, requested, answered, accepted, rejected, edited, expired, superseded
    fits: bool = False  # newer changes took away what it clashed with
    same_symbol: tuple[str, ...] = ()  # why a change that would apply waits
    proposer: Party | None = None
    holders: tuple[Party, ...] = ()  # who made the lines that it conflicts with
    reviewer: str | None = None  # who is asked, or has answered
    deadline: int | None = None  # of the reviewer who is asked; ms since the epoch
    route: str | None = None
    reviews: tuple[ReviewLine, ...] = ()
    review_diff: str | None = None  # current → what the reviewer proposes
    review_diff_truncated: bool = False
    marked: str | None = None  # the whole file with diff3 markers where it clashes, to be edited
    texts_left_out: bool = False  # base, current, proposed and marked are over the budget: ask for it alone, with more
    regions_left_out: int = 0  # so many more regions
    moved_from: str | None = None  # where its file was until moved_at
    moved_at: str | None = None
    deleted_at: str | None = None  # its file was deleted then: the proposed side would bring it back


class Conflicts(Result, frozen=True, kw_only=True):
    conflicts: tuple[ConflictInfo, ...] = ()  # oldest first
    cursor: str | None = None


class EntryPath(Result, frozen=True, kw_only=True):
    """What an event did to a file: versions before and after; hashes only of what the caller may read."""

    path: str
    before: str | None = None
    after: str | None = None
    before_hash: str | None = None
    after_hash: str | None = None
    moved_from: str | None = None


class StoredEvent(Result, frozen=True, kw_only=True):
    """An event as a caller may see it: without hashes of what it may not read."""

    seq: str
    at: int
    kind: str
    stream: str
    agent: str | None = None
    session: str | None = None
    event: dict[str, Any]


class JournalEntry(StoredEvent, frozen=True, kw_only=True):
    owner: str | None = None
    outcome: str | None = None
    operation: str | None = None
    arguments: dict[str, Any] | None = None  # of contents and patterns only the size; null: no call is known
    took_us: int | None = None  # from the call's start until this was in the journal
    tokens: int | None = None  # estimate of what a read's answer cost a model
    approval: str | None = None
    cause: str | None = None
    paths: tuple[EntryPath, ...] = ()


class JournalPage(Result, frozen=True, kw_only=True):
    entries: tuple[JournalEntry, ...] = ()
    cursor: str | None = None
    partial: bool = False  # the search stopped early: go on with `cursor`, even if there are no entries


class ApprovalInfo(Result, frozen=True, kw_only=True):
    """A change that waits. A list has its first paths and no diff, `approvals_show` the whole."""

    approval: str
    operation: str
    paths: tuple[str, ...] = ()
    path_count: int
    agent: str | None = None
    session: str | None = None
    since: int
    expires_at: int
    rule: str = ""
    reason: str = ""
    diff: str | None = None
    changed_since: tuple[str, ...] = ()  # of `paths`, those that others changed after the request


class Approvals(Result, frozen=True, kw_only=True):
    approvals: tuple[ApprovalInfo, ...] = ()  # oldest first
    total: int = 0
    cursor: str | None = None


class SessionLine(Result, frozen=True, kw_only=True):
    session: str
    agent: str
    agent_class: str
    asserted: bool = False
    client: str = ""
    open: bool = False


class Health(Result, frozen=True, kw_only=True):
    state: Literal["ok", "writes_stopped", "starting"]
    baseline: Literal["running", "done"]
    watching: str = "off"  # "live", "off", or "degraded: …" with the reason
    checked: str = ""  # since this start, chain and pages of the journal: "running", "@N" when they held, "failed: …"
    whole: str = ""  # the result of the last journal_verify since this start; empty: there was none
    notes: tuple[str, ...] = ()
    amiss: tuple[str, ...] = ()  # of the notes, those that a person must act on; `up` says them too
    recovered: int = 0  # changes closed by recovery at this start
    diverged: tuple[str, ...] = ()  # changes whose bytes were not written


class StatusInfo(Result, frozen=True, kw_only=True):
    pid: int
    version: str
    socket: str
    workspace: str
    workspace_id: str
    state_dir: str
    head: str
    sessions: tuple[SessionLine, ...] = ()
    approvals: int
    conflicts: int
    health: Health
    policy: str
    approver: Literal["set", "missing"]
    leases: tuple[LeaseInfo, ...] = ()


class AgentLine(Result, frozen=True, kw_only=True):
    name: str
    agent_class: str
    token: Literal["yes", "asserted", "revoked"]


class Agents(Result, frozen=True, kw_only=True):
    agents: tuple[AgentLine, ...] = ()


class AgentToken(Result, frozen=True, kw_only=True):
    name: str
    agent_class: str
    token: str  # shown once


class ApproverCode(Result, frozen=True, kw_only=True):
    approver_code: str | None = None  # null: there is one already, and it is never shown again


class PolicyProblem(Result, frozen=True, kw_only=True):
    line: int
    key: str = ""
    message: str


class PolicyReport(Result, frozen=True, kw_only=True):
    source: str
    ok: bool = False
    problems: tuple[PolicyProblem, ...] = ()
    rules: int = 0


class VerifyAnswer(Result, frozen=True, kw_only=True):
    ok: bool = False
    events: int
    head: str
    head_hash: str
    blobs: int
    problems: tuple[str, ...] = ()
    proven: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    unread: int = 0  # events that could not be read, since the files that hold them are not there

    @property
    def verdict(self) -> str:
        """In words; `ok` alone only where all could be checked that this walk can check."""
        if not self.ok:
            return "not ok"
        return f"ok as far as it could be checked: {plural(self.unread, 'event')} not checked" if self.unread else "ok"


class RebuildAnswer(Result, frozen=True, kw_only=True):
    ok: bool = False
    events: int
    projections: tuple[str, ...] = ()
    first_difference: str | None = None


class DiskDifference(Result, frozen=True, kw_only=True):
    """Where the journal and the disk disagree.

    kind: `content` or `mode` differs, `missing` on disk, `extra` on disk (no event explains it), `kind`: it is no
    regular file, `unreadable` on disk, `lost`: the journal should hold the content and does not, `history`: the
    table of versions does not follow from the events.
    """

    path: str
    kind: DifferenceKind
    journal: str | None = None
    disk: str | None = None


class WorkspaceReport(Result, frozen=True, kw_only=True):
    ok: bool = False
    files: int
    differences: tuple[DiskDifference, ...] = ()


class Done(Result, frozen=True, kw_only=True):
    message: str
