"""Changes of several files: all of them or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from orchestrator.core.change import Fit, PathChange, PermissionCheck
from orchestrator.core.content import RUNGS
from orchestrator.core.decisions import rebase
from orchestrator.core.decisions.bases import Rule
from orchestrator.core.decisions.commands import AllFacts, Command, Delete, Move, Patch, Undo
from orchestrator.core.decisions.decision import Apply, ConflictOutcome, Need, NewContent, Outcome, Source
from orchestrator.core.decisions.permissions import only_bits, with_bits
from orchestrator.core.decisions.whole_files import replace_whole
from orchestrator.core.errors import (
    BaseRequired,
    ChangesConflict,
    ChangesOverlap,
    FileExists,
    FileNotFound,
    SearchAmbiguous,
    SearchNotFound,
)
from orchestrator.core.ids import Digest, WorkspacePath, show
from orchestrator.core.text.patch import FilePatch

SHOWN_PATHS = 50
"""Of a patch's files in one refusal."""


class FilePart(msgspec.Struct, frozen=True, kw_only=True):
    """One file's patch. `target` differs from `path` where the file gets another name."""

    path: WorkspacePath
    target: WorkspacePath
    patch: FilePatch
    stands: bool = True  # something was at `path` when the patch was read

    @property
    def creates(self) -> bool:
        return self.patch.headed and self.patch.old_path is None and not self.replaces

    @property
    def replaces(self) -> bool:
        """Whether a whole new content takes the place of what is there."""
        return self.patch.whole is not None and (self.stands or self.patch.old_path is not None)

    @property
    def deletes(self) -> bool:
        return self.patch.headed and self.patch.new_path is None


class PatchSeveral(Command, frozen=True, kw_only=True):
    """A patch of several files, or one that renames, removes without hunks, or makes an empty file."""

    files: tuple[FilePart, ...]
    fuzzy: bool = False

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
        return tuple(check for item in self.files for check in _required_permissions(item, facts))

    def decide(self, facts: AllFacts) -> Outcome:
        """Raises ChangesConflict, which names the files that do not fit, and what each file's patch may raise."""
        if len(self.files) == 1 and not self.files[0].patch.renames:
            return _decide(self.files[0], facts, fuzzy=self.fuzzy)
        changes: list[PathChange] = []
        contents: dict[Digest, NewContent] = {}
        missing: dict[Digest, None] = {}
        outlines: list[Source] = []
        fits: list[Fit] = []
        clashes: list[ConflictOutcome] = []
        unread: list[BaseRequired] = []
        for item in self.files:
            try:
                outcome = _named(item, facts, fuzzy=self.fuzzy)
            except BaseRequired as error:
                unread.append(error)
                continue
            match outcome:
                case Need(digests=digests, outlines=sources):
                    missing |= dict.fromkeys(digests)
                    outlines += sources
                case ConflictOutcome():
                    clashes.append(outcome)
                case Apply():
                    changes += _renamed(item, outcome, facts) if item.target != item.path else outcome.paths
                    contents |= outcome.contents
                    warnings = tuple(f"{item.path}: {warning}" for warning in outcome.fit.warnings)
                    fits.append(msgspec.structs.replace(outcome.fit, warnings=warnings))
        if unread:
            raise _unread(unread)
        if missing or outlines:
            return Need(tuple(missing), tuple(outlines))
        if clashes:
            raise _refused(clashes, facts)
        return Apply(paths=tuple(changes), contents=contents, fit=_joined(fits))


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


def effort(command: Command) -> int:
    """How long it takes to decide, in lines to place and in versions to go through.

    A patch of the result of another makes the whole text anew.
    """
    match command:
        case Undo(histories=histories):
            return sum(map(len, histories.values()))
        case Patch(patch=patch):
            patches: tuple[FilePatch, ...] = (patch,)
        case PatchSeveral(files=files):
            patches = tuple(item.patch for item in files)
        case _:
            return 0
    lines = sum(len(hunk.lines) for patch in patches for hunks in (patch.hunks, *patch.then) for hunk in hunks)
    lines += sum(patch.whole.count("\n") for patch in patches if patch.whole is not None)
    return lines + 200 * sum(len(patch.then) for patch in patches)


