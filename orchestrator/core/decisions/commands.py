"""Commands that change files: what each touches, what policy must allow, and how it is decided."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, ClassVar, Protocol

import msgspec

from orchestrator.core.content import digest_of
from orchestrator.core.decisions import rebase, undo
from orchestrator.core.decisions.bases import Rule
from orchestrator.core.decisions.decision import Apply, Base, ConflictOutcome, Facts, Held, Need, Outcome, Part
from orchestrator.core.decisions.lineage import Key, Modes, lineages
from orchestrator.core.decisions.structure import Change
from orchestrator.core.decisions.whole_files import lines_at_base
from orchestrator.core.errors import FileExists, FileNotFound, NothingToChange, StaleBase
from orchestrator.core.ids import Digest, Seq, WorkspacePath, show
from orchestrator.core.paths import ancestors
from orchestrator.core.policy.rules import Action
from orchestrator.core.projections.history import VersionRow
from orchestrator.core.text.encoding import decode, remembered
from orchestrator.core.text.forms.elisions import refuse_elided, refuse_elided_whole
from orchestrator.core.text.forms.whole_file import check_whole
from orchestrator.core.text.patch import FilePatch

AllFacts = Mapping[WorkspacePath, Facts]


class PermissionCheck(msgspec.Struct, frozen=True):
    """An act on a path that policy must allow."""

    action: Action
    path: WorkspacePath
    others_work: bool = False


class Command(Protocol):
    """A change that somebody wants."""

    @property
    def paths(self) -> tuple[WorkspacePath, ...]:
        """Every path that it may touch; they are locked together."""

    @property
    def based(self) -> Mapping[WorkspacePath, Rule]:
        """The paths whose content it was made against, and which base each has when none is named."""

    @property
    def reads(self) -> bool:
        """Whether its outcome tells the caller something of the file's content."""

    @property
    def reverts(self) -> tuple[Seq, ...]: ...

    @property
    def lenient(self) -> bool:
        """Whether it goes on without a path at which no regular file stands that can be read."""

    def required_permissions(self, facts: AllFacts) -> tuple[PermissionCheck, ...]:
        """What policy is asked; depends on what is there, never on its content."""

    def decide(self, facts: AllFacts) -> Outcome:
        """Safe to call twice. Raises CallerError."""


class _One(msgspec.Struct, frozen=True, kw_only=True):
    """The base of commands on the content of one path."""

    path: WorkspacePath
    lenient: ClassVar[bool] = False
    rule: ClassVar[Rule] = "seen"

    @property
    def paths(self) -> tuple[WorkspacePath, ...]:
        return (self.path,)

    @property
    def based(self) -> Mapping[WorkspacePath, Rule]:
        return {self.path: self.rule}

    @property
    def reverts(self) -> tuple[Seq, ...]:
        return ()

    def required_permissions(self, facts: AllFacts) -> tuple[PermissionCheck, ...]:
        return (PermissionCheck("create" if facts[self.path].held is None else "write", self.path),)


class Edit(_One, frozen=True, kw_only=True):
    """Search and replace, or a symbol's new content."""

    changes: tuple[Change, ...]
    reads: bool = True

    def decide(self, facts: AllFacts) -> Outcome:
        here = facts[self.path]
        held = here.held
        document = (held.document or decode(held.data)) if held is not None else None
        if document is not None:
            refuse_elided(self.changes, document.lines, self.path)
        return rebase.edit(self.changes, here)


class Patch(_One, frozen=True, kw_only=True):
    """A patch of one file, which may misquote it if it is `fuzzy`."""

    patch: FilePatch
    fuzzy: bool = False
    reads: bool = True

    def required_permissions(self, facts: AllFacts) -> tuple[PermissionCheck, ...]:
        if self.patch.headed and self.patch.new_path is None:
            return (PermissionCheck("delete", self.path),)
        return super().required_permissions(facts)

    def decide(self, facts: AllFacts) -> Outcome:
        return rebase.patch(self.patch, facts[self.path], fuzzy=self.fuzzy)


