"""One file of an undo: a walk from what it holds now back to its oldest chosen step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from orchestrator.core.content import Content, LargeContent, Rung
from orchestrator.core.decisions.decision import Base, ConflictOutcome, Facts, Held, Need, Source
from orchestrator.core.decisions.lineage import UNKNOWN, Key, Lineage, Step
from orchestrator.core.decisions.rebase import rebase
from orchestrator.core.errors import NothingToChange, OrchestratorError
from orchestrator.core.ids import Digest, WorkspacePath, show
from orchestrator.core.splices import ToSplice, merged, root_of
from orchestrator.core.text.encoding import decode


class FileUndo:
    """One file: its path and content now (`present`, `held`), and after the undo (`path`, `now`). None: absent."""

    def __init__(self, line: Lineage, chosen: Set[Key], facts: Mapping[WorkspacePath, Facts]) -> None:
        self._line, self._chosen, self._facts = line, chosen, facts
        self._any = next(iter(facts.values()))  # contents and outlines are the same in all of them
        self._hidden = any(facts[name].content_hidden for name in line.names if name in facts)
        self.present = self.path = line.path
        self.held = self.now = facts[line.path].held if line.path is not None else None
        self.rung: Rung = "current"
        self.conflict: ConflictOutcome | None = None
        self.unseen = False  # undone for one who may not know whether that changes the content
        self.trouble: OrchestratorError | None = None
        self.blocked: WorkspacePath | None = None  # where the trouble is
        self.stands_in_the_way = False  # of another file, which had to stay away for it
        self.missing: list[Digest] = []
        self.lacking: list[Source] = []
        self.unmade: list[ToSplice] = []
        self.notes: list[str] = []
        self.undone: list[Step] = []  # newest first
        self.later: list[Step] = []  # not chosen, and newer than some chosen step

    @property
    def changed(self) -> bool:
        return self.unseen or self.path != self.present or not self.same_content

    @property
    def same_content(self) -> bool:
        """Whether content and permission bits stay."""
        before = self.held and (self.held.digest, self.held.mode)
        return before == (self.now and (self.now.digest, self.now.mode))

    def other_names(self, path: WorkspacePath | None) -> tuple[WorkspacePath, ...]:
        """The other paths at which its contents were."""
        return tuple(sorted(self._line.names - {path}))

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
        for path in (self.present, self.path):
            trouble = self._facts[path].error if path is not None else None
            if trouble is not None and (self.changed or path == self.present):
                self.trouble, self.blocked, self.conflict = trouble, path, None
                self._stay()
                self.notes = [f"{trouble.message}; it stays as it is"]
                return

    def keep_out_of(self, kept: Set[WorkspacePath]) -> None:
        """Leave the file alone where one of these paths would be changed for it."""
        paths = {self.present, self.path, self.conflict.path if self.conflict is not None else None} & kept
        if paths and (self.changed or self.conflict is not None):
            self.conflict = None
            self._stay()
            self.notes = [f"{min(filter(None, paths))}: it belongs to the editor that made it; it stays as it is"]

    def stay_in_the_way(self) -> None:
        """Leave the file alone, as another one can't come back to where it is, above it or below."""
        if self.changed or self.conflict is not None:
            self.conflict, self.stands_in_the_way = None, True
            self._stay()
            self.notes = [f"{self.present}: it is where something else was; delete it, then undo again; it stays"]

    def _stay(self) -> None:
        """Nothing is done to this file."""
        self.path, self.now, self.rung, self.unseen = self.present, self.held, "current", False

    def _undo_move(self, step: Step) -> None:
        if self.conflict is not None or self.path is None:
            return
        if self.path == step.path:
            self.path = step.was
        else:
            self.notes.append(f"{step.path} was moved on to {self.path} since {show(step.change)}; it stays there")

    def _undo_run(self, run: Sequence[Step]) -> None:
        if not run or self.conflict is not None or self.missing or self.unmade:
            return
        newest, oldest = run[0], run[-1]
        after, before, now = self._after(newest), oldest.before, self.now
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
                self.unseen = True
        elif digest == after:
            self._straight_back(newest, oldest)
        elif digest == before:
            return
        elif now is None or before is None or after is None:
            self._conflict(newest, before, run)
        else:
            self._merge(now, newest, oldest, run)

    def _after(self, step: Step) -> Digest | None:
        """What a step left; of the last one, if it was not hashed then, what is there now."""
        path = self._line.path
        last = step is self._line.steps[-1] and path is not None and self._facts[path].version == step.seq
        unhashed = step.after == UNKNOWN and last and self.held is not None and not self._hidden
        return self.held.digest if unhashed and self.held is not None else step.after

    def _straight_back(self, newest: Step, oldest: Step) -> None:
        """Nothing came after it."""
        now, before = self.now, oldest.before
        if before is None:
            self.path = self.now = None
            return
        data = now.data if now is not None and now.digest == before else self._content(before)
        if data is None:
            return
        mode = self._mode_back(now, newest, oldest) if now is not None else oldest.mode_before
        like = now.document.encoding_hint if now is not None and now.document else None
        restored = Held(data, before, mode if mode is not None else 0o644, decode(data, like=like) if like else None)
        self.path, self.now = self.path or newest.was, restored

    def _merge(self, now: Held, newest: Step, oldest: Step, run: Sequence[Step]) -> None:
        """Carry the inverse onto later work."""
        after, before = self._after(newest) or UNKNOWN, oldest.before or UNKNOWN
        old_data, new_data = self._content(after), self._content(before)
        if old_data is None or new_data is None:
            return
        if isinstance(now.data, LargeContent):
            self._splice(now, now.data, old_data, new_data, run)
            return
        like = now.document.encoding_hint if now.document else None
        old, new = decode(old_data, like=like), decode(new_data, like=like)
        if old is None or new is None:
            self._conflict(newest, before, run)
            return
        onto = Facts(
            self.path or newest.path,
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
        self.now = Held(content.data, digest, self._mode_back(now, newest, oldest), content.document)
        self.rung = "merged"

    def _splice(self, now: Held, held: LargeContent, after: Content, before: Content, run: Sequence[Step]) -> None:
        """The same of a content that stays out of memory: later work stays where it is in other lines."""
        newest, oldest = run[0], run[-1]
        root, ours = root_of(held)
        sides = [root_of(side) for side in (after, before) if isinstance(side, LargeContent)]
        made = merged(sides[0][1], ours, sides[1][1]) if [side[0] for side in sides] == [root, root] else None
        if made is None:
            self._conflict(newest, oldest.before, run)
        elif made != ours:
            content = self._any.spliced.get((root, made)) if made else root
            if content is None:
                self.unmade.append((root, made))
                return
            self.now, self.rung = Held(content, content.digest, self._mode_back(now, newest, oldest)), "merged"

    def _conflict(
        self, newest: Step, before: Digest | None, run: Sequence[Step], found: ConflictOutcome | None = None
    ) -> None:
        """Later work is in the way: this file stays as it is, and a person decides."""
        proposed = self._content(before) if before is not None else None
        if before is not None and proposed is None:
            return
        path = self.present or newest.path
        self.conflict = ConflictOutcome(
            path=path,
            base=self._after(newest),
            base_version=newest.seq,
            proposed=proposed,
            regions=found.regions if found is not None and self.held is self.now else (),
            why=found.why if found is not None else "",
            reverts=tuple(sorted({seq for step in run for seq in step.changes})),
            names=self.other_names(path),
        )
        self._stay()

    @staticmethod
    def _mode_back(now: Held, newest: Step, oldest: Step) -> int:
        """A mode that the run changed and that nobody changed since goes back too."""
        changed = oldest.mode_before is not None and newest.mode_after == now.mode
        return oldest.mode_before if changed and oldest.mode_before is not None else now.mode

    def _content(self, digest: Digest) -> Content | None:
        data = self._any.contents.get(digest)
        if data is None:
            self.missing.append(digest)
        return data
