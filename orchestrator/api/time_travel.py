"""tree_at, content_at and replay_check: the workspace at any point, for people who rebuild or check it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from orchestrator.api.journal_checks import DiskDifference
from orchestrator.api.operation import Operation
from orchestrator.api.parameters import Cursor, Limit, Params, PathText, Version
from orchestrator.api.results import Result

CHUNK_BYTES = 4 * 1024 * 1024
"""Of content in one answer at most; base64 makes a third more of it."""

SMALL_BYTES = 64 * 1024
"""A file up to this comes along with its tree."""

LeftOut = Literal["policy", "not_kept"]


class TreeAt(Params, frozen=True):
    at: Annotated[Version, Meta(description="'@N', or 'current'.")] = "current"
    contents: Annotated[bool, Meta(description="Also the bytes of small files; a page is shorter then.")] = False
    limit: Limit = 5000
    cursor: Cursor = None


class ContentAt(Params, frozen=True):
    path: PathText
    at: Annotated[Version, Meta(description="'@N': the content that the file had then.")]
    offset: Annotated[int, Meta(description="First byte, 0-based.", ge=0, le=2**63 - 1)] = 0
    limit: Annotated[int, Meta(description="Most bytes in one answer.", ge=1, le=CHUNK_BYTES)] = CHUNK_BYTES


class TreeEntry(Result, frozen=True, kw_only=True):
    """One file of a tree. left_out: why `content_at` will not give its content; then `digest` may be null."""

    path: str
    version_id: str
    digest: str | None = None
    mode: str | None = None  # octal, e.g. "0644"
    size: int | None = None
    left_out: LeftOut | None = None
    data: bytes | None = None  # base64 on the wire; with `contents`, of a small file


class Tree(Result, frozen=True, kw_only=True):
    """The tracked files as they were; a `cursor` holds the position, so that all pages are of one tree."""

    at: str
    entries: tuple[TreeEntry, ...] = ()
    unlisted: int = 0  # files whose names the caller may not see, on this page
    cursor: str | None = None


class Content(Result, frozen=True, kw_only=True):
    path: str
    version_id: str
    digest: str  # of all of it
    size: int
    offset: int
    data: bytes = b""  # base64 on the wire
    next: int | None = None  # offset to go on from


class ReplayReport(Result, frozen=True, kw_only=True):
    ok: bool = False
    at: str
    events: int
    files: int
    differences: tuple[DiskDifference, ...] = ()
    unchecked: tuple[str, ...] = ()  # paths of files whose content was never hashed


class NotWritten(Result, frozen=True, kw_only=True):
    path: str
    reason: str  # policy, not_kept, journal_corrupt, not_portable …
    message: str


class Replayed(Result, frozen=True, kw_only=True):
    """What a client that rebuilt a tree wrote, and what it could not."""

    at: str
    into: str
    files: int
    bytes: int
    complete: bool = False
    left_out: tuple[NotWritten, ...] = ()
    unlisted: int = 0


TREE_AT = Operation(
    "tree_at",
    TreeAt,
    Tree,
    "The tracked files at any point: path, version, hash, mode, size.",
    operator_only=True,
    weight="tree",
    command="",
)

CONTENT_AT = Operation(
    "content_at",
    ContentAt,
    Content,
    "The bytes that a file had at any point, in pieces.",
    operator_only=True,
    command="",
)

REPLAY_CHECK = Operation(
    "replay_check",
    Params,
    ReplayReport,
    "Rebuild every file from events and contents, and compare with the disk.",
    operator_only=True,
    weight="always",
    command="replay --check",
)
