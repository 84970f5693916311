"""Leases: granted, renewed, given back, and lapsed when their time is over by this daemon's clock.

A session that closes keeps its leases until then: a caller that comes back finds them as they were.
"""

from __future__ import annotations

from functools import partial

import anyio
from anyio import to_thread

from orchestrator.api import leases as a
from orchestrator.core.decisions.leases import Grant, Outcome, Renew, Reserve, Taken, release, reserve
from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.events.base import Event, Origin, Recorded
from orchestrator.core.events.leases import LeaseExpired, LeaseGranted, LeaseReleased, LeaseRenewed
from orchestrator.core.ids import Seq, parse_seq, show
from orchestrator.core.projections.leases import Lease
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.paths import Paths
from orchestrator.engine.reservations import Reservations
from orchestrator.engine.services import Services

OFF_LOOP_MATCHES = 100_000
"""Known paths times characters of globs beyond which it is found out in a thread whether globs overlap."""

MOST_NAMED = 5
"""Leases in the sentence of a clash; `clashes` has all."""


class Leaser:
    """The book of leases; one request at a time is decided."""

    def __init__(self, services: Services, paths: Paths) -> None:
        self._s, self._paths = services, paths
        self._reservations = Reservations(services)
        self._deciding = anyio.Lock()

    async def reserve_paths(self, caller: Caller, call: Call, params: a.ReservePaths) -> a.LeaseAnswer:
        globs = tuple(map(self._paths.glob, params.globs))
        if all(glob.startswith("!") for glob in globs):
            raise ParameterInvalid(
                "globs",
                "are exceptions only, which would reserve everything else",
                hint="Name what you will work on; a glob with '!' excepts from those before it.",
            )
        rules = self._s.policy.leases
        limit = anyio.current_time() + (rules.max_wait_s if rules.on_clash == "queue" else 0)
        outcome = await self._reserve(caller, call, params, globs)
        while isinstance(outcome, Taken) and anyio.current_time() < limit:
            await self._reservations.free(partial(self._over, outcome.clashes), limit - anyio.current_time())
            outcome = await self._reserve(caller, call, params, globs)
        if not isinstance(outcome, Taken):
            cut = f"; policy grants {rules.max_ttl_s} s at most" if params.ttl_s > rules.max_ttl_s else ""
            return self._holds(outcome, cut)
        more = f" and {len(outcome.clashes) - MOST_NAMED} more" if len(outcome.clashes) > MOST_NAMED else ""
        message = "reserved already: " + ", ".join(map(_named, outcome.clashes[:MOST_NAMED])) + more
        if rules.on_clash == "deny":
            raise await self._reservations.refusal(message, outcome.clashes)
        return a.LeaseAnswer(
            status="clash",
            message=f"{message}. Nothing was reserved; work elsewhere, or call again when that has ended.",
            clashes=await self._reservations.infos(outcome.clashes),
        )

    async def release_paths(self, caller: Caller, call: Call, params: a.ReleasePaths) -> a.LeaseAnswer:
        number = parse_seq(params.lease, parameter="lease")
        async with self._deciding:
            await self._expire_due()
            lease = self._s.state.leases.get(number)
            event = release(lease, number, by=caller.agent, person=caller.is_person)
            holder = lease.agent if lease is not None else caller.agent
            await self._s.append(caller.origin(call), (f"lease:{holder}", event))
        return _released(number)

    async def again(self, recorded: Recorded) -> a.LeaseAnswer | None:
        """The answer of an earlier call, by the event that it led to, as things are now."""
        match recorded.event:
            case LeaseReleased(lease=number):
                return _released(number)
            case LeaseGranted():
                return self._still(recorded.seq, "granted")
            case LeaseRenewed(lease=number):
                return self._still(number, "renewed")
            case _:
                return None

    async def expire(self) -> int | None:
        """Lapse what is due; the ms at which the next one will be, None if nothing is reserved."""
        async with self._deciding:
            await self._expire_due()
        return min((lease.expires_at for lease in self._s.state.leases.live()), default=None)

    # --- deciding ---------------------------------------------------------------------

    async def _reserve(
        self, caller: Caller, call: Call, params: a.ReservePaths, globs: tuple[str, ...]
    ) -> Recorded | Taken:
        async with self._deciding:
            await self._expire_due()
            session = self._s.state.sessions.get(caller.session)
            request = Reserve(
                agent=caller.agent,
                session=caller.session,
                globs=globs,
                mode=params.mode,
                expires_at=self._s.clock.now_ms() + 1000 * min(params.ttl_s, self._s.policy.leases.max_ttl_s),
                task=session.task if session else None,
                reason=params.reason,
            )
            outcome = await self._outcome(request)
            event: Event
            match outcome:
                case Taken():
                    return outcome
                case Grant(event=granted):
                    event = granted
                case Renew(event=renewed):
                    event = renewed
            return (await self._s.append(caller.origin(call), (f"lease:{caller.agent}", event)))[0]

    async def _outcome(self, request: Reserve) -> Outcome:
        known = tuple(entry.path for entry in self._s.state.registry.files())
        decide = partial(reserve, request, self._s.state.leases.live(), known)
        if len(known) * sum(map(len, request.globs)) > OFF_LOOP_MATCHES:
            return await to_thread.run_sync(decide)
        return decide()

    async def _expire_due(self) -> None:
        now = self._s.clock.now_ms()
        for lease in self._s.state.leases.live():
            if lease.ended(now):
                origin = Origin(session=lease.session, agent=lease.agent, cause=lease.seq)
                await self._s.append(origin, (f"lease:{lease.agent}", LeaseExpired(lease=lease.seq)))

    def _over(self, leases: tuple[Lease, ...]) -> bool:
        return all(self._s.state.leases.get(lease.seq) is None for lease in leases)

    # --- answers ----------------------------------------------------------------------

    def _holds(self, recorded: Recorded, more: str) -> a.LeaseAnswer:
        if isinstance(recorded.event, LeaseRenewed):
            return self._still(recorded.event.lease, "renewed", more)
        return self._still(recorded.seq, "granted", more)

    def _still(self, number: Seq, status: a.LeaseStatus, more: str = "") -> a.LeaseAnswer:
        lease = self._s.state.leases.get(number)
        if lease is None:
            return a.LeaseAnswer(
                status="ended", message=f"{show(number)} was {status}, and has ended since", lease=show(number)
            )
        return a.LeaseAnswer(
            status=status,
            message=f"{show(number)} is {status}{more}",
            lease=show(number),
            fencing=number,
            expires_at=lease.expires_at,
            mode=lease.mode,
            globs=lease.globs,
        )


def _released(number: Seq) -> a.LeaseAnswer:
    return a.LeaseAnswer(status="released", message=f"{show(number)} is released", lease=show(number))


def _named(lease: Lease) -> str:
    return f"{' '.join(lease.globs)} by {lease.agent} ({show(lease.seq)}, {lease.mode})"
