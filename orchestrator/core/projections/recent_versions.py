"""The latest versions of each file, at hand: who made them, and out of which. The journal knows the others."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from orchestrator.core.events.base import RecordedLike
from orchestrator.core.events.files import (
    ChangeApplied,
    ExternalFileChanged,
    ExternalFileCreated,
    ExternalFileRemoved,
    FilesFound,
)
from orchestrator.core.ids import Digest, Seq, WorkspacePath
from orchestrator.core.projections.read_sets import OUTSIDE
from orchestrator.core.projections.registry import Registry

MOST_VERSIONS = 5_000
"""Of all files together; the file that changed longest ago goes first."""

MOST_OF_ONE = 200


class Version(NamedTuple):
    """One version of a file, and by whom it came."""

    seq: Seq
    digest: Digest
    authors: tuple[tuple[str, Seq], ...] = ()  # one, with this version; not of the oldest that is kept


class RecentVersions:
    """Without a gap from the oldest that is kept to the present; a file created, removed or moved begins anew."""

    def __init__(self, registry: Registry) -> None:
        self._registry, self._held = registry, 0
        self._of: OrderedDict[WorkspacePath, dict[Seq, Version]] = OrderedDict()

    def __len__(self) -> int:
        return self._held

    def apply(self, recorded: RecordedLike) -> None:
        """To be called before the registry folds the event."""
        match recorded.event:
            case ChangeApplied(paths=paths):
                who = recorded.agent or OUTSIDE
                for changed in paths:
                    if changed.moved_from is not None or changed.binary or changed.directory:
                        self._forget(changed.path)
                    else:
                        self._add(changed.path, recorded.seq, changed.before, changed.after, who)
            case ExternalFileChanged(path=path, before=before, after=after, by=by, moved_from=None):
                self._add(path, recorded.seq, before, after, by or OUTSIDE)
            case ExternalFileChanged(path=path) | ExternalFileCreated(path=path) | ExternalFileRemoved(path=path):
                self._forget(path)
            case FilesFound(entries=entries):
                for found in entries:
                    known = self._registry.get(found.path)
                    if known is None or found.version != known.version or known.digest not in (None, found.digest):
                        self._forget(found.path)
            case _:
                return

    def since(self, path: WorkspacePath, version: Seq) -> list[Version] | None:
        """A version and all that came after it, oldest first; None where that is not at hand."""
        versions = self._of.get(path, {})
        if version in versions:
            return [item for item in versions.values() if item.seq >= version]
        present = self._registry.get(path)
        if versions or present is None or present.version != version or present.digest is None:
            return None
        return [Version(version, present.digest)]

    def digest(self, path: WorkspacePath, version: Seq) -> Digest | None:
        """The content of a version, if it is at hand."""
        found = self._of.get(path, {}).get(version)
        return found.digest if found is not None else None

    def _add(self, path: WorkspacePath, seq: Seq, before: Digest | None, after: Digest | None, who: str) -> None:
        known = self._registry.get(path)
        if after is None or before is None or known is None or known.digest != before:
            self._forget(path)
            return
        versions = self._of.setdefault(path, {})
        if not versions:
            versions[known.version] = Version(known.version, before)
            self._held += 1
        self._of.move_to_end(path)
        versions[seq] = Version(seq, after, ((who, seq),))
        self._held += 1
        if len(versions) > MOST_OF_ONE:
            for old in [*versions][: MOST_OF_ONE // 2]:
                del versions[old]
            self._held -= MOST_OF_ONE // 2
        while self._held > MOST_VERSIONS:
            self._held -= len(self._of.popitem(last=False)[1])

    def _forget(self, path: WorkspacePath) -> None:
        self._held -= len(self._of.pop(path, ()))
