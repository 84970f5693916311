"""The difference of two trees by path, with renames recognised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.projections.history import VersionRow

Tree = Mapping[WorkspacePath, VersionRow]


class Difference(msgspec.Struct, frozen=True):
    """One file that is not the same in both states; of different paths: it was renamed."""

    old: VersionRow | None
    new: VersionRow | None

    @property
    def path(self) -> WorkspacePath:
        """Where it is now, else where it was."""
        row = self.new if self.new is not None else self.old
        if row is None:
            raise ValueError("absent on both sides")
        return row.path


def differences(old: Tree, new: Tree, *, moves: Iterable[tuple[WorkspacePath, WorkspacePath]] = ()) -> list[Difference]:
    """The files that differ in content or mode, in the order of their paths.

    A file gone and one come are one rename where `moves` (old path, new path) says so, or where
    their contents are equal and not empty; each is used once, the first by path. A content that
    was never hashed differs from every other version's.
    """
    changed = [Difference(old[path], new[path]) for path in old.keys() & new.keys() if not _same(old[path], new[path])]
    gone, come = gone_and_come(old, new)
    left, right = dict.fromkeys(gone), dict.fromkeys(come)
    for source, target in (*moves, *_by_content(old, new, gone, come)):
        if source in left and target in right:
            del left[source], right[target]
            changed.append(Difference(old[source], new[target]))
    changed += [Difference(old[path], None) for path in left]
    changed += [Difference(None, new[path]) for path in right]
    return sorted(changed, key=lambda item: item.path)


def gone_and_come(old: Tree, new: Tree) -> tuple[list[WorkspacePath], list[WorkspacePath]]:
    """The paths of only one of the two states, each in order."""
    return sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())


def _same(old: VersionRow, new: VersionRow) -> bool:
    alike = old.seq == new.seq or (old.digest is not None and old.digest == new.digest)
    return alike and old.mode == new.mode


def _by_content(
    old: Tree, new: Tree, gone: Sequence[WorkspacePath], come: Sequence[WorkspacePath]
) -> list[tuple[WorkspacePath, WorkspacePath]]:
    sources: dict[Digest, list[WorkspacePath]] = {}
    for path in reversed(gone):
        digest = old[path].digest
        if digest is not None and old[path].size != 0:
            sources.setdefault(digest, []).append(path)
    pairs: list[tuple[WorkspacePath, WorkspacePath]] = []
    for path in come:
        digest = new[path].digest
        if digest is not None and sources.get(digest):
            pairs.append((sources[digest].pop(), path))
    return pairs
