"""What the engine needs from the world; each promise here is kept by every adapter, and a contract suite says so."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Sequence
from typing import Literal, Protocol

import msgspec

from orchestrator.core.checkpoint import Checkpoint
from orchestrator.core.content import Signature
from orchestrator.core.events.base import Event, Happened, Origin, Recorded
from orchestrator.core.events.keeping import ContentRedacted, PayloadRedacted
from orchestrator.core.events.world import OutsideTrigger
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.projections.history import VersionRow

Step = Callable[[str], None]
"""Called by name between any two steps of a durable change. The shipped one does nothing;
a crash test's one ends the process."""


class Clock(Protocol):
    """Wall time, for the envelope and for deadlines; and a clock that only measures."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch; may jump."""

    def ticks_us(self) -> int:
        """Microseconds since some moment before the first look; never goes back."""


class Entropy(Protocol):
    """Unguessable bytes: salts, tokens, delimiters, names."""

    def bytes(self, count: int) -> bytes:
        """`count` bytes."""


class Signer(Protocol):
    """The journal's key. Blocking and thread-safe."""

    def sign(self, message: bytes) -> tuple[str, str]:
        """The public key and its signature, in hex (Ed25519); the key is made at first need.

        Raises SigningKeyUnusable.
        """


# --- journal ---------------------------------------------------------------------------

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


class Unit(msgspec.Struct, frozen=True):
    """What is appended together or not at all.

    `blobs` are kept in the same transaction. `origin.request_id`, if set, is claimed for
    (agent, request_id); each later unit of the same request (same digest) moves the claim to
    its own first event, so that a retry after an aborted change finds what the retry led to.
    `closes`: it ends an intent. On a full disk it gets the room that is held back; one that
    is refused with DiskFull even so is written, before anything else, once there is space.
    """

    events: tuple[NewEvent, ...]
    origin: Origin
    blobs: tuple[tuple[Digest, bytes], ...] = ()
    closes: bool = False


class RequestSeen(msgspec.Struct, frozen=True):
    """A request id that the journal knows: its digest, and the first event of the last unit it led to."""

    digest: str
    seq: Seq


class Mention(msgspec.Struct, frozen=True):
    """Events in one of the streams, or whose stored payload holds one of the texts, or of a session's span.

    It finds bytes, not meanings: it lets through all that is meant, and now and then another.
    """

    streams: tuple[str, ...] = ()
    texts: tuple[bytes, ...] = ()
    session: str | None = None
    first: int = 0  # of the session's span, inclusive as `last`
    last: int = 2**62

    def fits(self, *, stream: str, payload: bytes, session: str | None, seq: int) -> bool:
        """Whether an event is one of them."""
        return (
            stream in self.streams
            or any(text in payload for text in self.texts)
            or (self.session is not None and session == self.session and self.first <= seq <= self.last)
        )


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
    mentions: tuple[Mention, ...] = ()  # all of them must fit

    @property
    def looks_inside(self) -> bool:
        """Whether no index leads to what fits: a walk may pass many events to find few."""
        return self.since_at is not None or self.until_at is not None or bool(self.mentions)


EVERYTHING = EventFilter()


class KnownVersion(msgspec.Struct, frozen=True):
    """One version of a path, with the event that made it."""

    row: VersionRow
    recorded: Recorded


class Redaction(msgspec.Struct, frozen=True, kw_only=True):
    """One redaction, of an event's fields or of a content, as it is in the journal now.

    `scrubbed`: nothing of it is left in the journal's files. False: a reader held an older
    state, so the write-ahead log still has it; each commit tries again, at the latest the stop.
    """

    recorded: Recorded
    scrubbed: bool


class Snapshot(msgspec.Struct, frozen=True):
    """What the projections were right after event `seq`, as the journal knows it; the bytes are asked for apart."""

    seq: Seq
    hash: bytes  # of event `seq`: a snapshot of another history is not used
    digest: bytes  # SHA-256 of the bytes
    version: str  # of the projections that made it
    kept: bool  # False: only the digest is still there


class VerifyReport(msgspec.Struct, frozen=True):
    """What a walk over the journal found."""

    events: int
    head: Seq
    head_hash: str  # hex
    blobs: int
    problems: tuple[str, ...]  # empty: all that was checked holds
    unchecked: tuple[str, ...]  # what could not be checked, and why
    proven: tuple[str, ...] = ()  # what a signature stands for


