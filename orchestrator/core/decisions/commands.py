"""Commands that change files: what each touches, what policy must allow, and how it is decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from orchestrator.core.change import Directories, DirectoryChange, Fit, PathChange, PermissionCheck
from orchestrator.core.content import Content, digest_of
from orchestrator.core.decisions import rebase
from orchestrator.core.decisions.decision import (
    Apply,
    Base,
    ConflictOutcome,
    Facts,
    Held,
    Need,
    Outcome,
    removed,
    written,
)
from orchestrator.core.decisions.structure import Change
from orchestrator.core.errors import FileExists, FileNotFound, NotAFile, NothingToChange, StaleBase
from orchestrator.core.ids import Digest, Seq, WorkspacePath, show
from orchestrator.core.policy.rules import Action
from orchestrator.core.projections.read_sets import Rule
from orchestrator.core.text.encoding import EMPTY, Document, decode
from orchestrator.core.text.forms.blocks import check_whole
from orchestrator.core.text.forms.left_out import refuse_elided, refuse_elided_whole

AllFacts = Mapping[WorkspacePath, Facts]


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A change that somebody wants."""

    lenient: ClassVar[bool] = False
    """Whether it leaves out a path that holds no regular file that can be read."""

    @property
    def paths(self) -> tuple[WorkspacePath, ...]:
        """Every path that it may touch; they are locked together."""
        raise NotImplementedError

    @property
    def based(self) -> Mapping[WorkspacePath, Rule]:
        """The paths whose content it was made against, and which base each has when none is named."""
        return {}

    @property
    def reads(self) -> bool:
        """Whether its outcome shows the caller something of the file's content."""
        return False

    def required_permissions(self, facts: AllFacts) -> tuple[PermissionCheck, ...]:
        """What policy is asked; depends on what is there, never on its content."""
        raise NotImplementedError

    def decide(self, facts: AllFacts) -> Outcome:
        """Safe to call twice. Raises CallerError."""
        raise NotImplementedError


class OnePath(Command, frozen=True, kw_only=True):
    """The base of commands on the content of one path."""

    path: WorkspacePath
    rule: ClassVar[Rule] = "seen"

    @property
    def paths(self) -> tuple[WorkspacePath, ...]:
        return (self.path,)

    @property
    def based(self) -> Mapping[WorkspacePath, Rule]:
        return {self.path: self.rule}

    def required_permissions(self, facts: AllFacts) -> tuple[PermissionCheck, ...]:
        return (PermissionCheck("create" if facts[self.path].held is None else "write", self.path),)


class Edit(OnePath, frozen=True, kw_only=True):
    """Search and replace, or a symbol's new content."""

    changes: tuple[Change, ...]

    @property
    def reads(self) -> bool:
        return True

    def decide(self, facts: AllFacts) -> Outcome:
        here = facts[self.path]
        document = here.held.text if here.held is not None else None
        if document is not None:
            refuse_elided(self.changes, document.lines, self.path)
        return rebase.edit(self.changes, here)


class Rebase(OnePath, frozen=True, kw_only=True):
    """A change of a whole text that was decided on another content than the present one."""

    old: Document
    new: Document

    def decide(self, facts: AllFacts) -> Outcome:
        return rebase.rebase(self.old, self.new, facts[self.path], anchors=())


class Write(OnePath, frozen=True, kw_only=True):
    """A whole content, or more at the end."""

    content: str
    mode: str
    fenced: bool = False  # it came as a fence in a patch, which may be a part of the file

    @property
    def reads(self) -> bool:
        return self.fenced

    @property
    def based(self) -> Mapping[WorkspacePath, Rule]:
        return {self.path: "whole" if self.mode == "truncate" else "none"}

    def decide(self, facts: AllFacts) -> Outcome:
        here = facts[self.path]
        if self.mode == "append":
            return rebase.append(self.content, here)
        if self.mode == "create":
            if here.held is not None:
                raise FileExists(self.path, "it exists already", hint="Read it, then use edit_file.")
            return rebase.create(self.content, here)
        outcome = rebase.truncate(self.content, here)
        if here.base is not None and not here.content_hidden and not isinstance(outcome, Need):
            refuse_elided_whole("patch" if self.fenced else "content", self.content, here.base_lines, self.path)
            if self.fenced:
                check_whole(self.content, here.base_lines)
        return outcome


class DirectoryCommand(OnePath, frozen=True, kw_only=True):
    """The base of changes of a directory by itself."""

    reverts: tuple[Seq, ...] = ()  # the change of it that this one undoes
    others_work: bool = False  # with `reverts`: somebody else made that
    lenient: ClassVar[bool] = True
    rule: ClassVar[Rule] = "none"
    action: ClassVar[Action]
    change: ClassVar[DirectoryChange]

    def required_permissions(self, facts: AllFacts) -> tuple[PermissionCheck, ...]:
        undo = PermissionCheck("revert", self.path, self.others_work, directory=True)
        return (*((undo,) if self.reverts else ()), PermissionCheck(self.action, self.path, directory=True))

    def applied(self) -> Apply:
        return Apply(paths=(PathChange(self.path, None, None, directory=self.change),), reverts=self.reverts)


class CreateDirectory(DirectoryCommand, frozen=True, kw_only=True):
    """Make a directory."""

    action: ClassVar[Action] = "create"
    change: ClassVar[DirectoryChange] = "made"

    def decide(self, facts: AllFacts) -> Outcome:
        if facts[self.path].held is not None or facts[self.path].error is not None:
            raise FileExists(self.path, "it exists already")
        return self.applied()


