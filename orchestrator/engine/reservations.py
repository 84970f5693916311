"""What others reserved, asked before a change goes where they work.

The policy's `[leases] on_clash` says what becomes of a change to a path that another agent holds alone.
A person's change goes through with a warning, whatever it says: people outrank leases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import assert_never

import anyio
import msgspec

from orchestrator.api.results import LeaseInfo
from orchestrator.core.errors import PathReserved
from orchestrator.core.events.leases import LeaseGranted
from orchestrator.core.ids import Seq, WorkspacePath, show
from orchestrator.core.policy.rules import OnLeaseOverlap
from orchestrator.core.projections.leases import Lease
from orchestrator.engine.caller import Caller
from orchestrator.engine.services import Services


class LeaseOverlap(msgspec.Struct, frozen=True):
    """The leases of others that a change goes across, and what its caller is told of them."""

    leases: tuple[Seq, ...] = ()
    warnings: tuple[str, ...] = ()


class Reservations:
    """The leases that hold now, as changes meet them. Keeps nothing of its own."""

    def __init__(self, services: Services) -> None:
        self._s = services

    async def wait(self, caller: Caller, paths: Sequence[WorkspacePath], *, preview: bool = False) -> None:
        """With policy `queue`: let others' leases on these paths end first, for `max_wait_s` at most.

        Call it holding no lock: the holder works on these paths meanwhile.
        """
        if self._rule(caller) == "queue" and not preview:
            await self.free(lambda: not self._met(caller, paths), self._s.policy.leases.max_wait_s)

    async def free(self, is_free: Callable[[], bool], within_s: float) -> None:
        """Return when `is_free`, asked again at each move, or when the time is over."""
        with anyio.move_on_after(within_s):
            moved = self._s.next_move()
            while not is_free():
                await moved.wait()
                moved = self._s.next_move()

    async def crossing(
        self, caller: Caller, paths: Sequence[WorkspacePath], *, preview: bool = False, granted: bool = False
    ) -> LeaseOverlap:
        """What a change to these paths, all locked by now, goes across; `granted`: a person said yes to it.

        Raises PathReserved where policy keeps it out.
        """
        met = self._met(caller, paths)
        if not met:
            return LeaseOverlap()
        leases = tuple(dict.fromkeys(lease.seq for _, lease in met))
        rule = "warn" if granted else self._rule(caller)
        match rule:
            case "warn":
                return LeaseOverlap(leases, tuple(_held(path, lease) for path, lease in met))
            case "merge":
                return LeaseOverlap(leases)
            case "queue" if preview:
                return LeaseOverlap(
                    leases, tuple(f"{_held(path, lease)}; it would wait for that" for path, lease in met)
                )
            case "deny" | "queue":
                path, lease = met[0]
                raise await self.refusal(_held(path, lease), [lease for _, lease in met], path=path)
            case _:
                assert_never(rule)

    async def refusal(
        self, message: str, leases: Iterable[Lease], *, path: WorkspacePath | None = None
    ) -> PathReserved:
        """The refusal of what these leases keep out; `details` has all of them."""
        clashes = await self.infos(dict.fromkeys(leases))
        details = {"clashes": msgspec.to_builtins(clashes)}
        return PathReserved(message, details=details if path is None else {"path": path, **details})

    def seen_by(self, caller: Caller, paths: Iterable[WorkspacePath]) -> tuple[Lease, ...]:
        """The caller's own leases, and those of others that cover one of these paths."""
        known, leases = list(paths), self._s.state.leases
        return tuple(
            lease for lease in self.live() if lease.agent == caller.agent or leases.covers_any(lease, known)
        )  # fmt: skip

    def live(self) -> tuple[Lease, ...]:
        """The leases that hold now, oldest first."""
        return self._s.state.leases.live(self._s.clock.now_ms())

    async def infos(self, leases: Iterable[Lease]) -> tuple[LeaseInfo, ...]:
        """Leases as answers show them, each with its reason."""
        return tuple([await self._info(lease) for lease in leases])

    async def _info(self, lease: Lease) -> LeaseInfo:
        recorded = await self._s.journal.event(lease.seq)
        return LeaseInfo(
            lease=show(lease.seq),
            agent=lease.agent,
            session=lease.session,
            globs=lease.globs,
            mode=lease.mode,
            since=lease.at,
            expires_at=lease.expires_at,
            task=show(lease.task) if lease.task else None,
            reason=recorded.event.reason if recorded and isinstance(recorded.event, LeaseGranted) else "",
        )

    def _met(self, caller: Caller, paths: Sequence[WorkspacePath]) -> list[tuple[WorkspacePath, Lease]]:
        covering = partial(self._s.state.leases.covering, at_ms=self._s.clock.now_ms())
        return [
            (path, lease)
            for path in paths
            for lease in covering(path)
            if lease.mode == "exclusive" and lease.agent != caller.agent
        ]

    def _rule(self, caller: Caller) -> OnLeaseOverlap:
        return "warn" if caller.is_person else self._s.policy.leases.on_clash


def _held(path: WorkspacePath, lease: Lease) -> str:
    """Without the reason: that one may be redacted, and warnings and refusals are kept."""
    until = datetime.fromtimestamp(lease.expires_at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    return f"{path} is reserved by {lease.agent} until {until} (lease {show(lease.seq)})"
