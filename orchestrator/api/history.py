"""What happened: who brought a line in, what changed since, the tree at any point, and the undo of many changes."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.operation import CHANGES, READS, SHORT_BYTES, Operation, OperatorOperation
from orchestrator.core import errors as e


class Blame(p.Params, frozen=True):
    path: p.PathText
    start: p.Start = 1
    end: Annotated[p.Count | None, Meta(description="Last line, included; default: the file's end.")] = None
    at: Annotated[p.Version | None, Meta(description="An earlier version, '@N'.")] = None


CHANGES_LIMIT = 100


class ChangesSince(p.Params, frozen=True):
    version: Annotated[p.Version, Meta(description="'@N': what happened after it.")]
    globs: p.Globs = ()
    limit: Annotated[int, Meta(description="Most paths in one answer.", ge=1, le=1000)] = CHANGES_LIMIT
    skip: p.Skip = 0


class BlamedLines(r.Authored, frozen=True, kw_only=True):
    """Adjacent lines that came with one version.

    kind: `change` through the daemon, `external` by another program, `found` when the daemon first looked, `unknown`:
    the content of `version` was not kept, so they came with it, before it, or with the next one that was kept.
    """

    start: int
    end: int
    kind: Literal["change", "external", "found", "unknown"]
    version: str
    approver: str | None = None
    path: str | None = None  # the name that the file had then, if it was another


class BlameAnswer(r.Result, frozen=True, kw_only=True):
    path: str
    version_id: str
    start: int
    end: int
    total_lines: int
    ranges: tuple[BlamedLines, ...] = ()  # together all lines from start to end
    next: str | None = None  # where the answer has no room for all: the call that shows the rest
    warnings: tuple[str, ...] = ()


class PathChanged(r.Authored, frozen=True, kw_only=True):
    """What one version did to one path. `added` and `removed` are lines; null where they are not known or not shown."""

    version: str
    path: str
    kind: Literal["created", "changed", "deleted", "moved"]
    by: Literal["change", "external"]
    moved_from: str | None = None
    reverts: tuple[str, ...] = ()
    added: int | None = None
    removed: int | None = None


class Changes(r.Result, frozen=True, kw_only=True):
    changes: tuple[PathChanged, ...] = ()  # oldest first
    head: str  # all up to here is in this answer; go on from it
    more: bool = False  # whether more follows already
    next: str | None = None  # with `more`: the call that goes on, which may be within one change of many paths
    left_out: int = 0  # paths that take a person's yes to be listed


BLAME = Operation(
    "blame",
    Blame,
    BlameAnswer,
    "Who brought each line of a file in: agent, session, task, approver and change, by ranges of lines.",
    opens_session=False,
    raises=(*READS, e.BinaryFile, e.VersionNotKept, e.VersionTooLarge, e.VersionUnknown),
    command="blame",
)

CHANGES_SINCE = Operation(
    "changes_since",
    ChangesSince,
    Changes,
    "What changed after a version, oldest first: path, kind, who, how many lines. "
    "Go on with `head` of the answer, or with the call in `next`; nothing is left out or comes twice.",
    opens_session=False,
    weight="tree",
    raises=(e.VersionUnknown, e.ParameterInvalid),
    command="since",
)


class Rollback(p.ChangeParams, frozen=True):
    agent: Annotated[
        p.Name | None, Meta(description="Only changes of this agent; 'outside': only external changes.")
    ] = None
    session: Annotated[p.Name | None, Meta(description="Only changes of this session.")] = None
    task: Annotated[p.Version | None, Meta(description="Only changes of this task ('@N').")] = None
    globs: Annotated[
        tuple[p.GlobText, ...],
        Meta(
            description="Only these files, gitignore-style; accepts a part of a preview.",
            max_length=p.MOST_ENTRIES,
        ),
    ] = ()
    since: Annotated[p.Version | None, Meta(description=f"Only what came after: {p.MOMENT}.")] = None
    until: Annotated[p.Version | None, Meta(description=f"Only what came until then: {p.MOMENT}.")] = None


class UndoneFile(r.Result, frozen=True, kw_only=True):
    """One file of a rollback."""

    path: str
    status: Literal["changed", "created", "deleted", "moved", "conflict"]
    added: int | None = None  # null where its content may not be shown, or was not compared (large, binary)
    removed: int | None = None
    diff: str | None = None  # null where it may not be shown, is not text, or where the answer's room was used up
    moved_from: str | None = None
    conflict: str | None = None  # '@N', once it waits


class Dependency(r.Result, frozen=True, kw_only=True):
    """Later work in a file of which earlier changes are undone."""

    path: str
    change: str
    agent: str | None = None
    on: tuple[str, ...] = ()  # the changes that are undone
    more_on: int = 0
    overlaps: bool = False  # true: it is in the way, and the file is a conflict; false: it is kept


class RollbackAnswer(r.ChangeAnswer, frozen=True, kw_only=True):
    """Of each list the first members, as far as there is room, and how many more there are."""

    changes: tuple[str, ...] = ()  # what is undone in full
    more_changes: int = 0
    files: tuple[UndoneFile, ...] = ()  # by path; where not all are listed, those in conflict
    more_files: int = 0
    dependencies: tuple[Dependency, ...] = ()  # those that overlap first
    more_dependencies: int = 0
    conflicts: tuple[str, ...] = ()
    more_conflicts: int = 0
    rest: str = ""  # where some are not listed: the calls that list them


ROLLBACK = Operation(
    "rollback",
    Rollback,
    RollbackAnswer,
    "Undo all changes of an agent, session, task, of some files or of a span of time, as one change. "
    "Later work of others is kept; where it overlaps, the file becomes a conflict.",
    writes=True,
    destructive=True,
    weight="always",
    most_bytes=SHORT_BYTES,
    raises=(*CHANGES, e.VersionUnknown, e.RevertImpossible, e.NothingToChange, e.ParameterInvalid),
    command="rollback",
)


CHUNK_BYTES = 4 * 1024 * 1024
"""Of content in one answer at most; base64 makes a third more of it."""

SMALL_BYTES = 64 * 1024
"""A file up to this comes along with its tree."""


class TreeAt(p.Params, frozen=True):
    at: Annotated[p.Version, Meta(description="'@N', '@start' or 'current'.")] = "current"
    contents: Annotated[bool, Meta(description="Also the bytes of small files; a page is shorter then.")] = False
    limit: p.Limit = 5000
    cursor: p.Cursor = None


class ContentAt(p.Params, frozen=True):
    path: p.PathText
    at: Annotated[p.Version, Meta(description="'@N': the content that the file had then.")]
    offset: Annotated[int, Meta(description="First byte, 0-based.", ge=0, le=2**63 - 1)] = 0
    limit: Annotated[int, Meta(description="Most bytes in one answer.", ge=1, le=CHUNK_BYTES)] = CHUNK_BYTES


class TreeEntry(r.Result, frozen=True, kw_only=True):
    """One file of a tree. left_out: why `content_at` will not give its content; then `digest` may be null."""

    path: str
    version_id: str
    digest: str | None = None
    mode: str | None = None  # octal, e.g. "0644"
    size: int | None = None
    left_out: r.LeftOut | None = None
    data: bytes | None = None  # base64 on the wire; with `contents`, of a small file


class Tree(r.Result, frozen=True, kw_only=True):
    """The tracked files as they were; a `cursor` holds the position, so that all pages are of one tree."""

    at: str
    entries: tuple[TreeEntry, ...] = ()
    unlisted: int = 0  # files whose names the caller may not see, on this page
    cursor: str | None = None
    warnings: tuple[str, ...] = ()


class Content(r.Result, frozen=True, kw_only=True):
    path: str
    version_id: str
    digest: str  # of all of it
    size: int
    offset: int
    data: bytes = b""  # base64 on the wire
    next: int | None = None  # offset to go on from


class NotWritten(r.Result, frozen=True, kw_only=True):
    path: str
    reason: str  # policy, not_kept, journal_corrupt, not_portable …


class Replayed(r.Result, frozen=True, kw_only=True):
    """What a client that rebuilt a tree wrote, and what it could not."""

    at: str
    into: str
    files: int
    bytes: int
    complete: bool = False
    left_out: tuple[NotWritten, ...] = ()
    unlisted: int = 0
    warnings: tuple[str, ...] = ()


TREE_AT = OperatorOperation(
    "tree_at",
    TreeAt,
    Tree,
    "The tracked files at any point: path, version, hash, mode, size.",
    weight="tree",
    command="",
)

CONTENT_AT = OperatorOperation(
    "content_at",
    ContentAt,
    Content,
    "The bytes that a file had at any point, in pieces.",
    command="",
)
