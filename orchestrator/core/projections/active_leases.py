"""Who works where: the leases that have not ended, and the paths that they cover.

A reason may be redacted, so none is kept here; who shows one reads it from its event.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import msgspec

from orchestrator.core.events.base import Event, RecordedLike
from orchestrator.core.events.sessions import LeaseExpired, LeaseGranted, LeaseMode, LeaseReleased, LeaseRenewed
from orchestrator.core.globs import Globs
from orchestrator.core.ids import AgentName, Seq, SessionId, WorkspacePath
from orchestrator.core.projections.base import Projection


class Lease(msgspec.Struct, frozen=True, dict=True):
    """One lease. Its `seq` is its fencing number: of two leases on a path, the later has the higher one."""

    seq: Seq
    at: int  # ms since the epoch
    agent: AgentName
    session: SessionId | None
    globs: tuple[str, ...]
    mode: LeaseMode
    expires_at: int  # ms since the epoch
    task: Seq | None = None

    @cached_property
    def compiled(self) -> Globs:
        """Its globs, ready to match."""
        return Globs(self.globs)

    def ended(self, now_ms: int) -> bool:
        """Whether its time is over, also where no event says so yet."""
        return self.expires_at <= now_ms


class Leases(Projection):
    """The leases that were granted, and neither released nor expired.

    Folds have no clock: a lease whose time is over stays here until LeaseExpired. Who must not
    take it for one that holds asks `ended`, or gives `at_ms`.
    """

    folds: ClassVar[frozenset[type[Event]]] = frozenset({LeaseGranted, LeaseRenewed, LeaseReleased, LeaseExpired})
    tables: ClassVar[Mapping[str, Any]] = {"leases": dict[Seq, Lease]}

    def __init__(self) -> None:
        self._leases: dict[Seq, Lease] = {}

    def get(self, seq: int) -> Lease | None:
        return self._leases.get(Seq(seq))

    def live(self, at_ms: int | None = None) -> tuple[Lease, ...]:
        """All of them, oldest first; with `at_ms` those whose time is not over then."""
        return tuple(lease for lease in self._leases.values() if at_ms is None or not lease.ended(at_ms))

    def covering(self, path: WorkspacePath, at_ms: int | None = None) -> tuple[Lease, ...]:
        """The leases whose globs name this path or a directory above it, oldest first. Cost: all leases."""
        return tuple(lease for lease in self.live(at_ms) if lease.compiled.match(path))

    def holder_of(self, path: WorkspacePath, at_ms: int | None = None) -> tuple[AgentName, Seq] | None:
        """The one agent that holds a path alone, with its oldest lease on it; None where none or several do."""
        alone = [lease for lease in self.covering(path, at_ms) if lease.mode == "exclusive"]
        if len({lease.agent for lease in alone}) != 1:
            return None
        return alone[0].agent, alone[0].seq

    def apply(self, recorded: RecordedLike) -> None:
        match recorded.event:
            case LeaseGranted(globs=globs, mode=mode, expires_at=expires_at, task=task) if recorded.agent is not None:
                seq, agent = recorded.seq, recorded.agent
                self._leases[seq] = Lease(seq, recorded.at, agent, recorded.session, globs, mode, expires_at, task)
            case LeaseRenewed(lease=seq, expires_at=expires_at):
                known = self._leases.get(seq)
                if known is not None:
                    self._leases[seq] = msgspec.structs.replace(known, expires_at=expires_at)
            case LeaseReleased(lease=seq) | LeaseExpired(lease=seq):
                self._leases.pop(seq, None)
            case _:
                return
