"""History: which content each path had, from when to when, by which author; a function from event to rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Literal

import msgspec

from orchestrator.core.change import PathChange
from orchestrator.core.content import FoundFile
from orchestrator.core.events.base import Recorded
from orchestrator.core.events.files import (
    ChangeApplied,
    ExternalFileChanged,
    ExternalFileCreated,
    ExternalFileRemoved,
    FilesFound,
)
from orchestrator.core.ids import AgentName, Digest, Seq, WorkspacePath

VERSION = 1
"""Raised when the rows change; the table is then rebuilt."""


class VersionRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One version of one file, as history knows it."""

    path: WorkspacePath
    seq: Seq  # the version_id
    effective: Seq  # from which @N on it is the content: the intent of a change, else seq
    at: int  # ms
    kind: Literal["found", "change", "external"]
    operation: str = ""
    digest: Digest | None = None  # None: absent from here on, or never hashed (see `present`)
    present: bool = True
    size: int | None = None
    mode: int | None = None
    change: Seq | None = None  # the intent
    agent: AgentName | None = None
    session: str | None = None
    task: Seq | None = None
    approval: Seq | None = None
    undoes: bool = False  # its change undoes others; the event says which
    moved_from: WorkspacePath | None = None

    @property
    def author(self) -> str | None:
        """Who changed it; of an external change whoever held the only lease, else nobody with a name."""
        return self.agent or ("outside" if self.kind == "external" else None)


class DigestLearned(msgspec.Struct, frozen=True):
    """The content of an earlier version is known by its hash now; the version stays the same.

    So it does where only permission bits changed: from `seq` on the file has `mode`.
    """

    path: WorkspacePath
    version: Seq
    digest: Digest
    size: int
    seq: Seq
    mode: int


def history(recorded: Recorded) -> Iterator[VersionRow | DigestLearned]:
    """What one event adds to history; most add nothing."""
    external = partial(VersionRow, seq=recorded.seq, effective=recorded.seq, at=recorded.at, kind="external")
    match recorded.event:
        case FilesFound(entries=entries):
            yield from (_found(recorded, entry) for entry in entries)
        case ChangeApplied() as applied:
            yield from (_changed(recorded, applied, change) for change in applied.paths if not change.directory)
        case ExternalFileChanged() | ExternalFileCreated() as event:
            yield external(
                path=event.path,
                digest=event.after,
                size=event.signature.size,
                mode=event.mode,
                agent=event.by,
                moved_from=event.moved_from,
            )
        case ExternalFileRemoved(path=path, by=by):
            yield external(path=path, present=False, agent=by)
        case _:
            return


def _changed(recorded: Recorded, applied: ChangeApplied, change: PathChange) -> VersionRow:
    provenance = applied.provenance
    return VersionRow(
        path=change.path,
        seq=recorded.seq,
        effective=applied.change,
        at=recorded.at,
        kind="change",
        operation=provenance.operation,
        digest=change.after,
        present=change.after is not None,
        size=change.signature.size if change.signature else None,
        mode=change.mode,
        change=applied.change,
        agent=recorded.agent,
        session=recorded.session,
        task=provenance.task,
        approval=provenance.approval,
        undoes=bool(provenance.reverts),
        moved_from=change.moved_from,
    )


def _found(recorded: Recorded, entry: FoundFile) -> VersionRow | DigestLearned:
    seq, size = recorded.seq, entry.signature.size
    if entry.version is not None and entry.digest is not None:
        return DigestLearned(entry.path, Seq(entry.version), entry.digest, size, seq, entry.mode)
    return VersionRow(
        path=entry.path,
        seq=seq,
        effective=seq,
        at=recorded.at,
        kind="found",
        digest=entry.digest,
        size=size,
        mode=entry.mode,
    )