def _required_permissions(item: FilePart, facts: AllFacts) -> Iterator[PermissionCheck]:
    if item.target != item.path:
        yield PermissionCheck("move", item.path)
        yield PermissionCheck("create", item.target)
    elif item.deletes:
        yield PermissionCheck("delete", item.path)
    else:
        here = facts.get(item.path)
        there = here.held is not None if here is not None and item.patch.whole is not None else not item.creates
        yield PermissionCheck("write" if there else "create", item.path)


def _named(item: FilePart, facts: AllFacts, *, fuzzy: bool) -> Outcome:
    """As `_decide`; a refusal says of which file it is."""
    try:
        return _decide(item, facts, fuzzy=fuzzy)
    except (SearchNotFound, SearchAmbiguous, ChangesOverlap) as error:
        error.message = f"{item.path}, {error.message} None of the patch's files was changed."
        error.details["path"] = item.path
        raise


def _decide(item: FilePart, facts: AllFacts, *, fuzzy: bool) -> Outcome:
    here = facts[item.path]
    if item.target != item.path and facts[item.target].held is not None:
        raise FileExists(item.target, "something is there, and a rename never overwrites")
    if item.patch.whole is not None:
        return replace_whole(item.patch, here)
    if item.patch.hunks:
        return rebase.patch(item.patch, here, fuzzy=fuzzy)
    if item.target != item.path:
        return with_bits(Move(files=((item.path, item.target),)).decide(facts), item.patch, here.held)
    if item.creates:
        if here.held is not None:
            raise FileExists(item.path, "the patch creates it, but it is there", hint="Send a patch of what is there.")
        return with_bits(rebase.create("", here), item.patch, None)
    if not item.deletes:
        return only_bits(item.patch, here)
    if here.held is None:
        raise FileNotFound(item.path, "there is no such file")
    if here.held.data and not item.patch.drops:
        raise ChangesConflict(
            f"the patch removes {item.path} as an empty file, but it holds {len(here.held.data)} bytes"
        )
    return Delete(files=(item.path,)).decide(facts)


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


def _unread(refusals: list[BaseRequired]) -> BaseRequired:
    """The first one's refusal, with the names of all files that must be read."""
    paths = [error.details["path"] for error in refusals]
    first, more = refusals[0], len(paths) - SHOWN_PATHS
    others = ", ".join(paths[1:SHOWN_PATHS]) + (f" and {more} more" if more > 0 else "")
    too = f"So it is with {others}. " if others else ""
    first.message = f"{first.message}. {too}None of the patch's files was changed."
    first.details["paths"] = paths[:SHOWN_PATHS]
    return first


def _refused(clashes: list[ConflictOutcome], facts: AllFacts) -> ChangesConflict:
    """Name the files and the lines; the first one's are shown."""
    said = []
    for clash in clashes:
        version = facts[clash.path].version
        lines = ", ".join(f"{r.current.start + 1}-{r.current.start + max(1, r.current.length)}" for r in clash.regions)
        where = f" at lines {lines}" if lines else ""
        said.append(f"{clash.path} (at {show(version)} now){where}" if version else f"{clash.path} (gone)")
    return ChangesConflict(
        f"others have changed what this patch changes, in {'; '.join(said)}. None of its files was changed",
        details={
            "path": clashes[0].path,
            "files": [
                {
                    "path": clash.path,
                    "current": show(version) if (version := facts[clash.path].version) else None,
                    "lines": [[r.current.start + 1, r.current.end] for r in clash.regions],
                }
                for clash in clashes
            ],
        },
    )
