"""Patches: of one file or of several, all of them or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from orchestrator.core import errors as e
from orchestrator.core.change import Fit, PathChange, PermissionCheck
from orchestrator.core.content import RUNGS
from orchestrator.core.decisions import rebase
from orchestrator.core.decisions.commands import AllFacts, Command, Delete, Move
from orchestrator.core.decisions.decision import (
    Apply,
    ConflictOutcome,
    Facts,
    Held,
    Need,
    NewContent,
    Outcome,
    Source,
    removed,
)
from orchestrator.core.ids import Digest, WorkspacePath, show
from orchestrator.core.projections.read_sets import Rule
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.forms.hunks import FilePatch
from orchestrator.core.text.forms.left_out import refuse_elided_whole
from orchestrator.core.text.locate import Found
from orchestrator.core.text.patch import locate_patch, respelled_patch
from orchestrator.core.text.unicode_escapes import RESPELLED

SHOWN_PATHS = 50
"""Of a patch's files in one refusal."""


class FilePart(msgspec.Struct, frozen=True, kw_only=True):
    """One file's patch. `target` differs from `path` where the file gets another name."""

    path: WorkspacePath
    target: WorkspacePath
    patch: FilePatch
    exists: bool = True  # something was at `path` when the patch was read

    @property
    def creates(self) -> bool:
        return self.patch.headed and self.patch.old_path is None and not self.replaces

    @property
    def replaces(self) -> bool:
        """Whether a whole new content takes the place of what is there."""
        return self.patch.whole is not None and self.exists

    @property
    def deletes(self) -> bool:
        return self.patch.headed and self.patch.new_path is None

    def required_permissions(self, facts: AllFacts) -> Iterator[PermissionCheck]:
        if self.target != self.path:
            yield PermissionCheck("move", self.path)
            yield PermissionCheck("create", self.target)
        elif self.deletes:
            yield PermissionCheck("delete", self.path)
        else:
            here = facts.get(self.path)
            there = here.held is not None if here is not None and self.patch.whole is not None else not self.creates
            yield PermissionCheck("write" if there else "create", self.path)


class Patch(Command, frozen=True, kw_only=True):
    """A patch, which may misquote the files if it is `fuzzy`."""

    files: tuple[FilePart, ...]
    fuzzy: bool = False
    unescaped: bool = False  # it came through a client that decodes escapes

    @classmethod
    def of(cls, path: WorkspacePath, patch: FilePatch, *, fuzzy: bool = False, unescaped: bool = False) -> Patch:
        """A patch of one file, which keeps its path."""
        return cls(files=(FilePart(path=path, target=path, patch=patch),), fuzzy=fuzzy, unescaped=unescaped)

    @property
    def reads(self) -> bool:
        return True

    @property
    def paths(self) -> tuple[WorkspacePath, ...]:
        return tuple(dict.fromkeys(path for item in self.files for path in (item.path, item.target)))

    @property
    def based(self) -> Mapping[WorkspacePath, Rule]:
        return {item.path: "whole" if item.replaces else "seen" for item in self.files if not item.creates}

    def required_permissions(self, facts: AllFacts) -> tuple[PermissionCheck, ...]:
        return tuple(check for item in self.files for check in item.required_permissions(facts))

    def decide(self, facts: AllFacts) -> Outcome:
        """Raises ChangesConflict, which names the files that do not fit, and what each file's patch may raise."""
        if len(self.files) == 1 and not self.files[0].patch.renames:
            return _decide(self.files[0], facts, self)
        changes: list[PathChange] = []
        contents: dict[Digest, NewContent] = {}
        missing: dict[Digest, None] = {}
        outlines: list[Source] = []
        fits: list[Fit] = []
        conflicts: list[ConflictOutcome] = []
        unread: list[e.BaseRequired] = []
        for item in self.files:
            try:
                outcome = _decide(item, facts, self)
            except e.BaseRequired as error:
                unread.append(error)
                continue
            except (e.SearchNotFound, e.SearchAmbiguous, e.ChangesOverlap) as error:
                error.message = f"{item.path}, {error.message} None of the patch's files was changed."
                error.details["path"] = item.path
                raise
            match outcome:
                case Need(digests=digests, outlines=sources):
                    missing |= dict.fromkeys(digests)
                    outlines += sources
                case ConflictOutcome():
                    conflicts.append(outcome)
                case Apply():
                    changes += _renamed(item, outcome, facts) if item.target != item.path else outcome.paths
                    contents |= outcome.contents
                    warnings = tuple(f"{item.path}: {warning}" for warning in outcome.fit.warnings)
                    fits.append(msgspec.structs.replace(outcome.fit, warnings=warnings))
        if unread:
            raise _unread(unread)
        if missing or outlines:
            return Need(tuple(missing), tuple(outlines))
        if conflicts:
            raise _refused(conflicts, facts)
        return Apply(paths=tuple(changes), contents=contents, fit=_joined(fits))


