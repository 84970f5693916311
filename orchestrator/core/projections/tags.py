"""The tags that were set on paths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from orchestrator.core.events.base import Event, RecordedLike
from orchestrator.core.events.files import (
    ChangeApplied,
    ExternalFileChanged,
    ExternalFileCreated,
    FileTagged,
    path_changes,
)
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.projections.base import Projection


class Tags(Projection):
    """The tags of each path that has any, sorted.

    A file that is moved takes its tags along, and the path that it leaves keeps them, as does that of a deleted file:
    what was there can still be read by version, and is judged by its path.
    """

    folds: ClassVar[frozenset[type[Event]]] = frozenset(
        {FileTagged, ChangeApplied, ExternalFileChanged, ExternalFileCreated}
    )
    _tags: dict[WorkspacePath, tuple[str, ...]]

    def of(self, path: WorkspacePath) -> tuple[str, ...]:
        """The tags that were set on a path."""
        return self._tags.get(path, ())

    def __bool__(self) -> bool:
        """Whether any are set."""
        return bool(self._tags)

    def __iter__(self) -> Iterator[tuple[WorkspacePath, tuple[str, ...]]]:
        """All paths with tags, in their order."""
        return iter(sorted(self._tags.items()))

    def apply(self, recorded: RecordedLike) -> None:
        match recorded.event:
            case FileTagged(path=path, added=added, removed=removed):
                self._set(path, {*self.of(path), *added}.difference(removed))
            case event if self._tags:
                for change in path_changes(event):
                    if change.moved_from in self._tags:
                        self._set(change.path, {*self.of(change.path), *self._tags[change.moved_from]})
            case _:
                return

    def _set(self, path: WorkspacePath, tags: set[str]) -> None:
        if tags:
            self._tags[path] = tuple(sorted(tags))
        else:
            self._tags.pop(path, None)
