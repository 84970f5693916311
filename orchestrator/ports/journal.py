"""The journal: what is appended, and every question that is asked of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from typing import Annotated, Protocol

import msgspec

from orchestrator.api.journal_operations import BackupAnswer
from orchestrator.core.content import Content, LargeContent, SplicedContent
from orchestrator.core.events.base import Event, Origin, Recorded, RecordedLike
from orchestrator.core.events.chain import Checkpoint
from orchestrator.core.events.journal_maintenance import ContentRedacted, PayloadRedacted
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.projections.versions import VersionRow

ANY_VERSION = -1
"""Append whatever the stream's version is (reads)."""


class StreamMoved(Exception):
    """The stream is not at the expected version; decide again."""

    def __init__(self, stream: str, expected: int, found: int) -> None:
        super().__init__(f"{stream} is at {found}, not at {expected}")
        self.stream, self.expected, self.found = stream, expected, found


class NewEvent(msgspec.Struct, frozen=True):
    """An event to append, and the version (count of events) its stream must have before it."""

    stream: str
    event: Event
    expected: int = ANY_VERSION


class StagedContent(msgspec.Struct, frozen=True):
    """A content whose bytes are on the journal's disk already, in a draft that an append puts in its place."""

    digest: Digest
    size: int
    draft: str

    def __len__(self) -> int:
        return self.size


NewContent = bytes | StagedContent | SplicedContent
"""What is to be kept. What a content is spliced of is kept already, and stays as long as it."""

NewContents = tuple[tuple[Digest, NewContent], ...]
"""Contents, each by its digest."""


class AppendBatch(msgspec.Struct, frozen=True):
    """What is appended together or not at all, with the contents in `blobs`.

    `origin.request_id` is claimed for (agent, request_id); each later unit of the same request moves the claim to
    its own first event. `closes`: it ends an intent, so on a full disk it gets the reserved room; one that is
    refused with DiskFull even so is written first once there is space.
    """

    events: tuple[NewEvent, ...]
    origin: Origin
    blobs: NewContents = ()
    closes: bool = False


class RequestSeen(msgspec.Struct, frozen=True):
    """A request id that the journal knows: its digest, and the first event of the last unit it led to."""

    digest: str
    seq: Seq


class Mention(msgspec.Struct, frozen=True):
    """Events in one of the streams, or whose stored payload holds one of the texts, or of a session's span.

    It compares bytes, so now and then another event passes.
    """

    streams: tuple[str, ...] = ()
    texts: tuple[bytes, ...] = ()
    session: str | None = None
    first: int = 0  # of the session's span, inclusive as `last`
    last: int = 2**62


class EventFilter(msgspec.Struct, frozen=True):
    """Which events to read; empty fields leave all through."""

    tags: tuple[str, ...] = ()
    stream: str | None = None
    agent: str | None = None
    session: str | None = None
    after: int = 0  # exclusive
    until: int | None = None  # inclusive
    since_at: int | None = None  # ms, inclusive as `until_at`; times may jump, so they never end a walk
    until_at: int | None = None
    client_call_id: str | None = None
    mentions: tuple[Mention, ...] = ()  # all of them must fit

    @property
    def looks_inside(self) -> bool:
        """Whether no index leads to what fits: a walk may pass many events to find few."""
        asked = (self.since_at, self.until_at, self.client_call_id)
        return any(part is not None for part in asked) or bool(self.mentions)


EVERYTHING = EventFilter()


class KnownVersion(msgspec.Struct, frozen=True):
    """One version of a path, with the event that made it."""

    row: VersionRow
    recorded: Recorded


class Redaction(msgspec.Struct, frozen=True, kw_only=True):
    """One redaction, of an event's fields or of a content.

    `scrubbed`: nothing of it is left in the journal's files. False: a reader held an older state, so the
    write-ahead log still has it; each commit tries again, at the latest the stop.
    """

    recorded: Recorded
    scrubbed: bool


class Snapshot(msgspec.Struct, frozen=True):
    """What the projections were right after event `seq`; `Journal.snapshot` has the bytes."""

    seq: Seq
    hash: bytes  # of event `seq`: a snapshot of another history is not used
    digest: bytes  # SHA-256 of the bytes
    version: str  # of the projections that made it


class Checked(msgspec.Struct, frozen=True):
    """How far a check in slices has come."""

    seq: Seq  # up to here the chain holds
    unread: tuple[str, ...] = ()  # archived files before it that can't be read, and why


