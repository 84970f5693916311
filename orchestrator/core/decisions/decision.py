"""What decisions about changes are made of: the facts that go in, and the closed family that comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from orchestrator.core.change import Directories, Fit, PathChange
from orchestrator.core.content import Content, LineHunk, Region, SplicedContent, digest_of
from orchestrator.core.errors import FileNotFound, OrchestratorError
from orchestrator.core.ids import AgentName, Digest, Seq, WorkspacePath
from orchestrator.core.policy.rules import EditRules
from orchestrator.core.splices import ToSplice
from orchestrator.core.text.encoding import EMPTY, Document, decode, remembered
from orchestrator.core.text.symbols import Outline
from orchestrator.core.text.unified_diff import line_hunks


class Held(msgspec.Struct, frozen=True):
    """What a path holds right now, read under its lock."""

    data: Content
    digest: Digest
    mode: int
    document: Document | None = None  # of `data`, where somebody decoded it already

    @property
    def text(self) -> Document | None:
        """None: it is not text."""
        return self.document or decode(self.data)

    def __reduce__(self) -> tuple[object, ...]:
        """For a worker: without a text that the bytes give again."""
        return Held, (self.data, self.digest, self.mode, _only_here(self.document))


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
    held: Held | None  # None: absent
    version: Seq | None  # of what is held
    base: Base | None = None
    contents: Mapping[Digest, Content] = {}
    content_hidden: bool = False  # the caller may not know the content: no outcome may depend on it
    only_own_changes: bool = False  # whatever changed since the base, the caller did
    outlines: Mapping[Digest, Outline | None] = {}  # of contents; None: no text
    spliced: Mapping[ToSplice, SplicedContent] = {}  # large contents that a decision makes
    edits: EditRules | None = None  # what policy lets a merge resolve; None: nothing, it merges as git does
    error: OrchestratorError | None = None  # why it can't be read: no regular file, or too large a one

    def required(self) -> Held:
        """What is held. Raises FileNotFound."""
        if self.held is None:
            raise FileNotFound(self.path, "there is no such file")
        return self.held

    @property
    def base_is_current(self) -> bool:
        """Whether the path holds the base now. A caller who may not know the content learns no more than versions."""
        if self.base is None or self.held is None:
            return False
        return self.base.version == self.version if self.content_hidden else self.base.digest == self.held.digest

    @property
    def base_lines(self) -> tuple[str, ...]:
        """What the author saw; no lines where that is not text, or not there any more."""
        base, held = self.base, self.held
        if base is None:
            return ()
        if held is not None and held.digest == base.digest:
            document = held.text
        else:
            document = decode(self.contents[base.digest]) if base.digest in self.contents else None
        return document.lines if document is not None else ()

    @property
    def base_version(self) -> Seq | None:
        """The version that a change is made against; without a base, the present one."""
        return self.base.version if self.base is not None else self.version

    def need_outlines(self, texts: Mapping[Digest, Content]) -> Need | None:
        """What asks for the outlines of these contents; None if all are at hand."""
        lacking = {digest: data for digest, data in texts.items() if digest not in self.outlines}
        sources = tuple(Source(self.path, digest, data) for digest, data in lacking.items() if isinstance(data, bytes))
        return Need(outlines=sources) if sources else None

    def conflict(self, proposed: Content | None, regions: Sequence[Region] = (), why: str = "") -> ConflictOutcome:
        """The outcome of a change that does not fit what the path holds."""
        return ConflictOutcome(
            path=self.path,
            base=self.base.digest if self.base else None,
            base_version=self.base.version if self.base else None,
            proposed=proposed,
            regions=tuple(regions),
            why=why,
        )


class Source(msgspec.Struct, frozen=True):
    """A content to be outlined; the path says in which language."""

    path: WorkspacePath
    digest: Digest
    data: bytes


class Need(msgspec.Struct, frozen=True):
    """Fetch these contents, and the outlines of these, make those of splices, and decide again."""

    digests: tuple[Digest, ...] = ()
    outlines: tuple[Source, ...] = ()
    spliced: tuple[ToSplice, ...] = ()


class NewContent(msgspec.Struct, frozen=True):
    """A content that a change brings; a large one is kept already."""

    data: Content
    document: Document | None = None  # what decoding `data` is sure to give

    def __reduce__(self) -> tuple[object, ...]:
        """As of Held."""
        return NewContent, (self.data, _only_here(self.document))


def _only_here(document: Document | None) -> Document | None:
    """The text, if its bytes alone do not decode to it."""
    if document is None or (document.encoding == "utf-8" and not document.kept and document.runs is None):
        return None
    return document


class Dependency(msgspec.Struct, frozen=True, kw_only=True):
    """Later work in a file of which earlier changes are undone."""

    path: WorkspacePath
    change: Seq
    agent: AgentName | None  # None: an external change
    on: tuple[Seq, ...]  # the changes that are undone
    overlaps: bool  # it is in the way; else it is kept


class ConflictOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The change could not be applied; keep all three contents and let it wait."""

    path: WorkspacePath
    base: Digest | None
    base_version: Seq | None
    proposed: Content | None  # None: the proposal is to remove the file
    fit: Fit | None = None  # it would apply like this, and policy wants it looked at first
    regions: tuple[Region, ...] = ()
    why: str = ""  # if not because both sides changed the same lines
    reverts: tuple[Seq, ...] = ()
    names: tuple[WorkspacePath, ...] = ()  # other paths that held contents of it: not shown to who may not see all


