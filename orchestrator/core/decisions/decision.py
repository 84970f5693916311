"""What decisions about changes are made of: the facts that go in, and the closed family that comes out."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from orchestrator.core.content import LineHunk, Rung
from orchestrator.core.errors import OrchestratorError
from orchestrator.core.ids import AgentName, Digest, Seq, WorkspacePath
from orchestrator.core.merge_rules import AutomaticRule, ResolvedRegion
from orchestrator.core.policy.rules import EditRules
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.symbols import Outline
from orchestrator.core.three_way import Region


class Held(msgspec.Struct, frozen=True):
    """What a path holds right now, read under its lock."""

    data: bytes
    digest: Digest
    mode: int
    document: Document | None = None  # of `data`, where somebody decoded it already


class Base(msgspec.Struct, frozen=True):
    """The version that a change is made against."""

    version: Seq
    digest: Digest
    implied: bool = False  # taken from what the session saw, not named by the caller
    seen_whole: bool = False


class Facts(msgspec.Struct, frozen=True):
    """What is known of one path when a decision about it is made.

    `contents` holds blobs by digest; a decision that misses one answers Need.
    """

    path: WorkspacePath
    held: Held | None  # None: nothing stands there
    version: Seq | None  # of what is held
    base: Base | None = None
    contents: Mapping[Digest, bytes] = {}
    content_hidden: bool = False  # the caller may not know the content: no outcome may depend on it
    only_own_changes: bool = False  # whatever changed since the base, the caller did
    outlines: Mapping[Digest, Outline | None] = {}  # of contents; None: no text
    edits: EditRules | None = None  # what policy lets a merge settle; None: nothing, it merges as git does
    error: OrchestratorError | None = None  # why nothing can be said of it: no regular file, or too large a one

    @property
    def base_is_current(self) -> bool:
        """Whether the base stands there now. A caller who may not know the content learns no more than versions."""
        if self.base is None or self.held is None:
            return False
        return self.base.version == self.version if self.content_hidden else self.base.digest == self.held.digest


class Source(msgspec.Struct, frozen=True):
    """A content to be outlined; the path says in which language."""

    path: WorkspacePath
    digest: Digest
    data: bytes


class Need(msgspec.Struct, frozen=True):
    """Fetch these contents, and the outlines of these, and decide again."""

    digests: tuple[Digest, ...] = ()
    outlines: tuple[Source, ...] = ()


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What a change does to one path."""

    path: WorkspacePath
    before: Digest | None
    after: Digest | None
    data: bytes | None = None  # of `after`; None for a move
    mode: int | None = None
    document: Document | None = None  # what decoding `data` is sure to give
    hunks: tuple[LineHunk, ...] = ()
    binary: bool = False
    encoding: str | None = None  # of `data`, where nothing in its bytes says it
    moved_from: WorkspacePath | None = None  # one rename brings it here, unchanged
    renamed_from: WorkspacePath | None = None  # the same file, with other content and another name
    directory: bool = False
    names: tuple[WorkspacePath, ...] = ()  # others that its contents stood under; not shown to who may not see all


class Dependency(msgspec.Struct, frozen=True, kw_only=True):
    """Later work in a file of which earlier changes are undone."""

    path: WorkspacePath
    change: Seq
    agent: AgentName | None  # None: by other hands
    on: tuple[Seq, ...]  # the changes that are undone
    overlaps: bool  # it stands in the way; else it is kept


class ConflictOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The change fits nowhere; keep all three contents and let it wait."""

    path: WorkspacePath
    base: Digest | None
    base_version: Seq | None
    proposed: bytes | None  # None: the proposal is that nothing stands there
    ahead: bool = False  # it would apply, and policy wants it looked at first
    same_symbol: tuple[str, ...] = ()  # why so: what others changed too since the base
    regions: tuple[Region, ...] = ()
    why: str = ""  # if not because both sides changed the same lines
    reverts: tuple[Seq, ...] = ()
    names: tuple[WorkspacePath, ...] = ()  # as of a Part
    settleable: tuple[AutomaticRule, ...] = ()  # rules that would settle it, if policy let them


class Apply(msgspec.Struct, frozen=True, kw_only=True):
    """The change fits; carry it out. `clashes` are the parts of an undo that do not: they wait for a person."""

    parts: tuple[Part, ...]
    rung: Rung = "current"
    score: float = 1.0
    base: Seq | None = None
    on_seen_whole: bool = False
    warnings: tuple[str, ...] = ()
    settled: tuple[ResolvedRegion, ...] = ()  # of a merge: each place that it changed, and why that is safe
    same_symbol: tuple[str, ...] = ()  # what others changed too since the base, by dotted name
    clashes: tuple[ConflictOutcome, ...] = ()
    reverts: tuple[Seq, ...] = ()  # of an undo: the changes that it undoes in full
    dependencies: tuple[Dependency, ...] = ()
    emptied: tuple[WorkspacePath, ...] = ()  # directories that go, with those below them, where nothing is left in them
    unmade: tuple[WorkspacePath, ...] = ()  # of an undo: directories that go by themselves; innermost first


Outcome = Need | Apply | ConflictOutcome
