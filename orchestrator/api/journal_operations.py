"""Operations on the journal: queried, exported and redacted, backed up, archived, and rid of old contents."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.operation import PATHS, Operation, OperatorOperation
from orchestrator.core import errors as e
from orchestrator.core.events.base import Outcome


class JournalFilter(p.Params, frozen=True):
    """Which events; those that are left out let all through."""

    path: Annotated[p.AnyPath | None, Meta(description="Only events about this path.")] = None
    agent: Annotated[p.Name | None, Meta(description="Only this agent's; 'outside': only external changes.")] = None
    session: Annotated[p.Name | None, Meta(description="Only this session's.")] = None
    task: Annotated[p.Version | None, Meta(description="Only this task's, '@N'.")] = None
    kind: Annotated[p.Name | None, Meta(description="Only this kind, e.g. 'change_applied'.")] = None
    since: Annotated[p.Version | None, Meta(description=f"From here on: {p.MOMENT}.")] = None
    until: Annotated[p.Version | None, Meta(description=f"Up to here, included: {p.MOMENT}.")] = None
    outcome: Annotated[Outcome | None, Meta(description="Only events with this outcome.")] = None
    client_call_id: Annotated[
        p.Name | None,
        Meta(
            description="Only of the tool call to which the agent's client gave this id.",
            extra_json_schema={p.OPERATOR_ONLY: True},  # no agent knows its calls' ids
        ),
    ] = None


class JournalQuery(JournalFilter, frozen=True):
    limit: Annotated[int, Meta(description="Most events in one answer.", ge=1, le=500)] = 50
    cursor: p.Cursor = None


class EntryPath(r.Result, frozen=True, kw_only=True):
    """What an event did to a file: versions before and after; hashes only of what the caller may read."""

    path: str
    before: str | None = None
    after: str | None = None
    before_hash: str | None = None
    after_hash: str | None = None
    moved_from: str | None = None


class StoredEvent(r.Result, frozen=True, kw_only=True):
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
    client_call_id: str | None = None  # the client's own id of the tool call, as its transcript and hooks have it
    paths: tuple[EntryPath, ...] = ()
    left_out: int = 0  # items of long lists in it; journal_export has them


class JournalPage(r.Result, frozen=True, kw_only=True):
    head: str  # the newest event of the journal, whoever may see it
    entries: tuple[JournalEntry, ...] = ()
    cursor: str | None = None
    unlisted: int = 0  # further ones on this page, about files that the caller may not list
    partial: bool = False  # the search stopped early: go on with `cursor`, even if there are no entries


JOURNAL_QUERY = Operation(
    "journal_query",
    JournalQuery,
    JournalPage,
    "Events of the journal, newest first: your own session's, more where policy says so; all for a person.",
    opens_session=False,
    raises=(e.NotPermitted, e.VersionUnknown, *PATHS),
    command="journal query",
)


class JournalExport(JournalFilter, frozen=True):
    after: Annotated[p.Version, Meta(description="'@N': only what came later; `after` of the last page.")] = "@0"
    limit: Annotated[int, Meta(description="Most events in one page.", ge=1, le=1000)] = 500


class ExportPage(r.Result, frozen=True, kw_only=True):
    """Events in the journal's order, as text."""

    text: str = ""
    events: int  # that are in the text
    after: str  # go on from here
    more: bool = False


JOURNAL_EXPORT = OperatorOperation(
    "journal_export",
    JournalExport,
    ExportPage,
    "Events of the journal as JSON Lines, oldest first, page by page.",
)


class JournalRedact(p.Approving, frozen=True):
    event: Annotated[p.Version | None, Meta(description="'@N' of the event whose texts are taken out.")] = None
    fields: Annotated[
        tuple[p.Name, ...],
        Meta(description="Which of its fields, e.g. 'reason'; all that can be, without it.", max_length=p.MOST_ENTRIES),
    ] = ()
    blob: Annotated[
        p.Version | None,
        Meta(description="Instead of an event: the content to remove, 'sha256:…' or '@N' of the version that has it."),
    ] = None
    path: Annotated[
        p.AnyPath | None,
        Meta(description="With blob '@N': of which file, where that version brought several, or is hidden."),
    ] = None
    reason: p.Reason = ""


class Redacted(r.Result, frozen=True, kw_only=True):
    """What was taken out."""

    redaction: str  # '@N' of the event that says so
    event: str | None = None
    fields: tuple[str, ...] = ()
    digest: str | None = None
    size: int | None = None
    scrubbed: bool = False  # nothing of it is left in the journal's files
    warnings: tuple[str, ...] = ()


JOURNAL_REDACT = OperatorOperation(
    "journal_redact",
    JournalRedact,
    Redacted,
    "Take the texts of one event, or one content, out of the journal for good.",
    writes=True,
    destructive=True,
)


class JournalBackup(p.Params, frozen=True):
    directory: Annotated[p.AnyPath, Meta(description="A new folder outside the workspace, by its absolute path.")]


class JournalArchive(p.Approving, frozen=True):
    before: Annotated[p.Version, Meta(description="'@N': every event before it leaves the database for a file.")]


class JournalUnarchive(p.Approving, frozen=True):
    file: Annotated[p.AnyPath, Meta(description="The name of the newest archived file.", min_length=1)]


class JournalCollect(p.Approving, frozen=True):
    grace_days: Annotated[int, Meta(description="Days in which what an event named stays.", ge=0, le=36500)] = 30
    dry_run: Annotated[bool, Meta(description="Only say what would go.")] = False


class BackupAnswer(r.Result, frozen=True, kw_only=True):
    """A backup that is whole and was verified."""

    directory: str
    journal: str  # the journal's own id
    head: str
    head_hash: str
    unchecked: tuple[str, ...] = ()


class ArchivedLine(r.Result, frozen=True, kw_only=True):
    first: str
    last: str
    file: str
    size: int


class ArchiveAnswer(r.Result, frozen=True, kw_only=True):
    message: str
    moved: tuple[ArchivedLine, ...] = ()
    archived: tuple[ArchivedLine, ...] = ()  # all there are now


class CollectAnswer(r.Result, frozen=True, kw_only=True):
    message: str
    contents: int
    size: int  # of the plain contents
    dry_run: bool = False


class JournalReplaced(r.Result, frozen=True, kw_only=True):
    """What was done to the journal of a stopped daemon: restored from a backup, adopted, or begun anew."""

    message: str
    journal: str | None = None  # the restored one's own id
    files: int | None = None  # that differed from an adopted journal, and are recorded as changed from outside
    head: str | None = None
    set_aside: str | None = None  # the folder with the journal before, or with contents that only it knew


JOURNAL_BACKUP = OperatorOperation(
    "journal_backup",
    JournalBackup,
    BackupAnswer,
    "Copy the whole journal into a folder while it is in use, and verify the copy.",
)

JOURNAL_ARCHIVE = OperatorOperation(
    "journal_archive",
    JournalArchive,
    ArchiveAnswer,
    "Move old events from the database into compressed files with a checksum; they stay readable.",
    writes=True,
)

JOURNAL_UNARCHIVE = OperatorOperation(
    "journal_unarchive",
    JournalUnarchive,
    ArchiveAnswer,
    "Put the newest archived file's events back into the database.",
    writes=True,
)

JOURNAL_COLLECT = OperatorOperation(
    "journal_collect",
    JournalCollect,
    CollectAnswer,
    "Delete stored contents that no event outside the archive needs and that no event named for a while.",
    writes=True,
)
