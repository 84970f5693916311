"""Files that agents make, edit, move and delete, kept as the journal's history would tell it."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.core.content import digest_of
from orchestrator.core.decisions.decision import Apply, ConflictOutcome, Facts, Held, Need
from orchestrator.core.decisions.lineage import Key, lineages
from orchestrator.core.decisions.undo import undo
from orchestrator.core.ids import AgentName, Digest, Seq, WorkspacePath
from orchestrator.core.projections.versions import VersionRow


class Story:
    """A tree of texts, and the rows of every version."""

    def __init__(self, **files: str) -> None:
        self.tree: dict[str, str] = {}
        self.modes: dict[str, int] = {}
        self.rows: list[VersionRow] = []
        self.contents: dict[Digest, bytes] = {}
        self.seq = 0
        for path, text in files.items():
            self._row(path, text, None, kind="found")

    def write(self, agent: str | None, path: str, text: str | None, *, mode: int | None = None) -> Seq:
        """Make, change or (None) remove a file; the change's number. No agent: other hands."""
        self.seq += 1
        if mode is not None:
            self.modes[path] = mode
        return self._row(path, text, agent)

    def move(self, agent: str | None, source: str, target: str) -> Seq:
        self.seq += 1
        text = self.tree[source]
        self.modes[target] = self.modes.pop(source, 0o644)
        self._row(target, text, agent, moved_from=source)
        return self._row(source, None, agent)

    def _row(
        self, path: str, text: str | None, agent: str | None, *, kind: str = "change", moved_from: str | None = None
    ) -> Seq:
        digest = None
        if text is None:
            self.tree.pop(path, None)
        else:
            self.tree[path] = text
            digest = digest_of(text.encode())
            self.contents[digest] = text.encode()
        outside = kind == "change" and agent is None
        self.rows.append(
            VersionRow(
                path=WorkspacePath(path),
                seq=Seq(self.seq),
                effective=Seq(self.seq),
                at=0,
                kind="external" if outside else "found" if kind == "found" else "change",
                digest=digest,
                present=text is not None,
                mode=self.modes.get(path, 0o644) if text is not None else None,
                change=None if outside or kind == "found" else Seq(self.seq),
                agent=AgentName(agent) if agent else None,
                moved_from=WorkspacePath(moved_from) if moved_from else None,
            )
        )
        return Seq(self.seq)

    def of(self, agent: str | None) -> frozenset[Key]:
        """All that an agent did."""
        return frozenset((row.path, row.seq) for row in self.rows if row.agent == agent and row.kind != "found")

    def at(self, *changes: int) -> frozenset[Key]:
        return frozenset((row.path, row.seq) for row in self.rows if row.seq in changes)

    def undo(self, chosen: Iterable[Key]) -> Apply:
        """The decision, with every content that it needs."""
        histories: dict[WorkspacePath, list[VersionRow]] = {}
        for row in self.rows:
            histories.setdefault(row.path, []).append(row)
        facts = {path: Facts(path, self._held(path), None, contents=self.contents) for path in histories}
        outcome = undo(lineages(histories, {}), frozenset(chosen), facts)
        assert not isinstance(outcome, Need | ConflictOutcome)
        return outcome

    def after(self, plan: Apply) -> dict[str, str]:
        """The tree when the plan is carried out; every part must fit."""
        tree = dict(self.tree)
        for part in plan.paths:
            present = tree.get(part.path)
            assert part.before == (digest_of(present.encode()) if present is not None else None)
        for part in plan.paths:
            if part.after is None:
                del tree[part.path]
        for part in plan.paths:
            if part.renamed and part.moved_from is not None:
                tree[part.path] = self.tree[part.moved_from]
            elif part.after is not None:
                content = plan.content(part)
                assert content is not None
                assert isinstance(content.data, bytes)
                tree[part.path] = content.data.decode()
        return tree

    def carry_out(self, agent: str, plan: Apply) -> Seq:
        """Make the change that a plan says, and tell it; its number."""
        tree = self.after(plan)
        self.seq += 1
        for part in plan.paths:
            self._row(part.path, tree.get(part.path), agent, moved_from=part.moved_from)
        return Seq(self.seq)

    def _held(self, path: str) -> Held | None:
        text = self.tree.get(path)
        if text is None:
            return None
        return Held(text.encode(), digest_of(text.encode()), self.modes.get(path, 0o644))
