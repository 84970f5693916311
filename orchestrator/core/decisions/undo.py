"""Undo of chosen changes of some files: their inverses, newest first, rebased onto the present."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar

import msgspec

from orchestrator.core.change import Directories, Fit, PathChange, PermissionCheck
from orchestrator.core.decisions.commands import AllFacts, Command
from orchestrator.core.decisions.decision import (
    Apply,
    ConflictOutcome,
    Dependency,
    Facts,
    Held,
    Need,
    NewContent,
    Outcome,
    Source,
    removed,
    replaced,
)
from orchestrator.core.decisions.file_undo import FileUndo
from orchestrator.core.decisions.lineage import Key, Lineage, Modes, lineages
from orchestrator.core.errors import NothingToChange, RevertImpossible
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.paths import ancestors
from orchestrator.core.projections.versions import VersionRow
from orchestrator.core.splices import ToSplice
from orchestrator.core.text.encoding import EMPTY

MOST_NOTES = 20


class Undo(Command, frozen=True, kw_only=True):
    """Undo chosen changes of some files; later work stays."""

    histories: Mapping[WorkspacePath, tuple[VersionRow, ...]]  # of every path that the files ever had
    modes: Modes
    chosen: frozenset[Key]
    others_work: frozenset[WorkspacePath]  # paths at which something is undone that the caller did not do
    touched: tuple[WorkspacePath, ...]  # the paths that policy is asked about
    folders: frozenset[WorkspacePath] = frozenset()  # that the chosen changes made
    kept: frozenset[WorkspacePath] = frozenset()  # paths of editors' own files, at which nothing is done
    lenient: ClassVar[bool] = True

    def __reduce__(self) -> tuple[object, ...]:
        """For a worker. 20,000 rows one by one take 200 ms to pack, and as much to unpack; so 10 and 30 ms."""
        fields = msgspec.structs.asdict(self)
        return _unpacked, (fields | {"histories": {path: _PACK(rows) for path, rows in self.histories.items()}},)

    @property
    def paths(self) -> tuple[WorkspacePath, ...]:
        return tuple(sorted(self.histories))

    def required_permissions(self, facts: AllFacts) -> tuple[PermissionCheck, ...]:
        return tuple(PermissionCheck("revert", path, path in self.others_work) for path in self.touched)

    def decide(self, facts: AllFacts) -> Outcome:
        """Raises HistoryMoved when a file has changed since its history was read."""
        for path, rows in self.histories.items():
            last = rows[-1].seq if rows and rows[-1].present else None
            if facts[path].version != last and facts[path].error is None:
                raise HistoryMoved(path)
        outcome = undo(lineages(self.histories, self.modes), self.chosen, facts, self.kept)
        if not isinstance(outcome, Apply):
            return outcome
        if not outcome.paths and len(outcome.conflicts) == 1:
            return outcome.conflicts[0]
        return msgspec.structs.replace(outcome, directories=Directories(unmade=_unmade(outcome, self.folders)))


_PACK = msgspec.msgpack.Encoder().encode
_UNPACK = msgspec.msgpack.Decoder(tuple[VersionRow, ...]).decode


def _unpacked(fields: dict[str, Any]) -> Undo:
    return Undo(**fields | {"histories": {path: _UNPACK(rows) for path, rows in fields["histories"].items()}})


def _unmade(plan: Apply, folders: Set[WorkspacePath]) -> tuple[WorkspacePath, ...]:
    """Of these directories, those that a file goes from; innermost first."""
    left = {folder for change in plan.paths if change.after is None for folder in ancestors(change.path)}
    return tuple(sorted(left & folders, key=lambda folder: (-folder.count("/"), folder)))


class HistoryMoved(Exception):
    """A file changed after its history was read; read the history again under the present locks."""


# --- file by file -------------------------------------------------------------------------


def undo(
    lines: Sequence[Lineage],
    chosen: Set[Key],
    facts: Mapping[WorkspacePath, Facts],
    kept: Set[WorkspacePath] = frozenset(),
) -> Apply | Need:
    """Undo the chosen steps of these files; all later ones that are not chosen stay.

    Files where later work overlaps come out as `Apply.conflicts`, what can't be undone for another
    reason as warnings. `Apply.reverts` names the changes that are undone in full. Raises
    NothingToChange when all is undone already, RevertImpossible when nothing can be.
    """
    touched = [line for line in lines if any(step.keys[0] in chosen or step.keys[-1] in chosen for step in line.steps)]
    files = [FileUndo(line, chosen, facts) for line in touched]
    missing: dict[Digest, None] = {}
    outlines: list[Source] = []
    unmade: list[ToSplice] = []
    for file in files:
        file.walk()
        missing |= dict.fromkeys(file.missing)
        outlines += file.lacking
        unmade += file.unmade
    if missing or outlines or unmade:
        return Need(tuple(missing), tuple(outlines), tuple(unmade))
    for file in files:
        file.stop_at_trouble()
        file.keep_out_of(kept)
    _keep_exchanged(files)
    whole = _assembled(files, facts)
    notes = tuple(note for file in files for note in file.notes)
    if not whole.paths and not whole.conflicts:
        in_the_way = next((file for file in files if file.stands_in_the_way), None)
        if in_the_way is not None:
            hint = f"Delete {in_the_way.present}, and the folder if it lies in one, then send the same call again."
            raise RevertImpossible(in_the_way.notes[0], hint=hint)
        trouble = next((file.trouble for file in files if file.trouble is not None), None)
        if trouble is not None:
            raise trouble
        if notes:
            raise RevertImpossible(notes[0], hint="Revert the later change first.")
        raise NothingToChange("there is nothing left to undo", hint="The changes are undone already.")
    stuck = [file for file in files if file.conflict is not None or file.notes]
    left = {seq for file in stuck for step in file.undone for seq in step.changes}
    left |= {seq for conflict in whole.conflicts for seq in conflict.reverts}
    undone = sorted({seq for file in files for step in file.undone for seq in step.changes} - left)
    dependencies = [dependency for file in files for dependency in _dependencies(file)]
    if len(notes) > MOST_NOTES:
        notes = (*notes[:MOST_NOTES], f"{len(notes) - MOST_NOTES} more files could not be brought back either")
    whole = whole.fitted(warnings=(*whole.fit.warnings, *notes))
    return msgspec.structs.replace(whole, reverts=tuple(undone), dependencies=tuple(dependencies))


def _keep_exchanged(files: Sequence[FileUndo]) -> None:
    """Where a file and a directory took each other's place, neither goes: what was there could not come back."""
    stuck = {file.blocked for file in files if file.blocked is not None}
    above = {folder for path in stuck for folder in ancestors(path)}
    for file in files:
        if file.present is not None and (file.present in above or not stuck.isdisjoint(ancestors(file.present))):
            file.stay_in_the_way()


