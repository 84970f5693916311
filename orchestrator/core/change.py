"""What a change is made of: what it does to each path, who wants it and why, and how it fits.

The same structs go from the decision through intent, approval or conflict to the outcome and the answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Literal

import msgspec

from orchestrator.core.annotations import FromContent, NewContent, Redactable
from orchestrator.core.commands import CommandLine
from orchestrator.core.content import LineHunk, LineRange, ResolvedRegion, Rung, Signature
from orchestrator.core.ids import Checksum, Digest, Seq, WorkspacePath
from orchestrator.core.policy.rules import Action

MOST_UNSEEN = 20
"""Pieces that a change carries; `stale_readers` and the journal have the rest."""


DirectoryChange = Literal["made", "removed"]


class PathChange(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What a change does to one path. `before`/`after` None: the path is absent then."""

    path: WorkspacePath
    before: Digest | None
    after: NewContent[Digest | None]
    hunks: FromContent[tuple[LineHunk, ...]] = ()
    mode: int | None = None  # permission bits of `after`; None: those of the file before, or of a new one
    signature: FromContent[Signature | None] = None  # of `after`, once it is on disk
    moved_from: WorkspacePath | None = None  # where this file was before
    rewritten: bool = False  # with `moved_from`: not by one rename, but written anew here and removed there
    directory: DirectoryChange | None = None  # of a directory by itself; it has no content
    previous: Seq | None = None  # the version_id that `before` had; in outcomes
    binary: FromContent[bool] = False  # no hunks, because it is not text
    encoding: FromContent[str | None] = None  # of `after`, where nothing in its bytes says it
    temp: str | None = None  # name of the temporary file, in the same directory; in intents

    @property
    def present(self) -> bool:
        """Whether something is at the path afterwards."""
        return self.after is not None or self.directory == "made"

    @property
    def renamed(self) -> bool:
        """Whether one rename brings the file here, unchanged."""
        return self.moved_from is not None and not self.rewritten

    def counts(self, before: Digest | None) -> tuple[int, int] | None:
        """Lines added and removed, where the file held `before`, under whichever path; None: they were not compared."""
        if not self.hunks and before != self.after:
            return None
        return sum(hunk.new_len for hunk in self.hunks), sum(hunk.old_len for hunk in self.hunks)


class UnseenChange(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Lines that the author of a change had read, and that others had changed since without its having looked.

    `seen` counts in `version`, the one that it saw; `now` in the content when its change was decided.
    Ranges are 1-based, ends included; end < start: no lines. `added`: `seen` is two unchanged
    lines, and `now` was inserted between them.
    """

    path: WorkspacePath
    version: Seq
    seen: LineRange
    now: LineRange
    by: tuple[str, ...]
    since: Seq
    added: bool = False


class Provenance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """By which operation a change is made, what for, and what it answers."""

    operation: str
    task: Seq | None = None
    reason: Redactable[str] = ""
    reverts: tuple[Seq, ...] = ()  # the changes that it undoes
    supersedes: Seq | None = None  # a conflict that it answers
    resolves: Seq | None = None  # a conflict that a person or reviewer resolves with it
    approval: Seq | None = None  # the granted request that it carries out
    grants: tuple[Seq, ...] = ()  # those that allowed what policy asks about
    accepted_by: str | None = None  # who said yes to it, where it is a reviewer's proposal
    unseen: FromContent[tuple[UnseenChange, ...]] = ()  # what its author had read and not seen since
    brought: FromContent[int] = 0  # bytes of the texts that the call brought

    def without_reason(self) -> Provenance:
        """For where the reason must not be stored a second time, as a person may redact it."""
        return msgspec.structs.replace(self, reason="")


class Fit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """How a change fits what it is made to."""

    rung: FromContent[Rung] = "current"
    score: FromContent[float] = 1.0
    base: Seq | None = None  # the version that it was made against
    on_seen_whole: FromContent[bool] = False  # rung current, and the session had seen all of that version
    same_symbol: FromContent[tuple[str, ...]] = ()  # functions and the like that others changed too since the base
    merge: FromContent[tuple[ResolvedRegion, ...]] = ()  # each place that a merge changed, and why that is safe
    warnings: FromContent[tuple[str, ...]] = ()


class Directories(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The directories that come and go with a change of files."""

    made: tuple[WorkspacePath, ...] = ()  # created first, outermost first
    emptied: tuple[WorkspacePath, ...] = ()  # removed after it with those below, where nothing is left in them
    unmade: tuple[WorkspacePath, ...] = ()  # removed after it by themselves, where nothing is left; innermost first


class PermissionCheck(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """An act on a path that policy must allow."""

    action: Action
    path: WorkspacePath
    others_work: bool = False
    directory: bool = False
    size: FromContent[int | None] = None  # of the content that is to be there
    command: CommandLine | None = None  # of a run, which begins in `path`


def running(line: CommandLine) -> PermissionCheck:
    """The act of running a command."""
    return PermissionCheck("run", line.cwd, directory=True, command=line)


def checksum_of(
    paths: Iterable[PathChange],
    directories: Directories,
    permissions: Iterable[PermissionCheck],
    read_version: Seq | None = None,
) -> Checksum:
    """Of all that a request would do: paths, contents before and after, modes, moves, directories; or let be seen."""
    rows = [(each.path, each.before, each.after, each.mode, each.moved_from, each.directory) for each in paths]
    said = msgspec.json.encode((rows, directories, tuple(permissions), read_version))
    return Checksum("sha256:" + hashlib.sha256(said).hexdigest())