class VerifyReport(msgspec.Struct, frozen=True):
    """What a walk over the journal found."""

    events: int
    head: Seq
    head_hash: str  # hex
    blobs: int
    problems: tuple[str, ...]  # empty: all that was checked holds
    unchecked: tuple[str, ...]  # what could not be checked, and why
    proven: tuple[str, ...] = ()  # what a signature proves
    unread: int = 0  # events that could not be read: the files that hold them are not there


class Journal(Protocol):
    """The appended truth. One process, one writer; safe to call from any task of one event loop.

    `append` returns after the commit is synced and every `subscribe`d fold has seen the events. A cancelled append
    still completes. Raises, with nothing appended, StreamMoved, RequestIdReused, EventNotSerializable, WritesStopped
    (after a failed sync or fold), DiskFull, WorkspaceHeld. `events`, `newest` and `event` show nothing after `head`.
    """

    @property
    def id(self) -> str:
        """The journal's own id, 32 hex digits, made with it."""

    @property
    def head(self) -> Seq:
        """The last committed position; 0 for an empty journal."""

    @property
    def trouble(self) -> str:
        """Why it takes no events, as the last attempt found; empty when it does."""

    def stream_version(self, stream: str) -> int:
        """How many events the stream has, of all that are committed."""

    def subscribe(self, fold: Callable[[Recorded], None]) -> None:
        """Call `fold` for every event appended from now on, in order, after its commit, on the loop's thread."""

    async def append(self, unit: AppendBatch) -> tuple[Recorded, ...]: ...

    async def request(self, agent: str, request_id: str) -> RequestSeen | None: ...

    def events(self, wanted: EventFilter = EVERYTHING, *, batch: int = 1000) -> AsyncIterator[Recorded]:
        """Events in order, from a consistent snapshot per batch."""

    async def newest(self, wanted: EventFilter = EVERYTHING, *, limit: int, archived: bool = True) -> list[Recorded]:
        """The last `limit` events that fit, newest first; with `archived` false no file of events is read."""

    async def event(self, seq: int) -> Recorded | None: ...

    def replay(self, *, after: int = 0, until: int | None = None) -> AsyncGenerator[Sequence[RecordedLike], None]:
        """All events in order, for a fold, in large pieces that are read and decoded off the loop."""

    async def keep_snapshot(self, snapshot: Snapshot, data: bytes) -> None:
        """Keep the bytes of a state, and drop older ones but the last few.

        Raises DiskFull, WritesStopped, JournalCorrupt; nothing is kept then.
        """

    async def snapshots(self) -> list[Snapshot]:
        """All of them, newest first. Raises JournalCorrupt where they can't be read."""

    async def snapshot(self, seq: int) -> bytes:
        """The bytes, proven by digest and seal. Raises JournalCorrupt when they are not there or not those."""

    def checks(self) -> AsyncGenerator[Checked, None]:
        """Check the chain from the first event, and the pages, in short slices; yields how far it is.

        Raises JournalCorrupt at the first thing that does not hold. Contents and tables are left to `verify`.
        """

    async def table_difference(self) -> str | None:
        """The first place where a table that is kept beside the events is not what they say."""

    async def blob(self, digest: Digest) -> bytes | None:
        """The bytes, proven by their hash (JournalCorrupt otherwise), or None if they are not kept."""

    async def content(self, digest: Digest, *, most: int) -> Content | None:
        """As `blob`; of more than `most` bytes only where they are."""

    def blocks(self, content: LargeContent) -> Iterator[bytes]:
        """The bytes of a content, piece by piece. Blocking; raises JournalCorrupt, at the end if they are others."""

    def stage(self, blocks: Iterable[bytes], size: int) -> StagedContent | None:
        """Store a content piece by piece, for an append to keep; None if it has not so many bytes.

        Blocking; raises DiskFull, OSError. Whoever does not append it calls `discard`.
        """

    def discard(self, staged: StagedContent) -> None:
        """Remove the draft, if an append has not taken it. Blocking."""

    async def has_blob(self, digest: Digest) -> bool: ...

    async def spliced_of(self, digest: Digest) -> list[Digest]:
        """The contents that are kept as splices of this one, and can't be read without it."""

    async def versions(self, path: WorkspacePath, *, limit: int, before: int | None = None) -> list[VersionRow]:
        """Newest first; `before` (exclusive seq) pages on."""

    async def version_at(self, path: WorkspacePath, at: int) -> VersionRow | None:
        """The version whose `effective` is the last at or before `at`; None before the first."""

    async def tree_at(self, at: int, *, after: str = "", limit: int) -> list[VersionRow]:
        """Every file that was there at `at`, in the order of the paths: its version, and the mode that it had then.

        Pages of `limit` (at least 1); `after` is the last path of the page before. A position's tree is final once
        its changes have their outcomes. Cost: O(paths × log versions).
        """

    async def lacking(self, digests: Collection[Digest]) -> set[Digest]:
        """Those of these contents that are not kept."""

    async def version_with(self, path: WorkspacePath, digest: Digest) -> VersionRow | None:
        """The newest version of this path with this content."""

    async def moved_away(self, paths: Collection[WorkspacePath]) -> list[VersionRow]:
        """The versions, of other paths, to which files were moved from these; oldest first."""

    async def histories(self, paths: Collection[WorkspacePath]) -> dict[WorkspacePath, tuple[VersionRow, ...]]:
        """Every version of each of these paths, oldest first."""

    async def modes(self, paths: Collection[WorkspacePath]) -> dict[WorkspacePath, tuple[tuple[Seq, int], ...]]:
        """Permission bits that changed without a new version: position and bits, oldest first, of paths with any."""

    async def reverters(self) -> list[tuple[Seq, tuple[Seq, ...]]]:
        """Every change that undid others, newest first, with the changes that it undid."""

    async def changes_of(self, path: WorkspacePath, *, until: int) -> list[KnownVersion]:
        """The versions of a path up to `until`, oldest first, each with its event; in few queries."""

    async def verify(self, checkpoint: Checkpoint | None = None) -> VerifyReport:
        """Check everything; with a checkpoint also whether this is the history that it was made of.

        Raises CheckpointOfAnotherJournal.
        """

    async def redact(self, event: PayloadRedacted, origin: Origin) -> Redaction:
        """Blank `event.fields` of the event `event.target`, forget its salt, and append `event`: all or nothing.

        Sets `rest_hash` of `event`. One at a time. Raises VersionUnknown where there is no target, and as `append`.
        """

    async def forget(self, event: ContentRedacted, origin: Origin) -> Redaction:
        """Remove the content `event.digest` and append `event`: both or neither. Raises as `append`."""

    async def holding(self, text: str, *, limit: int) -> tuple[Seq, ...]:
        """The events that have this text in a field of theirs, oldest first. Cost: O(size of the journal)."""

    async def close(self) -> None: ...