class Apply(msgspec.Struct, frozen=True, kw_only=True):
    """The change fits; carry it out. `conflicts` are the parts of an undo that do not: they wait for a person."""

    paths: tuple[PathChange, ...]
    contents: Mapping[Digest, NewContent] = {}  # of each `after` that is written
    fit: Fit = Fit()
    directories: Directories = Directories()
    names: Mapping[WorkspacePath, tuple[WorkspacePath, ...]] = {}  # by path, as of a ConflictOutcome
    conflicts: tuple[ConflictOutcome, ...] = ()
    reverts: tuple[Seq, ...] = ()  # of an undo: the changes that it undoes in full
    dependencies: tuple[Dependency, ...] = ()

    def content(self, change: PathChange) -> NewContent | None:
        """What is written at one of the paths; None where a rename brings it, or nothing shall be there."""
        return self.contents.get(change.after) if change.after is not None and not change.renamed else None

    def fitted(self, **how: Any) -> Apply:
        """The same change, with other facts in its `fit`."""
        return msgspec.structs.replace(self, fit=msgspec.structs.replace(self.fit, **how))


def written(
    path: WorkspacePath,
    held: Held | None,
    data: Content,
    before: Document | None,
    after: Document | None,
    *,
    hunks: tuple[LineHunk, ...] | None = None,
    document: Document | None = None,
    fit: Fit | None = None,
) -> Apply:
    """A new content at one path. `document`: as of NewContent; else as `replaced`."""
    digest = digest_of(data)
    change = replaced(path, held, digest, before, after, hunks=hunks)
    return Apply(paths=(change,), contents={digest: NewContent(data, document)}, fit=fit or Fit())


def replaced(
    path: WorkspacePath,
    held: Held | None,
    digest: Digest,
    before: Document | None,
    after: Document | None,
    *,
    hunks: tuple[LineHunk, ...] | None = None,
) -> PathChange:
    """A path that gets a new content. `before`, `after`: the texts, None where it is none; `hunks` if known."""
    return PathChange(
        path,
        held.digest if held is not None else None,
        digest,
        hunks=_hunks(before, after) if hunks is None else hunks,
        binary=before is None or after is None,
        encoding=remembered(after),
    )


def removed(path: WorkspacePath, held: Held) -> PathChange:
    """A path whose file is removed."""
    text = held.text
    return PathChange(path, held.digest, None, hunks=_hunks(text, EMPTY), mode=held.mode, binary=text is None)


def _hunks(before: Document | None, after: Document | None) -> tuple[LineHunk, ...]:
    return line_hunks(before, after) if before is not None and after is not None else ()


Outcome = Need | Apply | ConflictOutcome
