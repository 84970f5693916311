"""What every projection that lives in memory can do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec

from orchestrator.core.events.base import Event, RecordedLike

T = TypeVar("T")


class Projection(Protocol):
    """A fold over the journal: no I/O, no clock; dropped and replayed it is the same.

    `version` is raised when the fold changes, or what a part of it looks like; older snapshots
    are then not used. `folds` are the kinds of events that can change it: no other is shown to it.
    """

    name: ClassVar[str]
    version: ClassVar[int]
    folds: ClassVar[frozenset[type[Event]]]
    part: ClassVar[type[msgspec.Struct]]

    def apply(self, recorded: RecordedLike) -> None:
        """Take one event in; events come in the journal's order."""

    def parts(self) -> list[msgspec.Struct]:
        """All state in a few pieces that never change; the same, in the same order, for the same history.

        Cost: copies of references, for it runs on the event loop.
        """

    def restore(self, parts: Iterable[Any]) -> None:
        """Become, from empty, what gave these parts."""


def pieces(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """Cut into tuples of at most `size`."""
    source = iter(items)
    while piece := tuple(islice(source, size)):
        yield piece