class Journal(Protocol):
    """The appended truth. One process, one writer; safe to call from any task of one event loop.

    `append` returns after the commit is synced and after every `subscribe`d fold has seen
    the events. A cancelled append still completes. Raises StreamMoved (nothing appended),
    RequestIdReused, WritesStopped (after a failed sync or fold), DiskFull, WorkspaceHeld
    (another daemon opened it). `events`, `newest` and `event` show nothing after `head`.
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

    async def append(self, unit: Unit) -> tuple[Recorded, ...]: ...

    async def request(self, agent: str, request_id: str) -> RequestSeen | None: ...

    def events(self, wanted: EventFilter = EVERYTHING, *, batch: int = 1000) -> AsyncIterator[Recorded]:
        """Events in order, from a consistent snapshot per batch."""

    async def newest(self, wanted: EventFilter = EVERYTHING, *, limit: int, archived: bool = True) -> list[Recorded]:
        """The last `limit` events that fit, newest first; with `archived` false no file of events is read."""

    async def event(self, seq: int) -> Recorded | None: ...

    def replay(self, *, after: int = 0, until: int | None = None) -> AsyncGenerator[Sequence[Happened], None]:
        """All events in order, for a fold, in large pieces that are read and decoded off the loop."""

    async def keep_snapshot(self, snapshot: Snapshot, data: bytes) -> None:
        """Keep the bytes of a state; of older ones than the last few only the digest stays.

        Raises DiskFull, WritesStopped, JournalCorrupt; nothing is kept then.
        """

    async def snapshots(self) -> list[Snapshot]:
        """All of them, newest first. Raises JournalCorrupt where they can't be read."""

    async def snapshot(self, seq: int) -> bytes:
        """The bytes, proven by their digest. Raises JournalCorrupt when they are not there or not those."""

    def checks(self) -> AsyncGenerator[Seq, None]:
        """Check, in short slices, what was not checked since the last clean stop; yields how far it is.

        After an unclean stop that is everything. Raises JournalCorrupt at the first thing that does not hold.
        """

    async def table_difference(self) -> str | None:
        """The first place where a table that is kept beside the events is not what they say."""

    async def blob(self, digest: Digest) -> bytes | None:
        """The bytes, proven by their hash (JournalCorrupt otherwise), or None if they are not kept."""

    async def has_blob(self, digest: Digest) -> bool: ...

    async def versions(self, path: WorkspacePath, *, limit: int, before: int | None = None) -> list[VersionRow]:
        """Newest first; `before` (exclusive seq) pages on."""

    async def version_at(self, path: WorkspacePath, at: int) -> VersionRow | None:
        """The version whose `effective` is the last at or before `at`; None before the first."""

    async def tree_at(self, at: int, *, after: str = "", limit: int) -> list[VersionRow]:
        """Every file that was there at `at`, by the version that it had: the tree, in the order of its paths.

        For each path as `version_at`, with the mode that it had at `at`, which may change while the version stays;
        absent ones are left out. Pages of `limit` (at least 1); `after` is the
        last path of the page before. A position's tree is final once its changes have their outcomes.
        Cost: O(paths × log versions), whatever each path has behind it.
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

    async def changes_of(self, path: WorkspacePath, *, after: int = 0, until: int) -> list[KnownVersion]:
        """The versions of a path with `after` < seq ≤ `until`, oldest first, each with its event; in few queries."""

    async def verify(self, checkpoint: Checkpoint | None = None) -> VerifyReport:
        """Check everything; with a checkpoint also whether this is the history that it was made of.

        Raises CheckpointForeign.
        """

    async def redact(self, event: PayloadRedacted, origin: Origin) -> Redaction:
        """Blank `event.fields` of the event `event.target`, forget its salt, and append `event`: both or neither.

        Of `event` the `rest_hash` is set here. One at a time. Raises VersionUnknown when the
        target is not there, and as `append`.
        """

    async def forget(self, event: ContentRedacted, origin: Origin) -> Redaction:
        """Remove the content `event.digest` and append `event`: both or neither.

        A content that comes again later is kept again. Raises as `append`.
        """

    async def holding(self, text: str, *, limit: int) -> tuple[Seq, ...]:
        """The events that have this text in a field of theirs, oldest first. Cost: O(size of the journal)."""

    async def close(self) -> None: ...


class ArchivedFile(msgspec.Struct, frozen=True):
    """A file that holds events first to last, and nothing else does."""

    first: Seq
    last: Seq
    file: str
    size: int


class BackupReport(msgspec.Struct, frozen=True):
    """A backup that is whole, and what its own verification said."""

    directory: str
    journal: str
    head: Seq
    head_hash: str  # hex
    files: int
    size: int
    contents: int
    unchecked: tuple[str, ...]


class Collected(msgspec.Struct, frozen=True):
    """Contents that nothing needs: removed, or to be."""

    digests: tuple[Digest, ...]
    size: int  # of the plain contents
    young: int = 0  # contents that nothing needs, but for too short a time


class JournalKeeper(Protocol):
    """What people have done to the journal itself; one such act at a time, while appends go on."""

    @property
    def archived(self) -> tuple[ArchivedFile, ...]:
        """In the journal's order; nothing between them is left out."""

    async def newest_snapshot(self) -> Seq | None:
        """From where the projections can start."""

    async def archive(self, last: Seq, origin: Origin) -> tuple[ArchivedFile, ...]:
        """Move every event up to `last` that is not archived yet into files.

        Each file is whole and read back before its events leave the database, in the
        transaction of its SegmentArchived. Raises DiskFull, JournalCorrupt, WritesStopped.
        """

    async def unarchive(self, file: str, origin: Origin) -> ArchivedFile:
        """Put the newest file's events back. Raises VersionUnknown, ArchiveMissing, JournalCorrupt."""

    async def collect(
        self, *, needed: frozenset[Digest], as_of: Seq, before_ms: int, origin: Origin, dry_run: bool
    ) -> Collected:
        """Remove contents that nothing needs and that no event named since `before_ms`.

        `needed` is what waited at position `as_of`.
        """

    async def backup(self, directory: str) -> BackupReport:
        """Copy the journal into a new or empty folder, and check the copy.

        Raises BackupRefused, DiskFull, JournalCorrupt; then nothing of it is left.
        """


