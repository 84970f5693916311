"""Every event there is, by its stored tag."""

from __future__ import annotations

from orchestrator.core.events.base import Event
from orchestrator.core.events.conflicts import (
    ApprovalDenied,
    ApprovalGranted,
    ApprovalLapsed,
    ApprovalRequested,
    ConflictFound,
    ConflictSettled,
    ConflictSuperseded,
    PolicyLoaded,
)
from orchestrator.core.events.files import (
    CallRefused,
    ChangeAborted,
    ChangeApplied,
    ChangeDiverged,
    ChangeIntended,
    ChangeRefused,
    ContentSearched,
    DiffShown,
    DirectoryListed,
    FileChangedOutside,
    FileCreatedOutside,
    FileInspected,
    FileRead,
    FileRemovedOutside,
    FilesFound,
    ReadRefused,
    SessionNoted,
    StrayKept,
)
from orchestrator.core.events.keeping import (
    CheckpointSigned,
    ContentRedacted,
    ContentsCollected,
    JournalAdopted,
    PayloadRedacted,
    SegmentArchived,
    SegmentRestored,
)
from orchestrator.core.events.leases import LeaseGranted, LeaseLapsed, LeaseReleased, LeaseRenewed
from orchestrator.core.events.notices import NoticeShown
from orchestrator.core.events.reviews import (
    ConflictLapsed,
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
from orchestrator.core.events.world import OutsideGroupClosed, OutsideGroupOpened

AnyEvent = (
    AgentAdded | AgentRevoked | ApproverSet | SessionOpened | SessionClosed | TaskBegun | TaskEnded
    | FileRead | FileInspected | DirectoryListed | ContentSearched | DiffShown | ReadRefused | CallRefused
    | SessionNoted | NoticeShown
    | ChangeIntended | ChangeApplied | ChangeAborted | ChangeDiverged | ChangeRefused
    | FilesFound | FileChangedOutside | FileCreatedOutside | FileRemovedOutside | StrayKept
    | ConflictFound | ConflictSettled | ConflictSuperseded
    | ApprovalRequested | ApprovalGranted | ApprovalDenied | ApprovalLapsed | PolicyLoaded
    | OutsideGroupOpened | OutsideGroupClosed
    | LeaseGranted | LeaseRenewed | LeaseReleased | LeaseLapsed
    | CheckpointSigned | PayloadRedacted | ContentRedacted | ContentsCollected
    | SegmentArchived | SegmentRestored | JournalAdopted
    | ConflictRebased | ConflictLapsed
    | ReviewRequested | ReviewAnswered | ReviewFailed | ReviewAccepted | ReviewRejected
)  # fmt: skip

EVENTS: tuple[type[Event], ...] = AnyEvent.__args__


def tag_of(event: Event | type[Event]) -> str:
    """The tag that the journal stores for an event."""
    tag = event.__struct_config__.tag
    if not isinstance(tag, str):
        raise TypeError(f"{event!r} has no tag")
    return tag
