"""The tree as a caller may know it: files by folder, and the documents to begin with; counted once for each state."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from anyio import to_thread

from orchestrator.core.folders import with_all_below
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.name_index import files_in
from orchestrator.core.paths import ROOT, entry_rank
from orchestrator.core.policy.rules import Policy
from orchestrator.engine.access import AccessGate
from orchestrator.engine.caller import Caller
from orchestrator.engine.names import Names
from orchestrator.engine.permissions import Permissions

KEPT = 4
"""Sets of rules for which the tree is remembered."""

Allows = Callable[[WorkspacePath], bool | None]


class FileTree(NamedTuple):
    """What policy lets a caller know of."""

    files: int
    folders: dict[WorkspacePath, int]  # with all below; in the order in which they are to be named
    documents: tuple[WorkspacePath, ...]  # in reading order


class _Part(NamedTuple):
    """Of one piece of the names."""

    files_in: Counter[str]
    documents: tuple[WorkspacePath, ...]
    unsure: tuple[WorkspacePath, ...]  # what is said of them may depend on more than the policy


class _Counted(NamedTuple):
    policy: Policy
    pieces: tuple[str, ...]
    parts: dict[str, _Part]
    unsure: tuple[WorkspacePath, ...]
    tree: FileTree  # without these


class FileTrees:
    """Counts again only those pieces of the names that have changed; callers under the same rules share it."""

    def __init__(self, names: Names, permissions: Permissions, access: AccessGate) -> None:
        self._names, self._permissions, self._access = names, permissions, access
        self._known: OrderedDict[int, _Counted] = OrderedDict()

    async def of(self, caller: Caller) -> FileTree:
        """What the caller may know of."""
        return await to_thread.run_sync(self._of, caller, limiter=self._names.threads)

    def _of(self, caller: Caller) -> FileTree:
        """Blocking: policy is asked of every name."""
        allows, pieces = self._permissions.allowing(caller, ("list",)), self._names.pieces()
        if pieces is None:
            part = _part(allows, (item.path for item in self._names.walk(ROOT) if item.kind == "file"))
            return self._with_granted(caller, [part], part.unsure)
        policy, rules = self._permissions.policy, self._permissions.rules_for(caller, "list")
        known = self._known.get(rules)
        if known is None or known.policy is not policy or known.pieces is not pieces:
            before = known.parts if known is not None and known.policy is policy else {}
            parts = {piece: before.get(piece) or _part(allows, files_in(piece)) for piece in pieces}
            unsure = tuple(path for part in parts.values() for path in part.unsure)
            known = self._known[rules] = _Counted(policy, pieces, parts, unsure, _tree(parts.values()))
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return self._with_granted(caller, known.parts.values(), known.unsure, known.tree)

    def _with_granted(
        self, caller: Caller, parts: Iterable[_Part], unsure: Iterable[WorkspacePath], tree: FileTree | None = None
    ) -> FileTree:
        granted = [path for path in unsure if self._access.lists(caller, path)]
        if tree is not None and not granted:
            return tree
        return _tree([*parts, _part(lambda path: True, granted)])


def _part(allows: Allows, files: Iterable[WorkspacePath]) -> _Part:
    files_in, documents, unsure = Counter[str](), list[WorkspacePath](), list[WorkspacePath]()
    for path in files:
        allowed = allows(path)
        if allowed:
            files_in[path.rpartition("/")[0]] += 1
            if entry_rank(path) is not None:
                documents.append(path)
        elif allowed is None:
            unsure.append(path)
    return _Part(files_in, tuple(documents), tuple(unsure))


def _tree(parts: Iterable[_Part]) -> FileTree:
    files_in, ranked = Counter[str](), list[tuple[tuple[int, int, str], WorkspacePath]]()
    for part in parts:
        files_in.update(part.files_in)
        ranked += ((rank, path) for path in part.documents if (rank := entry_rank(path)) is not None)
    return FileTree(files_in.total(), with_all_below(files_in), tuple(path for _, path in sorted(ranked)))
