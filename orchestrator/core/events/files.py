"""Reads, changes, and what the world did to files."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec

from orchestrator.core.content import FoundFile, IntendedPath, LineRange, PathChange, Rung, Signature
from orchestrator.core.events.base import Event
from orchestrator.core.events.notices import UnseenChange
from orchestrator.core.ids import AgentName, Digest, Seq, SessionId, WorkspacePath
from orchestrator.core.merge_rules import ResolvedRegion

AbortCause = Literal["crash", "stale", "disk_full", "file_busy", "blob_missing", "io_error", "refused"]


class SeenLines(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Lines of one version that an answer showed."""

    path: WorkspacePath
    version: Seq
    ranges: tuple[LineRange, ...]
    total_lines: int
    cut: bool = False  # a line was shortened, so nothing of it counts as seen whole


class FileRead(Event, frozen=True, kw_only=True, tag="file_read"):
    """A caller was shown lines of a file."""

    operation: str
    seen: SeenLines
    bytes: int
    tokens: int  # estimate of what the answer's text costs a model
    approval: Seq | None = None  # the granted request that this read used up


class MetadataRead(Event, frozen=True, kw_only=True, tag="metadata_read"):
    """A caller was told facts about a path, or its history, but shown no content."""

    operation: str
    path: str  # escaped


class DirectoryListed(Event, frozen=True, kw_only=True, tag="directory_listed"):
    """A caller was shown names."""

    operation: str
    path: WorkspacePath
    globs: tuple[str, ...] = ()
    entries: int = 0


class ContentSearched(Event, frozen=True, kw_only=True, tag="content_searched"):
    """A caller searched contents and was shown the lines in `seen`."""

    redactable: ClassVar[tuple[str, ...]] = ("pattern",)

    pattern: str
    path: WorkspacePath
    globs: tuple[str, ...] = ()
    seen: tuple[SeenLines, ...] = ()
    total: int = 0
    files_searched: int = 0
    left_out: int = 0  # files that policy kept out
    tokens: int = 0


class DiffShown(Event, frozen=True, kw_only=True, tag="diff_shown"):
    """A caller was shown a diff between two versions."""

    path: WorkspacePath
    from_version: Seq
    to_version: Seq
    seen: SeenLines | None = None


class ReadRefused(Event, frozen=True, kw_only=True, tag="read_refused"):
    """A read, listing or search was refused."""

    redactable: ClassVar[tuple[str, ...]] = ("message",)

    operation: str
    path: str  # escaped, as asked for
    code: str
    message: str
    rule: str | None = None


class CallRefused(Event, frozen=True, kw_only=True, tag="call_refused"):
    """A call that could not be understood, or was not for this caller."""

    redactable: ClassVar[tuple[str, ...]] = ("message",)

    operation: str  # escaped
    code: str
    message: str


class ChangeIntended(Event, frozen=True, kw_only=True, tag="change_intended"):
    """A change is about to touch the disk; an outcome follows, if need be by recovery."""

    redactable: ClassVar[tuple[str, ...]] = ("reason",)

    operation: str
    paths: tuple[IntendedPath, ...]
    rung: Rung = "current"
    score: float = 1.0
    base: Seq | None = None  # the version that it was made against
    on_seen_whole: bool = False  # rung current, and the session had seen all of that version
    parents: tuple[WorkspacePath, ...] = ()  # directories to create first, outermost first
    reverts: tuple[Seq, ...] = ()
    supersedes: Seq | None = None  # a conflict that this change answers
    approval: Seq | None = None
    settles: Seq | None = None  # a conflict that a person settled with this change
    task: Seq | None = None
    reason: str = ""
    warnings: tuple[str, ...] = ()
    leases: tuple[Seq, ...] = ()  # of others who held its paths alone
    settled: tuple[ResolvedRegion, ...] = ()  # of a merge: each place that it changed, and why that is safe
    emptied: tuple[WorkspacePath, ...] = ()  # directories that go after it with those below, where nothing is left
    unmade: tuple[WorkspacePath, ...] = ()  # that what it undoes had made; innermost first, where nothing is left
    unseen: tuple[UnseenChange, ...] = ()  # what its author had read and not seen since, at most MOST_UNSEEN


