"""Reads, changes, and external changes of files."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec

from orchestrator.core.annotations import FromContent, NewContent, Redactable
from orchestrator.core.change import Directories, Fit, PathChange, Provenance
from orchestrator.core.content import FoundFile, LineRange, SeenLines, Signature
from orchestrator.core.events.base import Event, ExternalChange, Outcome, Refusal
from orchestrator.core.ids import Digest, EscapedPath, Seq, SessionId, WorkspacePath

ExternalTrigger = Literal["watch", "scan", "overflow", "adopt", "command", "hook", "acp"]
AbortCause = Literal["crash", "stale", "disk_full", "file_busy", "blob_missing", "io_error", "refused"]


class HiddenSecret(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where an answer hid a secret: 1-based line, characters from `start` to before `end`; and its kind."""

    line: int
    start: int
    end: int
    kind: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.kind}"


class FileRead(Event, frozen=True, kw_only=True, tag="file_read"):
    """A caller was shown lines of a file."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("answered",)

    operation: str
    seen: SeenLines
    bytes: int
    tokens: int  # estimate of what the answer's text costs a model
    approval: Seq | None = None  # the granted request that let it be shown
    hidden: FromContent[tuple[HiddenSecret, ...]] = ()  # secrets in these lines that were not shown
    known_from: Seq | None = None  # of a delta: lines of `seen` that it had seen so in that version were not shown
    from_end: FromContent[LineRange | None] = None  # the lines, where they are counted from the end: -1 is the last


class MetadataRead(Event, frozen=True, kw_only=True, tag="metadata_read"):
    """A caller was shown facts about a path, or its history, but no content."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("answered",)

    operation: str
    path: EscapedPath


class DirectoryListed(Event, frozen=True, kw_only=True, tag="directory_listed"):
    """A caller was shown names."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("answered",)

    operation: str
    path: WorkspacePath
    globs: tuple[str, ...] = ()
    entries: int = 0


class ContentSearched(Event, frozen=True, kw_only=True, tag="content_searched"):
    """A caller searched contents and was shown the lines in `seen`."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("answered",)

    pattern: Redactable[str]
    path: WorkspacePath
    globs: tuple[str, ...] = ()
    mode: Literal["exact", "regex", "fuzzy", "semantic"] = "exact"
    seen: tuple[SeenLines, ...] = ()
    total: int = 0
    files_searched: int = 0
    left_out: int = 0  # files that policy kept out
    tokens: int = 0


class DiffShown(Event, frozen=True, kw_only=True, tag="diff_shown"):
    """A caller was shown a diff between two versions."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("answered",)

    path: WorkspacePath
    from_version: Seq
    to_version: Seq
    seen: tuple[SeenLines, ...] = ()  # of the newer version; of a diff of the tree, of each file
    tokens: int = 0  # estimate of what the diff costs a model


class AnswerShown(Event, frozen=True, kw_only=True, tag="answer_shown"):
    """A caller was shown an answer that no other event records: a preview, a list, a state, a wait."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("answered",)

    operation: str
    status: str = ""  # of a change: preview, waiting, conflict …
    ids: tuple[Seq, ...] = ()  # events and versions that it named
    paths: tuple[EscapedPath, ...] = ()  # that it named
    more: int = 0  # ids and paths that it named besides
    seen: tuple[SeenLines, ...] = ()  # lines of files that it showed
    tokens: int = 0  # estimate of what its diffs cost a model


class ReadRefused(Refusal, frozen=True, kw_only=True, tag="read_refused"):
    """A read, listing or search was refused."""

    path: EscapedPath
    rule: str | None = None


class CallRefused(Refusal, frozen=True, kw_only=True, tag="call_refused"):
    """A call that could not be understood, was not for this caller, or failed in the daemon or on its way back."""


class ChangeIntended(Event, frozen=True, kw_only=True, tag="change_intended"):
    """A change is about to touch the disk; an outcome follows, if need be by recovery."""

    proposes: ClassVar[bool] = True

    provenance: Provenance
    paths: tuple[PathChange, ...]
    fit: Fit = Fit()
    directories: Directories = Directories()
    leases: tuple[Seq, ...] = ()  # of others who held its paths alone

    def outcome(
        self, change: Seq, paths: tuple[PathChange, ...], *, warnings: tuple[str, ...] = (), recovered: bool = False
    ) -> ChangeApplied:
        """The outcome once these paths are on disk. The reason stays here alone, so that one redaction takes it out."""
        return ChangeApplied(
            change=change,
            provenance=self.provenance.without_reason(),
            paths=paths,
            fit=msgspec.structs.replace(self.fit, warnings=(*self.fit.warnings, *warnings)),
            recovered=recovered,
        )


