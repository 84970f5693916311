"""Every event there is, by its stored tag."""

from __future__ import annotations

from orchestrator.core.events.base import Event
from orchestrator.core.events.conflicts import (
    ApprovalDenied,
    ApprovalExpired,
    ApprovalGranted,
    ApprovalRequested,
    ConflictFound,
    ConflictResolved,
    ConflictSuperseded,
    PolicyLoaded,
)
from orchestrator.core.events.external import ExternalBatchClosed, ExternalBatchOpened
from orchestrator.core.events.files import (
    CallRefused,
    ChangeAborted,
    ChangeApplied,
    ChangeDiverged,
    ChangeIntended,
    ChangeRefused,
    ContentSearched,
    ContentShown,
    DiffShown,
    DirectoryListed,
    ExternalFileChanged,
    ExternalFileCreated,
    ExternalFileRemoved,
    FileRead,
    FilesFound,
    MetadataRead,
    OrphanContentKept,
    ReadRefused,
)
from orchestrator.core.events.journal import (
    CheckpointSigned,
    ContentRedacted,
    ContentsCollected,
    JournalAdopted,
    PayloadRedacted,
    SegmentArchived,
    SegmentRestored,
)
from orchestrator.core.events.leases import LeaseExpired, LeaseGranted, LeaseReleased, LeaseRenewed
from orchestrator.core.events.notices import NoticeShown
from orchestrator.core.events.reviews import (
    ConflictExpired,
    ConflictRebased,
    ReviewAccepted,
    ReviewAnswered,
    ReviewFailed,
    ReviewRejected,
    ReviewRequested,
)
from orchestrator.core.events.sessions import (
    AgentAdded,
    AgentRevoked,
    ApproverSet,
    SessionClosed,
    SessionOpened,
    TaskBegun,
    TaskEnded,
)

AnyEvent = (
    AgentAdded | AgentRevoked | ApproverSet | SessionOpened | SessionClosed | TaskBegun | TaskEnded
    | FileRead | MetadataRead | DirectoryListed | ContentSearched | DiffShown | ReadRefused | CallRefused
    | ContentShown | NoticeShown
    | ChangeIntended | ChangeApplied | ChangeAborted | ChangeDiverged | ChangeRefused
    | FilesFound | ExternalFileChanged | ExternalFileCreated | ExternalFileRemoved | OrphanContentKept
    | ConflictFound | ConflictResolved | ConflictSuperseded
    | ApprovalRequested | ApprovalGranted | ApprovalDenied | ApprovalExpired | PolicyLoaded
    | ExternalBatchOpened | ExternalBatchClosed
    | LeaseGranted | LeaseRenewed | LeaseReleased | LeaseExpired
    | CheckpointSigned | PayloadRedacted | ContentRedacted | ContentsCollected
    | SegmentArchived | SegmentRestored | JournalAdopted
    | ConflictRebased | ConflictExpired
    | ReviewRequested | ReviewAnswered | ReviewFailed | ReviewAccepted | ReviewRejected
)  # fmt: skip

EVENTS: tuple[type[Event], ...] = AnyEvent.__args__


def tag_of(event: Event | type[Event]) -> str:
    """The tag that the journal stores for an event."""
    tag = event.__struct_config__.tag
    if not isinstance(tag, str):
        raise TypeError(f"{event!r} has no tag")
    return tag
