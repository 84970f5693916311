"""Operations on the journal itself: backing it up, archiving old events, collecting contents nobody can reach."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from orchestrator.api.operation import Operation
from orchestrator.api.parameters import AnyPath, Approving, Params, Version
from orchestrator.api.results import Result
from orchestrator.core import errors as e


class JournalBackup(Params, frozen=True):
    directory: Annotated[
        AnyPath, Meta(description="A new or empty folder outside the workspace, by its absolute path.")
    ]


class JournalArchive(Approving, frozen=True):
    before: Annotated[Version, Meta(description="'@N': every event before it leaves the database for a file.")]


class JournalUnarchive(Approving, frozen=True):
    file: Annotated[AnyPath, Meta(description="The name of the newest archived file.", min_length=1)]


class JournalCollect(Approving, frozen=True):
    grace_days: Annotated[int, Meta(description="Contents that an event named since then stay.", ge=0, le=36500)] = 30
    dry_run: Annotated[bool, Meta(description="Only say what would go.")] = False


class BackupAnswer(Result, frozen=True, kw_only=True):
    """A backup that is whole and was verified."""

    directory: str
    journal: str  # the journal's own id
    head: str
    head_hash: str
    files: int
    size: int
    contents: int
    unchecked: tuple[str, ...] = ()


class ArchivedLine(Result, frozen=True, kw_only=True):
    first: str
    last: str
    file: str
    size: int


class ArchiveAnswer(Result, frozen=True, kw_only=True):
    message: str
    moved: tuple[ArchivedLine, ...] = ()
    archived: tuple[ArchivedLine, ...] = ()  # all there are now


class CollectAnswer(Result, frozen=True, kw_only=True):
    message: str
    contents: int
    size: int  # of the plain contents
    young: int  # nothing needs them, but for too short a time
    dry_run: bool = False


class RestoreAnswer(Result, frozen=True, kw_only=True):
    """A backup took the journal's place, with the daemon stopped."""

    message: str
    journal: str
    head: str
    known_head: str | None = None  # to where the journal had come
    set_aside: str | None = None  # the folder with the journal before


class ResetAnswer(Result, frozen=True, kw_only=True):
    message: str
    set_aside: str | None = None


class AdoptAnswer(Result, frozen=True, kw_only=True):
    """A journal that was behind is gone on with."""

    message: str
    files: int  # that differed, and are recorded as changed from outside
    head: str | None = None
    known_head: str | None = None
    adopted: str | None = None  # the event
    set_aside: str | None = None  # contents that only the journal that went further knew


JOURNAL_BACKUP = Operation(
    "journal_backup",
    JournalBackup,
    BackupAnswer,
    "Copy the whole journal into a folder while it is in use, and verify the copy.",
    operator_only=True,
    raises=(e.BackupRefused, e.DiskFull, e.JournalCorrupt, e.ParameterInvalid),
)

JOURNAL_ARCHIVE = Operation(
    "journal_archive",
    JournalArchive,
    ArchiveAnswer,
    "Move old events from the database into compressed, sealed files; they stay readable.",
    operator_only=True,
    writes=True,
    raises=(e.ApproverCodeNeeded, e.ParameterInvalid, e.StillNeeded, e.JournalChanged, e.DiskFull),
)

JOURNAL_UNARCHIVE = Operation(
    "journal_unarchive",
    JournalUnarchive,
    ArchiveAnswer,
    "Put the newest archived file's events back into the database.",
    operator_only=True,
    writes=True,
    raises=(e.ApproverCodeNeeded, e.VersionUnknown, e.NotLatestSegment, e.ArchiveMissing, e.JournalCorrupt),
)

JOURNAL_COLLECT = Operation(
    "journal_collect",
    JournalCollect,
    CollectAnswer,
    "Remove kept contents that no event outside the archive needs and none named for a while.",
    operator_only=True,
    writes=True,
    raises=(e.ApproverCodeNeeded, e.JournalChanged, e.ArchiveMissing),
)