# --- one file -----------------------------------------------------------------------------


def _decide(item: FilePart, facts: AllFacts, of: Patch) -> Outcome:
    here, patch = facts[item.path], item.patch
    if item.target != item.path and facts[item.target].held is not None:
        raise e.FileExists(item.target, "something is there, and a rename never overwrites")
    if patch.whole is not None:
        outcome = _replace_whole(patch, here)
    elif item.creates:
        if here.held is not None:
            raise e.FileExists(
                item.path, "the patch creates it, but it is there", hint="Send a patch of what is there."
            )
        outcome = rebase.create(patch.added, here)
    elif item.deletes:
        return _delete(item, facts, of)
    elif patch.hunks:
        outcome = _lines(patch, here, of)
    elif item.target != item.path:
        outcome = Move(files=((item.path, item.target),)).decide(facts)
    else:
        return _only_bits(patch, here)
    return _with_bits(outcome, patch, here.held)


def _lines(patch: FilePatch, facts: Facts, of: Patch) -> Outcome:
    """The hunks. Without a base, each must be in the file exactly once, else raises BaseRequired."""
    facts.required()

    def locate(document: Document, *, lenient: bool) -> Found:
        asked = respelled_patch(patch, document) if of.unescaped else patch
        if facts.base is None:
            found = locate_patch(asked, document, unread=True)
        else:
            found = locate_patch(asked, document, fuzzy=of.fuzzy and lenient)
        return found if asked is patch else msgspec.structs.replace(found, warnings=(RESPELLED,))

    try:
        return rebase.located_change(locate, facts)
    except (e.SearchNotFound, e.SearchAmbiguous):
        if facts.base is not None:
            raise
        why = "this session has not seen it, and the patch's passages are not all in it exactly once"
        raise rebase.base_required(facts.path, why) from None


def _replace_whole(patch: FilePatch, facts: Facts) -> Outcome:
    """As a write of the whole content."""
    outcome = rebase.truncate(patch.whole or "", facts)
    if not isinstance(outcome, Need) and facts.base is not None and not facts.content_hidden:
        refuse_elided_whole("patch", patch.whole or "", facts.base_lines, facts.path)
    return outcome


def _delete(item: FilePart, facts: AllFacts, of: Patch) -> Outcome:
    """A patch to /dev/null: its hunks must remove every line."""
    here, held = facts[item.path], facts[item.path].required()
    if not item.patch.hunks:
        if held.data and not item.patch.drops:
            raise e.ChangesConflict(f"the patch removes {item.path} as empty, but it holds {len(held.data)} bytes")
        return Delete(files=(item.path,)).decide(facts)
    outcome = _lines(item.patch, here, of)
    if not isinstance(outcome, Apply):
        return outcome
    if any(content.data for content in outcome.contents.values()):
        raise e.PatchInvalid(
            f"the patch deletes {item.path}, but leaves lines in it", hint="Send a fresh patch, or use delete_file."
        )
    return Apply(paths=(removed(item.path, held),), fit=Fit(rung=outcome.fit.rung, base=outcome.fit.base))


