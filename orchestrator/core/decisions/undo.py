"""Undo of chosen changes of some files: their inverses, newest first, rebased onto the present."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar

import msgspec

from orchestrator.core.change import Directories, PermissionCheck
from orchestrator.core.decisions.assembly import Result, assemble
from orchestrator.core.decisions.commands import AllFacts, Command
from orchestrator.core.decisions.decision import (
    Apply,
    Base,
    ConflictOutcome,
    Dependency,
    Facts,
    Held,
    Need,
    Outcome,
    Source,
)
from orchestrator.core.decisions.lineage import UNKNOWN, Key, Lineage, Modes, Step, lineages
from orchestrator.core.decisions.rebase import rebase
from orchestrator.core.errors import NothingToChange, OrchestratorError, RevertImpossible
from orchestrator.core.ids import Digest, WorkspacePath, show
from orchestrator.core.paths import ancestors
from orchestrator.core.projections.versions import VersionRow
from orchestrator.core.text.encoding import decode

MOST_DEPENDENCIES = 200
MOST_NOTES = 20


class Undo(Command, frozen=True, kw_only=True):
    """Undo chosen changes of some files; later work stays."""

    histories: Mapping[WorkspacePath, tuple[VersionRow, ...]]  # of every path that the files ever had
    modes: Modes
    chosen: frozenset[Key]
    others_work: frozenset[WorkspacePath]  # paths at which something is undone that the caller did not do
    touched: tuple[WorkspacePath, ...]  # the paths that policy is asked about
    folders: frozenset[WorkspacePath] = frozenset()  # that the chosen changes made
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
        outcome = undo(lineages(self.histories, self.modes), self.chosen, facts)
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


def undo(lines: Sequence[Lineage], chosen: Set[Key], facts: Mapping[WorkspacePath, Facts]) -> Apply | Need:
    """Undo the chosen steps of these files; all later ones that are not chosen stay.

    Files where later work overlaps come out as `Apply.conflicts`, what can't be undone for another
    reason as warnings. `Apply.reverts` names the changes that are undone in full. Raises
    NothingToChange when all is undone already, RevertImpossible when nothing can be.
    """
    touched = [line for line in lines if any(step.keys[0] in chosen or step.keys[-1] in chosen for step in line.steps)]
    courses = [_Course(line, chosen, facts) for line in touched]
    missing: dict[Digest, None] = {}
    outlines: list[Source] = []
    for course in courses:
        course.walk()
        missing |= dict.fromkeys(course.missing)
        outlines += course.lacking
    if missing or outlines:
        return Need(tuple(missing), tuple(outlines))
    for course in courses:
        course.stop_at_trouble()
    whole = assemble([course.result for course in courses], facts)
    notes = tuple(note for course in courses for note in course.notes)
    if not whole.paths and not whole.conflicts:
        trouble = next((course.trouble for course in courses if course.trouble is not None), None)
        if trouble is not None:
            raise trouble
        if notes:
            raise RevertImpossible(notes[0], hint="Revert the later change first.")
        raise NothingToChange("there is nothing left to undo", hint="The changes are undone already.")
    stuck = [course for course in courses if course.result.conflict is not None or course.notes]
    left = {seq for course in stuck for step in course.undone for seq in step.changes}
    left |= {seq for conflict in whole.conflicts for seq in conflict.reverts}
    undone = sorted({seq for course in courses for step in course.undone for seq in step.changes} - left)
    dependencies = tuple(found for course in courses for found in course.dependencies())[:MOST_DEPENDENCIES]
    if len(notes) > MOST_NOTES:
        notes = (*notes[:MOST_NOTES], f"{len(notes) - MOST_NOTES} more files could not be brought back either")
    whole = whole.fitted(warnings=(*whole.fit.warnings, *notes))
    return msgspec.structs.replace(whole, reverts=tuple(undone), dependencies=dependencies)


class _Course:
    """One file on its way back: a walk from now to its oldest chosen step."""

    def __init__(self, line: Lineage, chosen: Set[Key], facts: Mapping[WorkspacePath, Facts]) -> None:
        self._line, self._chosen, self._facts = line, chosen, facts
        self._any = next(iter(facts.values()))  # contents and outlines are the same in all of them
        held = facts[line.path].held if line.path is not None else None
        self._hidden = any(facts[name].content_hidden for name in line.names if name in facts)
        self.result = Result(present=line.path, held=held, path=line.path, now=held, names=line.names)
        self.trouble: OrchestratorError | None = None
        self.missing: list[Digest] = []
        self.lacking: list[Source] = []
        self.notes: list[str] = []
        self.undone: list[Step] = []  # newest first
        self.later: list[Step] = []  # not chosen, and newer than some chosen step

    def walk(self) -> None:
        """Newest first; chosen steps that follow each other are undone as one."""
        run: list[Step] = []
        kept: list[Step] = []
        for step in reversed(self._line.steps):
            if not any(key in self._chosen for key in step.keys):
                self._undo_run(run)
                run = []
                kept.append(step)
                continue
            self.later += kept
            kept = []
            self.undone.append(step)
            run.append(step)
            if step.was != step.path:
                self._undo_run(run)
                run = []
                self._undo_move(step)
        self._undo_run(run)

    def stop_at_trouble(self) -> None:
        """Leave the file alone where its path, or the one it goes to, holds no regular file that can be read."""
        for path in (self.result.present, self.result.path):
            trouble = self._facts[path].error if path is not None else None
            if trouble is not None and (self.result.changed or path == self.result.present):
                self.trouble, self.result.conflict = trouble, None
                self.result.stays()
                self.notes = [f"{trouble.message}; it stays as it is"]
                return

    def _undo_move(self, step: Step) -> None:
        if self.result.conflict is not None or self.result.path is None:
            return
        if self.result.path == step.path:
            self.result.path = step.was
        else:
            self.notes.append(
                f"{step.path} was moved on to {self.result.path} since {show(step.change)}; it stays there"
            )

    def _undo_run(self, run: Sequence[Step]) -> None:
        if not run or self.result.conflict is not None or self.missing:
            return
        newest, oldest = run[0], run[-1]
        after, before, now = newest.after, oldest.before, self.result.now
        if UNKNOWN in (after, before) and after != before:
            self.notes.append(
                f"what {newest.path} held around {show(newest.change)} was never hashed, so that can't be undone"
            )
            return
        digest = now.digest if now is not None else None
        if self._hidden:  # versions alone say whether later work is in the way
            if self.later:
                self._conflict(newest, before, run)
            else:
                self._straight_back(newest, oldest)
                self.result.unseen = True
        elif digest == after:
            self._straight_back(newest, oldest)
        elif digest == before:
            return
        elif now is None or before is None or after is None:
            self._conflict(newest, before, run)
        else:
            self._merge(now, newest, oldest, run)

    def _straight_back(self, newest: Step, oldest: Step) -> None:
        """Nothing came after it."""
        now, before = self.result.now, oldest.before
        if before is None:
            self.result.path = self.result.now = None
            return
        data = now.data if now is not None and now.digest == before else self._content(before)
        if data is None:
            return
        mode = self._mode_back(now, newest, oldest) if now is not None else oldest.mode_before
        like = now.document.encoding_hint if now is not None and now.document else None
        restored = Held(data, before, mode if mode is not None else 0o644, decode(data, like=like) if like else None)
        self.result.path, self.result.now = self.result.path or newest.was, restored

    def _merge(self, now: Held, newest: Step, oldest: Step, run: Sequence[Step]) -> None:
        """Carry the inverse onto later work."""
        after, before = newest.after or UNKNOWN, oldest.before or UNKNOWN
        old_data, new_data = self._content(after), self._content(before)
        if old_data is None or new_data is None:
            return
        like = now.document.encoding_hint if now.document else None
        old, new = decode(old_data, like=like), decode(new_data, like=like)
        if old is None or new is None:
            self._conflict(newest, before, run)
            return
        onto = Facts(
            self.result.path or newest.path,
            now,
            newest.seq,
            Base(newest.seq, after),
            outlines=self._any.outlines,
            only_own_changes=True,  # nobody needs a warning of what they undo
        )
        try:
            outcome = rebase(old, new, onto, anchors=())
        except NothingToChange:
            return
        if isinstance(outcome, Need):
            self.lacking += outcome.outlines
            return
        if isinstance(outcome, ConflictOutcome):
            self._conflict(newest, before, run, outcome)
            return
        ((digest, content),) = outcome.contents.items()
        self.result.now = Held(content.data, digest, self._mode_back(now, newest, oldest), content.document)
        self.result.rung = "merged"

    def _conflict(
        self, newest: Step, before: Digest | None, run: Sequence[Step], found: ConflictOutcome | None = None
    ) -> None:
        """Later work is in the way: this file stays as it is, and a person decides."""
        proposed = self._content(before) if before is not None else None
        if before is not None and proposed is None:
            return
        result, path = self.result, self.result.present or newest.path
        result.conflict = ConflictOutcome(
            path=path,
            base=newest.after,
            base_version=newest.seq,
            proposed=proposed,
            regions=found.regions if found is not None and result.held is result.now else (),
            why=found.why if found is not None else "",
            reverts=tuple(sorted({seq for step in run for seq in step.changes})),
            names=result.other_names(path),
        )
        result.stays()

    @staticmethod
    def _mode_back(now: Held, newest: Step, oldest: Step) -> int:
        """A mode that the run changed and that nobody changed since goes back too."""
        changed = oldest.mode_before is not None and newest.mode_after == now.mode
        return oldest.mode_before if changed and oldest.mode_before is not None else now.mode

    def _content(self, digest: Digest) -> bytes | None:
        data = self._any.contents.get(digest)
        if data is None:
            self.missing.append(digest)
        return data

    def dependencies(self) -> list[Dependency]:
        """The later work in this file that was kept, or that is in the way."""
        on = tuple(sorted({step.change for step in self.undone}))
        return [
            Dependency(
                path=step.path, change=step.change, agent=step.agent, on=on, overlaps=self.result.conflict is not None
            )
            for step in self.later
        ]