class ChangeApplied(Event, frozen=True, kw_only=True, tag="change_applied"):
    """A change is on disk and synced; from here on each path's content is its `after`."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("applied",)
    changes_files: ClassVar[bool] = True
    kept: ClassVar[bool] = False  # the intent brought the contents

    change: Seq  # the ChangeIntended that it closes
    provenance: Provenance  # as the intent had it, but for the reason
    paths: tuple[PathChange, ...]
    fit: Fit = Fit()
    recovered: bool = False  # closed by recovery after a crash


class ChangeAborted(Event, frozen=True, kw_only=True, tag="change_aborted"):
    """The change did not happen; the disk holds what it held before, or what somebody else put there."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("aborted",)

    change: Seq
    cause: AbortCause


class DivergedPath(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What recovery found where neither `before` nor `after` was."""

    path: WorkspacePath
    found: NewContent[Digest | None]  # None: nothing there
    temp_found: NewContent[Digest | None] = None  # content of the temporary file, kept as a blob


class ChangeDiverged(Event, frozen=True, kw_only=True, tag="change_diverged"):
    """Somebody else's content is where the change would be; it is left alone, and all bytes are kept."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("diverged",)

    change: Seq
    paths: tuple[DivergedPath, ...]


class ChangeRefused(Refusal, frozen=True, kw_only=True, tag="change_refused"):
    """A change was refused before it began."""

    paths: tuple[EscapedPath, ...]
    hint: str = ""
    rule: str | None = None
    details: dict[str, Any] = msgspec.field(
        default_factory=dict
    )  # as answered: line numbers, counts, versions; never content
    quoted: bool = False  # the answer showed lines of the file besides, which are not kept


class FilesFound(Event, frozen=True, kw_only=True, tag="files_found"):
    """Files that were there when the daemon first looked, or a digest learned later. At most 500 entries."""

    entries: tuple[FoundFile, ...]
    more: bool = False  # the first scan goes on in the next event


class ExternalFileChanged(ExternalChange, frozen=True, kw_only=True, tag="external_file_changed"):
    """Something else than the daemon gave a file other content."""

    before: Digest | None  # None: the content before was never hashed
    after: NewContent[Digest | None]  # None: too large to hash now
    signature: FromContent[Signature]
    mode: int
    kept: FromContent[bool]
    moved_from: WorkspacePath | None = None  # where this content was until now: a file was renamed over this one


class ExternalFileCreated(ExternalChange, frozen=True, kw_only=True, tag="external_file_created"):
    """Something else than the daemon made a file."""

    after: NewContent[Digest | None]
    signature: FromContent[Signature]
    mode: int
    kept: FromContent[bool]
    moved_from: WorkspacePath | None = None  # where the same content was until now
    parents: tuple[WorkspacePath, ...] = ()  # directories above it that were made with it, outermost first


class ExternalFileRemoved(ExternalChange, frozen=True, kw_only=True, tag="external_file_removed"):
    """Something else than the daemon removed a file."""

    before: Digest | None
    moved_to: WorkspacePath | None = None


class ExternalBatchOpened(Event, frozen=True, kw_only=True, tag="external_batch_opened"):
    """The outside changes whose `cause` is this event were one act; it can be reverted as one.

    Those of a command have an author: the agent that ran it. The `cause` of this event is then its CommandStarted.
    So have those that an agent's own tool made, as a hook of its client told, or the agent itself over ACP.
    """

    trigger: ExternalTrigger
    tool: str = ""  # of a hook, or over ACP: the client and its tool


class ExternalBatchClosed(Event, frozen=True, kw_only=True, tag="external_batch_closed"):
    """The group is whole: so many changes."""

    group: Seq
    changes: int
    also: tuple[Seq, ...] = ()  # of them: those that were appended before the group was opened


class FileTagged(Event, frozen=True, kw_only=True, tag="file_tagged"):
    """Tags were set on a file, or taken off."""

    outcomes: ClassVar[tuple[Outcome, ...]] = ("applied",)

    path: WorkspacePath
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class OrphanContentKept(Event, frozen=True, kw_only=True, tag="orphan_content_kept"):
    """A temporary file held bytes that no event explained; they are a blob now, and the file is gone."""

    path: WorkspacePath  # where the temporary file was
    digest: NewContent[Digest]
    size: FromContent[int]
    change: Seq | None = None  # the intent that named it, if one did


class ContentShown(Event, frozen=True, kw_only=True, tag="content_shown"):
    """Content of a version was shown to a session in a refusal or conflict."""

    session: SessionId
    seen: SeenLines


def path_changes(event: Event) -> tuple[PathChange, ...]:
    """What an event did to each path; nothing for most. `binary` where a content was never hashed."""
    match event:
        case ChangeApplied(paths=paths):
            return paths
        case ExternalFileChanged(path=path, before=before, after=after, moved_from=source):
            return (PathChange(path, before, after, moved_from=source, binary=before is None or after is None),)
        case ExternalFileCreated(path=path, after=after, moved_from=source):
            return (PathChange(path, None, after, moved_from=source, binary=after is None),)
        case ExternalFileRemoved(path=path, before=before):
            return (PathChange(path, before, None, binary=before is None),)
        case _:
            return ()
