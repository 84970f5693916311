"""What every projection that lives in memory can do."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from orchestrator.core.events.base import Recorded


class Projection(Protocol):
    """A fold over the journal: no I/O, no clock; dropped and replayed it is the same.

    `version` is raised when the fold changes; older snapshots are then rebuilt.
    """

    name: ClassVar[str]
    version: ClassVar[int]

    def apply(self, recorded: Recorded) -> None:
        """Take one event in; events come in the journal's order."""

    def plain(self) -> dict[str, Any]:
        """All state as plain data with string keys, the same for the same history."""
