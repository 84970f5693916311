"""The tree as a caller may know it: files by folder, and the documents to begin with; counted once for each state."""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import NamedTuple

from anyio import to_thread

from orchestrator.core.change import PermissionCheck
from orchestrator.core.folders import with_all_below
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import ROOT, entry_rank
from orchestrator.core.policy.rules import Policy, Request
from orchestrator.engine.access import AccessGate
from orchestrator.engine.caller import Caller
from orchestrator.engine.names import Names
from orchestrator.engine.permissions import Permissions

KEPT = 16
"""Callers whose tree is remembered."""


class FileTree(NamedTuple):
    """What policy lets a caller know of."""

    files: int
    folders: dict[WorkspacePath, int]  # with all below; in the order in which they are to be named
    documents: tuple[WorkspacePath, ...]  # in reading order


class _Counted(NamedTuple):
    policy: Policy
    names: object
    files_in: Counter[str]
    documents: tuple[WorkspacePath, ...]
    unsure: tuple[WorkspacePath, ...]  # what is said of them may depend on more than the policy
    tree: FileTree  # without these


class FileTrees:
    """Counts again only where names or policy are others than they were."""

    def __init__(self, names: Names, permissions: Permissions, access: AccessGate) -> None:
        self._names, self._permissions, self._access = names, permissions, access
        self._known: OrderedDict[Request, _Counted] = OrderedDict()

    async def of(self, caller: Caller) -> FileTree:
        """What the caller may know of."""
        return await to_thread.run_sync(self._of, caller, limiter=self._names.threads)

    def _of(self, caller: Caller) -> FileTree:
        """Blocking: policy is asked of every name."""
        asked = self._permissions.request(caller, PermissionCheck("list", ROOT))
        names, policy = self._names.state(), self._permissions.policy
        known = self._known.get(asked)
        if known is None or names is None or known.names is not names or known.policy is not policy:
            known = self._count(caller, policy, names)
            if names is not None:
                self._known[asked] = known
                while len(self._known) > KEPT:
                    self._known.popitem(last=False)
        more = [path for path in known.unsure if self._access.lists(caller, path)]
        if not more:
            return known.tree
        return _tree(
            known.files_in + Counter(path.rpartition("/")[0] for path in more),
            (*known.documents, *(path for path in more if entry_rank(path) is not None)),
        )

    def _count(self, caller: Caller, policy: Policy, names: object) -> _Counted:
        allows = self._permissions.allowing(caller, ("list",))
        files_in, documents, unsure = Counter[str](), list[WorkspacePath](), list[WorkspacePath]()
        for item in self._names.walk(ROOT):
            if item.kind != "file":
                continue
            allowed = allows(item.path)
            if allowed:
                files_in[item.path.rpartition("/")[0]] += 1
                if entry_rank(item.path) is not None:
                    documents.append(item.path)
            elif allowed is None:
                unsure.append(item.path)
        return _Counted(policy, names, files_in, tuple(documents), tuple(unsure), _tree(files_in, documents))


def _tree(files_in: Counter[str], documents: list[WorkspacePath] | tuple[WorkspacePath, ...]) -> FileTree:
    ranked = sorted((rank, path) for path in documents if (rank := entry_rank(path)) is not None)
    return FileTree(files_in.total(), with_all_below(files_in), tuple(path for _, path in ranked))