class ChangeApplied(Event, frozen=True, kw_only=True, tag="change_applied"):
    """A change is on disk and synced; from here on each path's content is its `after`."""

    change: Seq  # the ChangeIntended that it closes
    paths: tuple[PathChange, ...]
    rung: Rung = "current"
    score: float = 1.0
    reverts: tuple[Seq, ...] = ()
    approval: Seq | None = None
    supersedes: Seq | None = None
    on_seen_whole: bool = False
    task: Seq | None = None
    operation: str = ""
    recovered: bool = False  # closed by recovery after a crash
    settled: tuple[ResolvedRegion, ...] = ()  # of a merge, as the intent had it
    same_symbol: tuple[str, ...] = ()  # functions and the like that others changed too since the base
    unseen: tuple[UnseenChange, ...] = ()  # as the intent had it


class ChangeAborted(Event, frozen=True, kw_only=True, tag="change_aborted"):
    """The change did not happen; the disk holds what it held before, or what somebody else put there."""

    change: Seq
    cause: AbortCause


class DivergedPath(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What recovery found where neither `before` nor `after` stood."""

    path: WorkspacePath
    found: Digest | None  # None: nothing there
    temp_found: Digest | None = None  # content of the temporary file, kept as a blob


class ChangeDiverged(Event, frozen=True, kw_only=True, tag="change_diverged"):
    """Somebody else's content stands where the change would have; it is left alone, and all bytes are kept."""

    change: Seq
    paths: tuple[DivergedPath, ...]


class ChangeRefused(Event, frozen=True, kw_only=True, tag="change_refused"):
    """A change was refused before it began."""

    redactable: ClassVar[tuple[str, ...]] = ("message",)

    operation: str
    paths: tuple[str, ...]  # escaped, as asked for
    code: str
    message: str
    hint: str = ""
    rule: str | None = None
    details: dict[str, Any] = msgspec.field(
        default_factory=dict
    )  # as answered: line numbers, counts, versions; never content
    quoted: bool = False  # the answer showed lines of the file besides, which are not kept


class FilesFound(Event, frozen=True, kw_only=True, tag="files_found"):
    """Files that were there when the daemon first looked, or a digest learned later. At most 500 entries."""

    entries: tuple[FoundFile, ...]


class ExternalFileChanged(Event, frozen=True, kw_only=True, tag="external_file_changed"):
    """Something else than the daemon gave a file other content."""

    path: WorkspacePath
    before: Digest | None  # None: the content before was never hashed
    after: Digest | None  # None: too large to hash now
    signature: Signature
    mode: int
    kept: bool
    by: AgentName | None = None  # the holder of the only lease on it, where that is certain
    lease: Seq | None = None
    moved_from: WorkspacePath | None = None  # where this content stood until now: a file was renamed over this one


class ExternalFileCreated(Event, frozen=True, kw_only=True, tag="external_file_created"):
    """Something else than the daemon made a file."""

    path: WorkspacePath
    after: Digest | None
    signature: Signature
    mode: int
    kept: bool
    moved_from: WorkspacePath | None = None  # where the same content stood until now
    by: AgentName | None = None  # the holder of the only lease on it, where that is certain
    lease: Seq | None = None
    parents: tuple[WorkspacePath, ...] = ()  # directories above it that came with it, outermost first


class ExternalFileRemoved(Event, frozen=True, kw_only=True, tag="external_file_removed"):
    """Something else than the daemon removed a file."""

    path: WorkspacePath
    before: Digest | None
    moved_to: WorkspacePath | None = None
    by: AgentName | None = None  # the holder of the only lease on it, where that is certain
    lease: Seq | None = None


class OrphanContentKept(Event, frozen=True, kw_only=True, tag="orphan_content_kept"):
    """A temporary file held bytes that no event explained; they are a blob now, and the file is gone."""

    path: WorkspacePath  # where the temporary file stood
    digest: Digest
    size: int
    change: Seq | None = None  # the intent that named it, if one did


class ContentShown(Event, frozen=True, kw_only=True, tag="content_shown"):
    """Content of a version was shown to a session in a refusal or conflict."""

    session: SessionId
    seen: SeenLines