def _with_bits(outcome: Outcome, patch: FilePatch, held: Held | None) -> Outcome:
    """The outcome, with the file made executable or no longer so; a patch can change no other permission bit."""
    if patch.executable is None or not isinstance(outcome, Apply):
        return outcome
    mode = _bits(held.mode if held is not None else 0o644, executable=patch.executable)
    if held is not None and mode == held.mode:
        return outcome
    *others, last = outcome.paths
    contents = outcome.contents
    if held is not None and last.renamed:  # a rename alone sets no bits: it is written anew
        contents = {held.digest: NewContent(held.data)}
    last = msgspec.structs.replace(last, mode=mode, rewritten=last.moved_from is not None)
    return msgspec.structs.replace(outcome, paths=(*others, last), contents=contents)


def _only_bits(patch: FilePatch, facts: Facts) -> Apply:
    held = facts.required()
    mode = _bits(held.mode, executable=bool(patch.executable))
    if mode == held.mode:
        raise e.NothingToChange(f"{facts.path} has these permission bits already")
    change = PathChange(facts.path, held.digest, held.digest, mode=mode)
    return Apply(paths=(change,), contents={held.digest: NewContent(held.data)}, fit=Fit(base=facts.version))


def _bits(mode: int, *, executable: bool) -> int:
    """As git does it: whoever may read it may run it."""
    return mode | (mode & 0o444) >> 2 if executable else mode & ~0o111


# --- several files ------------------------------------------------------------------------


def _joined(fits: Sequence[Fit]) -> Fit:
    """How several files' patches fit together: as the least sure of them."""
    return Fit(
        rung=max((fit.rung for fit in fits), key=RUNGS.index, default="current"),
        score=min((fit.score for fit in fits), default=1.0),
        on_seen_whole=all(fit.on_seen_whole for fit in fits),
        same_symbol=tuple(name for fit in fits for name in fit.same_symbol),
        merge=tuple(region for fit in fits for region in fit.merge),
        warnings=tuple(warning for fit in fits for warning in fit.warnings),
    )


def _renamed(item: FilePart, outcome: Apply, facts: AllFacts) -> tuple[PathChange, ...]:
    """The new content under the new name."""
    if not item.patch.hunks:
        return outcome.paths
    change, held = outcome.paths[0], facts[item.path].held
    mode = change.mode or (held.mode if held else None)
    return (
        PathChange(item.path, change.before, None),
        msgspec.structs.replace(change, path=item.target, before=None, moved_from=item.path, rewritten=True, mode=mode),
    )


def _unread(refusals: list[e.BaseRequired]) -> e.BaseRequired:
    """The first one's refusal, with the names of all files that must be read."""
    paths = [error.details["path"] for error in refusals]
    first, more = refusals[0], len(paths) - SHOWN_PATHS
    others = ", ".join(paths[1:SHOWN_PATHS]) + (f" and {more} more" if more > 0 else "")
    too = f"The same holds for {others}. " if others else ""
    first.message = f"{first.message}. {too}None of the patch's files was changed."
    first.details["paths"] = paths[:SHOWN_PATHS]
    return first


def _refused(conflicts: list[ConflictOutcome], facts: AllFacts) -> e.ChangesConflict:
    """Name the files and the lines."""
    named, files = list[str](), list[dict[str, Any]]()
    for conflict in conflicts:
        version = facts[conflict.path].version
        spans = [region.current for region in conflict.regions]
        lines = ", ".join(f"{span.start + 1}-{span.start + max(1, span.length)}" for span in spans)
        where = f" at lines {lines}" if lines else ""
        if len(named) < SHOWN_PATHS:
            named.append(f"{conflict.path} (at {show(version)} now){where}" if version else f"{conflict.path} (gone)")
        files.append(
            {
                "path": conflict.path,
                "current": show(version) if version else None,
                "lines": [[span.start + 1, span.end] for span in spans],
            }
        )
    more = f" and {len(files) - len(named)} more files" if len(files) > len(named) else ""
    return e.ChangesConflict(
        f"others have changed what this patch changes, in {'; '.join(named)}{more}. None of its files was changed",
        details={"path": conflicts[0].path, "files": files},
    )