# --- disk ------------------------------------------------------------------------------


class DiskFeatures(msgspec.Struct, frozen=True):
    """What this machine can do for us; what it can't is learned as it is tried."""

    openat2: bool = True
    exchange: bool = True
    noreplace: bool = True
    leases: bool = True

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is missing, for a person; empty where nothing is degraded."""
        told = (
            (self.openat2, "no openat2: paths are walked name by name, and a bind mount of the same disk is not seen"),
            (self.exchange, "no exchanging rename: another program's write in the last instant before ours is lost"),
            (self.noreplace, "no exclusive rename: a file that is made in the last instant before ours is lost"),
            (self.leases, "no leases: a program that keeps a file open may write to its old copy after the change"),
        )
        return tuple(sentence for there, sentence in told if not there)


Rename = Literal["replace", "noreplace", "exchange"]


class Disk(Protocol):
    """Every call on a workspace file, at the level of the kernel; descriptors in, OSError out.

    The one port under which a test can count, fail or lose any of them. Thread-safe.
    """

    @property
    def features(self) -> DiskFeatures: ...

    def open_root(self, path: str) -> int:
        """A handle of the workspace's root; the path may lead through links."""

    def open_beneath(self, root: int, path: str, flags: int) -> int:
        """Open below a root, without following any link or leaving its file system.

        ELOOP: a link. EXDEV: out of the root (never without a '..' or a leading '/') or into
        another file system.
        """

    def open_at(self, directory: int, name: str, flags: int, mode: int = 0) -> int:
        """Open one name in a directory; never a link. New files have `mode` & ~umask."""

    def close(self, handle: int) -> None: ...

    def stat(self, handle: int) -> os.stat_result: ...

    def stat_at(self, directory: int, name: str) -> os.stat_result:
        """Of the name itself, if it is a link too. `..`, `../..` … are the directories above."""

    def read_link(self, directory: int, name: str) -> str: ...

    def names(self, directory: int) -> list[str]: ...

    def folders(self, directory: int) -> list[str]:
        """The names of directories in it, links left out; without a stat of each where the system allows."""

    def read(self, handle: int, count: int, offset: int) -> bytes:
        """Up to `count` bytes; empty at the end."""

    def write(self, handle: int, data: memoryview) -> int:
        """How many of the bytes were taken; may be fewer than given."""

    def sync(self, handle: int) -> None:
        """Everything of this file, or every name in this directory, is on the platter on return."""

    def rename(self, from_dir: int, old: str, to_dir: int, new: str, how: Rename) -> None:
        """`noreplace` fails with EEXIST, `exchange` swaps; EINVAL, ENOSYS or ENOTSUP where it can't be had."""

    def unlink_at(self, directory: int, name: str) -> None: ...

    def make_directory(self, directory: int, name: str) -> None: ...

    def remove_directory(self, directory: int, name: str) -> None:
        """ENOTEMPTY if anything is in it."""

    def set_mode(self, handle: int, mode: int) -> None: ...

    def set_owner(self, handle: int, uid: int, gid: int) -> None:
        """-1 leaves that one as it is."""

    def attribute_names(self, handle: int) -> list[str]:
        """The extended attributes, ACLs among them; empty where the file system has none."""

    def attribute(self, handle: int, name: str) -> bytes: ...

    def set_attribute(self, handle: int, name: str, value: bytes) -> None: ...

    def remove_attribute(self, handle: int, name: str) -> None: ...

    def take_lease(self, handle: int) -> bool:
        """A read lease, which ends with the handle. False: leases can't be had here. EAGAIN: somebody writes."""