class ArchivedFile(msgspec.Struct, frozen=True):
    """A file that holds events first to last, and nothing else does."""

    first: Seq
    last: Seq
    file: Annotated[str, msgspec.Meta(pattern=r"\A\d{12,}-\d{12,}\.segment\.zst\Z")]  # a name in the archive's folder
    size: int


class Collected(msgspec.Struct, frozen=True):
    """Contents that nothing needs: removed, or to be."""

    digests: tuple[Digest, ...]
    size: int  # of the plain contents


class JournalMaintenance(Protocol):
    """What people have done to the journal itself; one such act at a time, while appends go on."""

    @property
    def archived(self) -> tuple[ArchivedFile, ...]:
        """In the journal's order; nothing between them is left out."""

    async def archive(self, last: Seq, origin: Origin) -> tuple[ArchivedFile, ...]:
        """Move every event up to `last` that is not archived yet into files.

        Each file is whole and read back before its events leave the database, in the
        transaction of its SegmentArchived. Raises DiskFull, JournalCorrupt, WritesStopped.
        """

    async def unarchive(self, file: str, origin: Origin) -> ArchivedFile:
        """Put the newest file's events back. Raises NotLatestSegment, ArchiveMissing, JournalCorrupt."""

    async def collect(
        self, *, needed: frozenset[Digest], as_of: Seq, before_ms: int, origin: Origin, dry_run: bool
    ) -> Collected:
        """Remove contents that nothing needs and that no event named since `before_ms`.

        `needed` is what waited at position `as_of`.
        """

    async def backup(self, directory: str) -> BackupAnswer:
        """Copy the journal into a new folder, and check the copy.

        Raises BackupRefused, DiskFull, JournalCorrupt; then nothing of it is left.
        """