class RemoveDirectory(DirectoryCommand, frozen=True, kw_only=True):
    """Remove a directory in which nothing is."""

    action: ClassVar[Action] = "delete"
    change: ClassVar[DirectoryChange] = "removed"

    def decide(self, facts: AllFacts) -> Outcome:
        error = facts[self.path].error
        if not isinstance(error, NotAFile):
            raise error or FileNotFound(self.path, "no directory is there")
        return self.applied()


class Delete(Command, frozen=True, kw_only=True):
    """Take files away: one, or all of a directory."""

    files: tuple[WorkspacePath, ...]
    directory: WorkspacePath | None = None

    @property
    def paths(self) -> tuple[WorkspacePath, ...]:
        return self.files

    @property
    def based(self) -> Mapping[WorkspacePath, Rule]:
        return dict.fromkeys(self.files, "none" if self.directory is not None else "seen")

    def required_permissions(self, facts: AllFacts) -> tuple[PermissionCheck, ...]:
        return tuple(PermissionCheck("delete", path) for path in self.files)

    def decide(self, facts: AllFacts) -> Outcome:
        changes = tuple(removed(path, _present(facts[path])) for path in self.files)
        return _of_files(changes, facts[self.files[0]], self.directory)


class Move(Command, frozen=True, kw_only=True):
    """Give files other paths: one, or all of a directory. Pairs of source and destination."""

    files: tuple[tuple[WorkspacePath, WorkspacePath], ...]
    directory: WorkspacePath | None = None

    @property
    def paths(self) -> tuple[WorkspacePath, ...]:
        return tuple(path for pair in self.files for path in pair)

    @property
    def based(self) -> Mapping[WorkspacePath, Rule]:
        return {source: "none" for source, _ in self.files}

    def required_permissions(self, facts: AllFacts) -> tuple[PermissionCheck, ...]:
        return tuple(
            check
            for source, target in self.files
            for check in (PermissionCheck("move", source), PermissionCheck("create", target))
        )

    def decide(self, facts: AllFacts) -> Outcome:
        changes: list[PathChange] = []
        for source, target in self.files:
            if source == target:
                raise NothingToChange(f"{source} is there already")
            held = _present(facts[source])
            if facts[target].held is not None:
                raise FileExists(target, "something is there, and a move never overwrites")
            changes += (
                PathChange(source, held.digest, None),
                PathChange(target, None, held.digest, mode=held.mode, moved_from=source),
            )
        return _of_files(tuple(changes), facts[self.files[0][0]], self.directory)


def _of_files(changes: tuple[PathChange, ...], first: Facts, directory: WorkspacePath | None) -> Apply:
    if directory is None:
        return Apply(paths=changes, fit=Fit(base=first.version))
    return Apply(paths=changes, directories=Directories(emptied=(directory,)))


def _present(here: Facts) -> Held:
    """What is to be taken away: the present version, if any is known to the caller. Raises FileNotFound, StaleBase."""
    held = here.required()
    if here.base is not None and not here.base_is_current:
        base, current = show(here.base.version), show(here.version or 0)
        raise StaleBase(
            f"{here.path} has changed since {base}; it is at {current} now",
            details={"path": here.path, "base": base, "current": current},
            hint="Read it again, then delete or move that version.",
        )
    return held


class Resolve(OnePath, frozen=True, kw_only=True):
    """What a person chose for a conflict, put in place of the content that they saw."""

    current: Digest | None  # what the file held when they chose
    chosen: Content | None  # None: the file shall be absent
    strict: bool = False  # made for exactly that content: to be made again where the file moved on
    reviews: bool = False  # an agent chose, so that policy must let it review here
    rule: ClassVar[Rule] = "none"

    def required_permissions(self, facts: AllFacts) -> tuple[PermissionCheck, ...]:
        change = PermissionCheck("write" if self.chosen is not None else "delete", self.path)
        return (PermissionCheck("review", self.path), change) if self.reviews else (change,)

    def decide(self, facts: AllFacts) -> Outcome:
        here = facts[self.path]
        now = here.held.digest if here.held else None
        after = digest_of(self.chosen) if self.chosen is not None else None
        if now == after:
            raise NothingToChange(f"{self.path} holds the chosen content already")
        if now != self.current and self.strict:
            raise StaleBase(f"{self.path} has changed meanwhile", details={"path": self.path})
        if now != self.current:
            return self._onto(here)
        fit = Fit(base=here.version)
        if self.chosen is None:
            changes = (removed(self.path, here.held),) if here.held is not None else ()
            return Apply(paths=changes, fit=fit)
        before = here.held.text if here.held else EMPTY
        new = decode(self.chosen, like=before.encoding_hint if before else None)
        return written(self.path, here.held, self.chosen, before, new, fit=fit)

    def _onto(self, here: Facts) -> Outcome:
        """The file has changed while they chose: rebase the choice onto it, if that is safe."""
        moved = ConflictOutcome(path=self.path, base=self.current, base_version=here.version, proposed=self.chosen)
        if self.current is None or self.chosen is None or here.held is None:
            return moved
        if self.current not in here.contents:
            return Need((self.current,))
        like = here.held.document.encoding_hint if here.held.document else None
        old, new = decode(here.contents[self.current], like=like), decode(self.chosen, like=like)
        if old is None or new is None:
            return moved
        base = Base(here.version or Seq(0), self.current)
        return rebase.rebase(old, new, msgspec.structs.replace(here, base=base), anchors=())