# --- workspace -------------------------------------------------------------------------


class FileStat(msgspec.Struct, frozen=True):
    """What the kernel says of a path, without following a link."""

    kind: Literal["file", "directory", "symlink", "other"]
    signature: Signature
    mode: int  # permission bits, incl. setuid, setgid, sticky
    nlink: int
    uid: int
    target: str | None = None  # of a symlink, escaped


class FileBytes(msgspec.Struct, frozen=True):
    """A file's whole content, and the stat that held before and after it was read."""

    data: bytes
    stat: FileStat
    digest: Digest


class ListedName(msgspec.Struct, frozen=True):
    """One name in a directory."""

    name: str  # escaped if it breaks the name rule
    valid: bool  # False: breaks the name rule; shown, never opened
    stat: FileStat


class DiskChange(msgspec.Struct, frozen=True, kw_only=True):
    """One path's part of a change, as the workspace carries it out.

    before None: the path must be absent; after None: it will be. `data` is the bytes of
    `after`. With `moved_from` the bytes come from renaming that path (whose content must
    be `after`), and `data` is None. `directory`: make a directory.
    """

    path: WorkspacePath
    before: Digest | None
    after: Digest | None
    data: bytes | None = None
    mode: int | None = None  # None: keep the present mode, or 0666 & ~umask for a new file
    temp: str | None = None
    moved_from: WorkspacePath | None = None
    directory: bool = False
    parents: tuple[WorkspacePath, ...] = ()
    signature: Signature | None = None  # of `before`, when it was last hashed
    known: bytes | None = None  # the bytes of `before`, where they are at hand: what is met is held against them


class Displaced(Exception):
    """What came out (or stood there) was not `before`: somebody else's content.

    It is back in its place and nothing was changed. Or `diverged`: twice somebody came between,
    so it could not be put back where it belongs; nothing was overwritten. `foreign` holds the
    contents met, first what now stands at the path, then what is in the temporary file: keep
    them, then call `Landing.finish`.
    """

    def __init__(self, path: WorkspacePath, *, diverged: bool = False, foreign: tuple[bytes, ...] = ()) -> None:
        super().__init__(path)
        self.path, self.diverged, self.foreign = path, diverged, foreign


class Landing(Protocol):
    """One change on its way to the disk. Steps are blocking; run them off the loop, in this order."""

    warnings: tuple[str, ...]

    def stage(self) -> None:
        """Make missing parents; write and sync the temporary file, if there is one.

        Raises DiskFull, WritesStopped (a sync failed) and the PathError family; nothing is left behind then.
        """

    def land(self) -> FileStat | None:
        """Exchange, prove what came out, sync the directory.

        Returns the stat of what now stands at `path` (None: absent). Raises Displaced,
        FileBusy, FileExists, PathError, WritesStopped (a sync failed: the outcome is unknown).
        """

    def finish(self) -> tuple[bytes, ...]:
        """Unlink what was swapped out, after hashing it once more.

        Returns contents that were not `before` (a writer got at it after the proof): the
        caller keeps them; it is unlinked only when `finish` is called again with them kept.
        """

    def take_back(self) -> None:
        """Undo a `land` that is not finished, because another part of the same change could not land.

        Raises Displaced with `diverged` if somebody's content came to stand there since: it is left
        alone. Raises WritesStopped as `land` does.
        """

    def abandon(self) -> None:
        """Unlink the temporary file of a change that will not land, and the parents made for it.

        Safe at any point, twice too; a change that did land it leaves alone.
        """