class Write(_One, frozen=True, kw_only=True):
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
            present = lines_at_base(here, here.base)
            refuse_elided_whole("patch" if self.fenced else "content", self.content, present, self.path)
            if self.fenced:
                check_whole(self.content, present)
        return outcome


class Delete(_One, frozen=True, kw_only=True):
    """Take a file away."""

    reads: bool = False

    def required_permissions(self, facts: AllFacts) -> tuple[PermissionCheck, ...]:
        return (PermissionCheck("delete", self.path),)

    def decide(self, facts: AllFacts) -> Outcome:
        here = facts[self.path]
        if here.held is None:
            raise FileNotFound(self.path, "there is no such file")
        _check_base(here)
        before = here.held.document or decode(here.held.data)
        part = Part(
            path=self.path,
            before=here.held.digest,
            after=None,
            mode=here.held.mode,
            hunks=rebase.line_hunks(before, rebase.EMPTY) if before else (),
            binary=before is None,
        )
        return Apply(parts=(part,), base=here.version)


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """Give a file another path."""

    source: WorkspacePath
    destination: WorkspacePath
    lenient: ClassVar[bool] = False
    reads: bool = False

    @property
    def paths(self) -> tuple[WorkspacePath, ...]:
        return (self.source, self.destination)

    @property
    def based(self) -> Mapping[WorkspacePath, Rule]:
        return {self.source: "none"}

    @property
    def reverts(self) -> tuple[Seq, ...]:
        return ()

    def required_permissions(self, facts: AllFacts) -> tuple[PermissionCheck, ...]:
        return (PermissionCheck("move", self.source), PermissionCheck("create", self.destination))

    def decide(self, facts: AllFacts) -> Outcome:
        if self.source == self.destination:
            raise NothingToChange(f"{self.source} is there already")
        here = facts[self.source]
        if here.held is None:
            raise FileNotFound(self.source, "there is no such file")
        if facts[self.destination].held is not None:
            raise FileExists(self.destination, "something is there, and a move never overwrites")
        _check_base(here)
        return Apply(parts=moved(self.source, self.destination, here.held), base=here.version)


class Undo(msgspec.Struct, frozen=True, kw_only=True):
    """Undo chosen changes of some files; later work stays."""

    histories: Mapping[WorkspacePath, tuple[VersionRow, ...]]  # of every path that the files ever had
    modes: Modes
    chosen: frozenset[Key]
    others_work: frozenset[WorkspacePath]  # paths at which something is undone that the caller did not do
    touched: tuple[WorkspacePath, ...]  # the paths that policy is asked about
    folders: frozenset[WorkspacePath] = frozenset()  # that the chosen changes made
    lenient: ClassVar[bool] = True
    reads: bool = False

    def __reduce__(self) -> tuple[object, ...]:
        """For a worker. 20,000 rows one by one take 200 ms to pack, and as much to unpack; so 10 and 30 ms."""
        fields = msgspec.structs.asdict(self)
        return _unpacked, (fields | {"histories": {path: _PACK(rows) for path, rows in self.histories.items()}},)

    @property
    def paths(self) -> tuple[WorkspacePath, ...]:
        return tuple(sorted(self.histories))

    @property
    def based(self) -> Mapping[WorkspacePath, Rule]:
        return {}

    @property
    def reverts(self) -> tuple[Seq, ...]:
        return ()  # the outcome says which

    def required_permissions(self, facts: AllFacts) -> tuple[PermissionCheck, ...]:
        return tuple(PermissionCheck("revert", path, path in self.others_work) for path in self.touched)

    def decide(self, facts: AllFacts) -> Outcome:
        """Raises HistoryMoved when a file has changed since its history was read."""
        for path, rows in self.histories.items():
            last = rows[-1].seq if rows and rows[-1].present else None
            if facts[path].version != last and facts[path].error is None:
                raise HistoryMoved(path)
        outcome = undo.undo(lineages(self.histories, self.modes), self.chosen, facts)
        if isinstance(outcome, Apply) and not outcome.parts and len(outcome.clashes) == 1:
            return outcome.clashes[0]
        if isinstance(outcome, Apply):
            return msgspec.structs.replace(outcome, unmade=_unmade(outcome, self.folders))
        return outcome


