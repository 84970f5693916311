"""The difference of two trees by path, with renames recognised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.projections.version_rows import VersionRow

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


def differences(old: Tree, new: Tree, moves: Iterable[tuple[WorkspacePath, WorkspacePath]] = ()) -> list[Difference]:
    """The files that differ in content or mode, in the order of their paths.

    A removed and an added file are one rename where `moves` (old path, new path) says so, or where their contents
    are equal and not empty; each is used once, the first by path. A content that was never hashed differs from
    every other version's.
    """
    changed = [Difference(old[path], new[path]) for path in old.keys() & new.keys() if not _same(old[path], new[path])]
    removed, added = dict.fromkeys(sorted(old.keys() - new.keys())), dict.fromkeys(sorted(new.keys() - old.keys()))
    for source, target in moves:
        if source in removed and target in added:
            del removed[source], added[target]
            changed.append(Difference(old[source], new[target]))
    sources: dict[Digest, list[WorkspacePath]] = {}
    for path in reversed(removed):
        digest = old[path].digest
        if digest is not None and old[path].size != 0:
            sources.setdefault(digest, []).append(path)
    for path in tuple(added):
        digest = new[path].digest
        if digest is not None and sources.get(digest):
            source = sources[digest].pop()
            del removed[source], added[path]
            changed.append(Difference(old[source], new[path]))
    changed += [Difference(old[path], None) for path in removed]
    changed += [Difference(None, new[path]) for path in added]
    return sorted(changed, key=lambda item: item.path)


def _same(old: VersionRow, new: VersionRow) -> bool:
    alike = old.seq == new.seq or (old.digest is not None and old.digest == new.digest)
    return alike and old.mode == new.mode
