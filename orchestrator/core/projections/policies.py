"""The policy files that hold, by their contents; and what was noted of those that do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from orchestrator.core.events.base import Event, RecordedLike
from orchestrator.core.events.policies import PolicyFile, PolicyLoaded, PolicyRejected, WorkspacePolicyApproved
from orchestrator.core.ids import Checksum, Digest
from orchestrator.core.projections.base import Projection

_NOW = "now"


class Policies(Projection):
    """What decides since the last `PolicyLoaded`, and the workspace's file that a person said yes to."""

    folds: ClassVar[frozenset[type[Event]]] = frozenset({PolicyLoaded, PolicyRejected, WorkspacePolicyApproved})
    _loaded: dict[str, PolicyLoaded]
    _approved: dict[str, Digest]
    _rejected: dict[str, Checksum]

    @property
    def digest(self) -> Checksum | None:
        """Of the policy that was loaded last."""
        loaded = self._loaded.get(_NOW)
        return loaded.digest if loaded is not None else None

    @property
    def files(self) -> tuple[PolicyFile, ...]:
        """Of the policy that was loaded last."""
        loaded = self._loaded.get(_NOW)
        return loaded.files if loaded is not None else ()

    @property
    def approved(self) -> Digest | None:
        """The content of the workspace's file that a person said yes to last."""
        return self._approved.get(_NOW)

    def rejected(self, source: str) -> Checksum | None:
        """What was wrong with a file when it was last refused."""
        return self._rejected.get(source)

    def contents(self) -> Iterator[Digest]:
        """What a start needs."""
        yield from (file.digest for file in self.files)
        if self.approved is not None:
            yield self.approved

    def apply(self, recorded: RecordedLike) -> None:
        match recorded.event:
            case PolicyLoaded() as loaded:
                self._loaded[_NOW] = loaded
            case PolicyRejected(source=source, digest=digest):
                self._rejected[source] = digest
            case WorkspacePolicyApproved(digest=digest):
                self._approved[_NOW] = digest
            case _:
                return