def _dependencies(file: FileUndo) -> list[Dependency]:
    """The later work in a file that was kept, or that is in the way."""
    on, overlaps = tuple(sorted({step.change for step in file.undone})), file.conflict is not None
    return [
        Dependency(path=step.path, change=step.change, agent=step.agent, on=on, overlaps=overlaps)
        for step in file.later
    ]


# --- the paths of the files, as parts of one change ----------------------------------------


def _assembled(files: Sequence[FileUndo], facts: Mapping[WorkspacePath, Facts]) -> Apply:
    """One change of all of them. A file whose path is taken is a conflict."""
    conflicts = [file.conflict for file in files if file.conflict is not None]
    going = [file for file in files if file.changed and file.conflict is None]
    while (taken := _taken(going, facts)) is not None:
        path, file = taken
        going.remove(file)
        if file.now is not None:
            conflicts.append(
                ConflictOutcome(
                    path=path, base=None, base_version=None, proposed=file.now.data, names=file.other_names(path)
                )
            )
    arriving = {file.path: file for file in going if file.path is not None}
    by_path = {file.present: file for file in going if file.present is not None} | arriving
    by_path = {path: file for path, file in by_path.items() if not _is_there(file, facts[path].held)}
    renamed = {file.path for file in going if _is_rename(file, facts, arriving)}
    return Apply(
        paths=tuple(
            _change(path, by_path[path], facts[path].held, renamed=path in renamed) for path in sorted(by_path)
        ),
        contents={
            file.now.digest: NewContent(file.now.data, file.now.document)
            for file in by_path.values()
            if file.now is not None and file.path not in renamed
        },
        fit=Fit(rung="merged" if any(file.rung == "merged" for file in going) else "current"),
        names={path: file.other_names(path) for path, file in by_path.items()},
        conflicts=tuple(conflicts),
    )


def _taken(going: Sequence[FileUndo], facts: Mapping[WorkspacePath, Facts]) -> tuple[WorkspacePath, FileUndo] | None:
    """The first file whose path another one keeps."""
    leaving = {file.present for file in going}
    arriving: set[WorkspacePath] = set()
    for file in going:
        if file.path is None:
            continue
        if file.path in arriving or (facts[file.path].held is not None and file.path not in leaving):
            return file.path, file
        arriving.add(file.path)
    return None


def _is_there(file: FileUndo, held: Held | None) -> bool:
    """Whether a file that comes back is at its path already: it was removed and made again as it was."""
    if file.present is not None or file.now is None or held is None or file.unseen:
        return False
    return (held.digest, held.mode) == (file.now.digest, file.now.mode)


def _is_rename(
    file: FileUndo, facts: Mapping[WorkspacePath, Facts], arriving: Mapping[WorkspacePath, FileUndo]
) -> bool:
    """Whether one rename does it: same content and bits, a free path, and no other file comes to the old one."""
    if file.present is None or file.path is None or file.path == file.present or file.now is None:
        return False
    return file.same_content and facts[file.path].held is None and file.present not in arriving


def _change(path: WorkspacePath, file: FileUndo, held: Held | None, *, renamed: bool) -> PathChange:
    """What happens at one path, which holds `held`: `file` comes there, or leaves it."""
    now = file.now
    if file.path != path or now is None:
        if held is None or file.path is not None:
            return PathChange(path, held.digest if held is not None else None, None)
        return removed(path, held)
    if renamed:
        return PathChange(path, None, now.digest, mode=now.mode, moved_from=file.present)
    source = file.present if file.present != path else None
    was = held if file.present is None else file.held
    change = replaced(path, held, now.digest, was.text if was is not None else EMPTY, now.text)
    mode = now.mode if held is None or now.mode != held.mode else None
    return msgspec.structs.replace(change, mode=mode, moved_from=source, rewritten=source is not None)