class TempFile(msgspec.Struct, frozen=True):
    """A leftover with our prefix, of our uid, regular."""

    path: WorkspacePath
    name: str


class Workspace(Protocol):
    """The files under one root; every path is resolved by the kernel under a handle of that root.

    Calls are blocking and thread-safe. All raise the PathError family for what the path
    leads to: SymlinkRefused, NotARegularFile, CrossDevice, OutsideWorkspace, NotADirectory,
    AccessRefused, FileNotFound.
    """

    @property
    def root(self) -> str:
        """The real path of the root."""

    def stat(self, path: WorkspacePath) -> FileStat | None:
        """None if nothing has this name (a missing parent too)."""

    def read(self, path: WorkspacePath, *, most: int) -> FileBytes:
        """The whole content. Raises FileTooLarge over `most` bytes, ChangedWhileRead."""

    def names(self, path: WorkspacePath) -> list[ListedName]:
        """The names in a directory, unsorted, without our temporary files and the daemon's state."""

    def identity(self, path: WorkspacePath) -> tuple[int, int] | None:
        """(device, inode) of what stands there, link or not; None if absent."""

    def landing(self, change: DiskChange) -> Landing: ...

    def temps(self) -> list[TempFile]:
        """All leftovers in the tree."""

    def read_temp(self, temp: TempFile) -> FileBytes | None:
        """A leftover's content; None when it is gone, or not a regular file of ours. Raises as `read`."""

    def in_use(self, temp: TempFile) -> bool:
        """Whether another program holds a leftover open for writing; False where that can't be found out."""

    def unlink_temp(self, temp: TempFile) -> None:
        """Remove a leftover and sync its directory; nothing happens if it is not a regular file of ours."""

    def exchange_back(self, temp: TempFile, path: WorkspacePath) -> None:
        """Put a leftover's content back at `path` by exchange, and sync the directory (recovery only)."""

    def sync_directory(self, path: WorkspacePath) -> None:
        """Sync the directory that holds `path` (recovery only)."""

    def remove_empty(self, path: WorkspacePath) -> None:
        """Remove a directory and those below it, where nothing is left in them but each other."""

    def scan(self) -> ScanResult:
        """Every file that is not ignored, with its stat; see `ScanResult`."""

    def close(self) -> None: ...


class Scanned(msgspec.Struct, frozen=True, array_like=True):
    """One file that the scan met."""

    path: WorkspacePath
    signature: Signature
    mode: int


class ScanResult(msgspec.Struct, frozen=True):
    """The tree as it stands: files in path order; how many names were left out, by reason."""

    files: tuple[Scanned, ...]
    skipped: dict[str, int]


class Ignore(Protocol):
    """What listings, searches and scans leave out; never who may read or write what."""

    def ignored(self, path: WorkspacePath, *, directory: bool) -> bool: ...

    def refresh(self) -> None:
        """Look at the rule files again from now on."""


# --- watching --------------------------------------------------------------------------


class Hints(msgspec.Struct, frozen=True):
    """Where something may have changed; never what, nor that it did: the disk is asked for that."""

    paths: frozenset[WorkspacePath] = frozenset()  # files, or not known to be anything else
    folders: frozenset[WorkspacePath] = frozenset()  # came, went or moved, with all that is in them
    rescan: OutsideTrigger | None = None
    """Look everywhere. overflow: hints were lost; scan: there are none now; watch: other files are ignored now."""


class Watcher(Protocol):
    """Tells where to look. It filters what is never looked at, and decides nothing.

    Left out: our temporary files, version control's own folders, what is the daemon's own,
    and directories that are ignored, unless they were `follow`ed. It never follows a link.
    """

    @property
    def health(self) -> str:
        """ "live", or "degraded: …" with what is missing and what to do about it."""

    @property
    def unnamed(self) -> int:
        """How many names came after the start, and are there, that break the name rule, so that none is hinted at."""

    def start(self) -> None:
        """From the return on, nothing that happens is missed without a `rescan`. Blocking; degrades, never raises."""

    def follows(self, folder: WorkspacePath) -> bool:
        """Whether changes of names directly in this folder would be told."""

    def follow(self, folder: WorkspacePath) -> None:
        """Watch this folder too, though it is ignored: something in it is tracked. Blocking."""

    def hints(self) -> AsyncIterator[Hints]:
        """Until cancelled. While degraded, a `rescan` comes at intervals."""

    def close(self) -> None: ...