_PACK = msgspec.msgpack.Encoder().encode
_UNPACK = msgspec.msgpack.Decoder(tuple[VersionRow, ...]).decode


def _unpacked(fields: dict[str, Any]) -> Undo:
    return Undo(**fields | {"histories": {path: _UNPACK(rows) for path, rows in fields["histories"].items()}})


def _unmade(plan: Apply, folders: Set[WorkspacePath]) -> tuple[WorkspacePath, ...]:
    """Of these directories, those that a file goes from; innermost first."""
    left = {folder for part in plan.parts if part.after is None for folder in ancestors(part.path)}
    return tuple(sorted(left & folders, key=lambda folder: (-folder.count("/"), folder)))


class HistoryMoved(Exception):
    """Read the history again, under the locks' present."""


class Resolve(_One, frozen=True, kw_only=True):
    """What a person chose for a conflict, put in place of the content that they saw."""

    current: Digest | None  # what the file held when they chose
    chosen: bytes | None  # None: nothing shall stand there
    strict: bool = False  # made for exactly that content: to be made again where the file moved on
    reviews: bool = False  # an agent chose, so that policy must let it review here
    rule: ClassVar[Rule] = "none"
    reads: bool = False

    def required_permissions(self, facts: AllFacts) -> tuple[PermissionCheck, ...]:
        carried = PermissionCheck("write" if self.chosen is not None else "delete", self.path)
        return (PermissionCheck("review", self.path), carried) if self.reviews else (carried,)

    def decide(self, facts: AllFacts) -> Outcome:
        here = facts[self.path]
        now = here.held.digest if here.held else None
        after = digest_of(self.chosen) if self.chosen is not None else None
        if now == after:
            raise NothingToChange(f"{self.path} holds the chosen content already")
        before = (here.held.document or decode(here.held.data)) if here.held else rebase.EMPTY
        if now != self.current and self.strict:
            raise StaleBase(f"{self.path} has changed meanwhile", details={"path": self.path})
        if now != self.current:
            return self._onto(here)
        like = before.told if before else None
        new = decode(self.chosen, like=like) if self.chosen is not None else rebase.EMPTY
        binary = before is None or new is None
        part = Part(
            path=self.path,
            before=now,
            after=after,
            data=self.chosen,
            hunks=() if before is None or new is None else rebase.line_hunks(before, new),
            binary=binary,
            encoding=remembered(new) if self.chosen is not None else None,
        )
        return Apply(parts=(part,), base=here.version)

    def _onto(self, here: Facts) -> Outcome:
        """The file moved on while they chose: carry the choice onto it, if that is safe."""
        if self.current is None or self.chosen is None or here.held is None:
            return ConflictOutcome(path=self.path, base=self.current, base_version=here.version, proposed=self.chosen)
        if self.current not in here.contents:
            return Need((self.current,))
        like = here.held.document.told if here.held.document else None
        old, new = decode(here.contents[self.current], like=like), decode(self.chosen, like=like)
        if old is None or new is None:
            return ConflictOutcome(path=self.path, base=self.current, base_version=here.version, proposed=self.chosen)
        base = Base(here.version or Seq(0), self.current)
        return rebase.rebase(old, new, msgspec.structs.replace(here, base=base), anchors=())


def _check_base(here: Facts) -> None:
    """Taking a file away needs the present version, if any is known to the caller."""
    base = here.base
    if base is not None and here.held is not None and not here.base_is_current:
        raise StaleBase(
            f"{here.path} has changed since {show(base.version)}; it is at {show(here.version or 0)} now",
            details={"path": here.path, "base": show(base.version), "current": show(here.version or 0)},
            hint="Read it again, then delete or move that version.",
        )


def moved(source: WorkspacePath, destination: WorkspacePath, held: Held) -> tuple[Part, ...]:
    """The two parts of giving a file another path."""
    return (
        Part(path=source, before=held.digest, after=None),
        Part(path=destination, before=None, after=held.digest, mode=held.mode, moved_from=source),
    )
