"""In which encoding a content is, where nothing in its bytes says so.

A guess may change with one word; what a change recorded does not. So a file keeps its encoding within its history,
and the same journal reads the same after a replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import msgspec

from orchestrator.core.change import PathChange
from orchestrator.core.events.base import Event, RecordedLike
from orchestrator.core.events.conflicts import ApprovalRequested, ConflictFound, ConflictSides
from orchestrator.core.events.files import ChangeApplied, ExternalFileChanged
from orchestrator.core.ids import Digest
from orchestrator.core.projections.base import Projection


class Known(msgspec.Struct, frozen=True, gc=False):
    """What `decode` gets to know of a content."""

    written: str | None = None  # the daemon wrote it so
    like: str | None = None  # another version of the same file was so


NOTHING = Known()


class Encodings(Projection):
    """Contents whose encoding must be remembered; of all others, UTF-8 above all, it holds nothing."""

    folds: ClassVar[frozenset[type[Event]]] = frozenset(
        {ChangeApplied, ApprovalRequested, ExternalFileChanged, ConflictFound}
    )
    tables: ClassVar[Mapping[str, Any]] = {"known": dict[Digest, Known]}

    def __init__(self) -> None:
        self._known: dict[Digest, Known] = {}

    def of(self, digest: Digest | None) -> Known:
        """What is known of a content."""
        return self._known.get(digest, NOTHING) if digest is not None else NOTHING

    def apply(self, recorded: RecordedLike) -> None:
        match recorded.event:
            case ChangeApplied(paths=paths) | ApprovalRequested(paths=paths):
                self._written(paths)
            case ExternalFileChanged(before=before, after=after):
                self._alike(before, after)
            case ConflictFound(sides=ConflictSides(current=current, proposed=proposed)):
                self._alike(current, proposed)
            case _:
                return

    def _written(self, paths: Iterable[PathChange]) -> None:
        for item in paths:
            if item.encoding is None:
                continue
            if item.before is not None:
                self._known.setdefault(item.before, Known(like=item.encoding))
            if item.after is not None:
                self._known[item.after] = Known(written=item.encoding)

    def _alike(self, known: Digest | None, other: Digest | None) -> None:
        here = self.of(known)
        if other is not None and here is not NOTHING:
            self._known.setdefault(other, Known(like=here.written or here.like))
