"""blame and changes_since: who brought a line in, and what happened since."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from orchestrator.api.operation import READS, Operation
from orchestrator.api.parameters import Count, Globs, Params, PathText, Start, Version
from orchestrator.api.results import Authored, Result
from orchestrator.core import errors as e


class Blame(Params, frozen=True):
    path: PathText
    start: Start = 1
    end: Annotated[Count | None, Meta(description="Last line, included; default: the file's end.")] = None
    at: Annotated[Version | None, Meta(description="An earlier version, '@N'.")] = None


CHANGES_LIMIT = 100


class ChangesSince(Params, frozen=True):
    version: Annotated[Version, Meta(description="'@N': what happened after it.")]
    globs: Globs = ()
    limit: Annotated[int, Meta(description="Most paths in one answer.", ge=1, le=1000)] = CHANGES_LIMIT
    skip: Annotated[int, Meta(description="As `next` of the last answer says.", ge=0, le=2**31 - 1)] = 0


class BlamedLines(Authored, frozen=True, kw_only=True):
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


class BlameAnswer(Result, frozen=True, kw_only=True):
    path: str
    version_id: str
    start: int
    end: int
    total_lines: int
    ranges: tuple[BlamedLines, ...] = ()  # together all lines from start to end
    next: str | None = None  # where the answer has no room for all: the call that shows the rest
    warnings: tuple[str, ...] = ()


class PathChanged(Authored, frozen=True, kw_only=True):
    """What one version did to one path. `added` and `removed` are lines; null where they are not known or not shown."""

    version: str
    path: str
    kind: Literal["created", "changed", "deleted", "moved"]
    by: Literal["change", "external"]
    moved_from: str | None = None
    reverts: tuple[str, ...] = ()
    added: int | None = None
    removed: int | None = None


class Changes(Result, frozen=True, kw_only=True):
    changes: tuple[PathChanged, ...] = ()  # oldest first
    head: str  # all up to here is in this answer; go on from it
    more: bool = False  # whether more follows already
    next: str | None = None  # with `more`: the call that goes on, which may be within one change of many paths
    left_out: int = 0  # paths that the caller may not list


BLAME = Operation(
    "blame",
    Blame,
    BlameAnswer,
    "Who brought each line of a file in: agent, session, task, approver and change, by ranges of lines.",
    shape="text",
    raises=(*READS, e.BinaryFile, e.VersionNotKept, e.VersionUnknown),
    command="blame",
)

CHANGES_SINCE = Operation(
    "changes_since",
    ChangesSince,
    Changes,
    "What changed after a version, oldest first: path, kind, who, how many lines. "
    "Go on with `head` of the answer, or with the call in `next`; nothing is left out or comes twice.",
    weight="tree",
    raises=(e.VersionUnknown, e.ParameterInvalid),
    command="since",
)
