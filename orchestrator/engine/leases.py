"""Leases: granted, renewed, released, and expired when their time is over by this daemon's clock.

A session that closes keeps its leases until then: a caller that comes back finds them as they were.
The policy's `[leases] on_overlap` says what becomes of a change to a path that another agent holds alone.
A person's change goes through with a warning, whatever it says: people outrank leases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import assert_never

import anyio
import msgspec
from anyio import to_thread

from orchestrator.api import session_operations as a
from orchestrator.api.session_operations import LeaseInfo
from orchestrator.core.decisions.decision import Apply
from orchestrator.core.errors import ParameterInvalid, PathReserved
from orchestrator.core.events.base import Origin, Recorded
from orchestrator.core.events.sessions import LeaseExpired, LeaseGranted, LeaseReleased, LeaseRenewed
from orchestrator.core.ids import AgentName, Seq, WorkspacePath, show, to_the_second
from orchestrator.core.leases import Lease, release, reserve
from orchestrator.core.policy.profiles import OnLeaseOverlap
from orchestrator.core.positions import parse_seq
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.services import Services

MOST_NAMED = 5
"""Leases in the sentence of an overlap."""

MOST_BYTES = 32 * 1024
"""Of leases in an answer; the rest is counted in its message."""


class LeaseOverlap(msgspec.Struct, frozen=True):
    """The leases of others that a change goes across, and the warnings for its caller."""

    leases: tuple[Seq, ...] = ()
    warnings: tuple[str, ...] = ()

    def warned(self, plan: Apply) -> Apply:
        """The change, with these warnings."""
        return plan.fitted(warnings=(*plan.fit.warnings, *self.warnings))


class Leases:
    """Grants, renews and releases leases, one request at a time, and keeps changes out of those of others."""

    def __init__(self, services: Services) -> None:
        self._s, self._deciding = services, anyio.Lock()

    async def wait(self, caller: Caller, paths: Sequence[WorkspacePath], *, preview: bool = False) -> None:
        """With policy `queue`: let others' leases on these paths end first, for `max_wait_s` at most.

        Call it holding no lock: the holder works on these paths meanwhile.
        """
        if self._rule(caller) == "queue" and not preview:
            await self.free(lambda: not self._met(caller, paths), self._s.permissions.policy.leases.max_wait_s)

    async def free(self, is_free: Callable[[], bool], within_s: float) -> None:
        """Return when `is_free`, asked again at each move, or when the time is over."""
        with anyio.move_on_after(within_s):
            moved = self._s.state_changes.next()
            while not is_free():
                await moved.wait()
                moved = self._s.state_changes.next()

    async def crossing(
        self, caller: Caller, paths: Sequence[WorkspacePath], *, preview: bool = False, granted: bool = False
    ) -> LeaseOverlap:
        """What a change to these paths, all locked by now, goes across; `granted`: a person granted it.

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
                warnings = tuple(f"{_held(path, lease)}; it would wait for that" for path, lease in met)
                return LeaseOverlap(leases, warnings)
            case "deny" | "queue":
                path, lease = met[0]
                raise await self.refusal(caller, _held(path, lease), [lease for _, lease in met], path=path)
            case _:
                assert_never(rule)

    async def refusal(
        self, caller: Caller, message: str, leases: Iterable[Lease], *, path: WorkspacePath | None = None
    ) -> PathReserved:
        """The refusal of what these leases keep out; `details` has the first of them."""
        clashes = await self.infos(dict.fromkeys(leases), caller)
        details = {"clashes": msgspec.to_builtins(clashes)}
        return PathReserved(message, details=details if path is None else {"path": path, **details})

    def seen_by(self, caller: Caller, paths: Iterable[WorkspacePath]) -> tuple[Lease, ...]:
        """The caller's own leases, and those of others that cover one of these paths."""
        known = list(paths)
        return tuple(le for le in self.live() if le.agent == caller.agent or any(map(le.compiled.match, known)))

    def live(self) -> tuple[Lease, ...]:
        """The leases that hold now, oldest first."""
        return self._s.state.leases.live(self._s.clock.now_ms())

    async def infos(self, leases: Iterable[Lease], caller: Caller) -> tuple[LeaseInfo, ...]:
        """Leases as answers show them, each with its reason; without others' globs that the caller may not list.

        The first ones, as many as there is room for.
        """
        infos, taken = list[LeaseInfo](), 0
        for lease in leases:
            info = await self._info(lease, caller)
            taken += len(msgspec.json.encode(info))
            if infos and taken > MOST_BYTES:
                break
            infos.append(info)
        return tuple(infos)

    def _globs(self, lease: Lease, caller: Caller) -> tuple[str, ...]:
        """A glob is judged as it is written: what it names, or the folder that it is in."""
        if caller.is_person or lease.agent == caller.agent:
            return lease.globs
        return tuple(
            glob for glob in lease.globs if self._s.access.lists(caller, WorkspacePath(glob.lstrip("!").strip("/")))
        )

    async def _info(self, lease: Lease, caller: Caller) -> LeaseInfo:
        granted = await self._s.notes.event(lease.seq, LeaseGranted)
        return LeaseInfo(
            lease=show(lease.seq),
            agent=lease.agent,
            session=lease.session,
            globs=self._globs(lease, caller),
            mode=lease.mode,
            since=lease.at,
            expires_at=lease.expires_at,
            task=show(lease.task) if lease.task else None,
            reason=granted.reason if granted is not None else "",
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
        own = self._s.permissions.profile(caller).on_overlap
        return "warn" if caller.is_person else own or self._s.permissions.policy.leases.on_overlap

    # --- requests -----------------------------------------------------------------------

    async def reserve_paths(self, caller: Caller, call: Call, params: a.ReservePaths) -> a.LeaseAnswer:
        globs = tuple(map(self._s.paths.glob, params.globs))
        if all(glob.startswith("!") for glob in globs):
            raise ParameterInvalid(
                "globs",
                "are exceptions only, which would reserve everything else",
                hint="Name what you will work on; a glob with '!' excepts from those before it.",
            )
        rules = self._s.permissions.policy.leases
        on_overlap = self._s.permissions.profile(caller).on_overlap or rules.on_overlap
        limit = anyio.current_time() + (rules.max_wait_s if on_overlap == "queue" else 0)
        origin = caller.origin(call)
        outcome = await self._reserve(origin, params, globs, caller)
        while isinstance(outcome, tuple) and anyio.current_time() < limit:
            await self.free(partial(self._over, outcome), limit - anyio.current_time())
            outcome = await self._reserve(origin, params, globs, caller)
        if isinstance(outcome, a.LeaseAnswer):
            return outcome
        more = f" and {len(outcome) - MOST_NAMED} more" if len(outcome) > MOST_NAMED else ""
        names = ", ".join(_named(lease, self._globs(lease, caller)) for lease in outcome[:MOST_NAMED])
        message = f"reserved already: {names}{more}"
        if on_overlap == "deny":
            raise await self.refusal(caller, message, outcome)
        return a.LeaseAnswer(
            status="clash",
            message=f"{message}. Nothing was reserved; work elsewhere, or call again when that has ended.",
            clashes=await self.infos(outcome, caller),
        )

    async def hold_all(self, caller: Caller, call: Call, seconds: float, reason: str) -> tuple[Seq | None, str]:
        """A lease on the whole workspace for a command, and a warning of those of others that keep it from one.

        Raises PathReserved where policy denies what goes across others' leases.
        """
        params = a.ReservePaths(globs=("**",), ttl_s=max(1, round(seconds)), reason=reason)
        outcome = await self._reserve(caller.aside(call), params, params.globs, caller)
        if isinstance(outcome, a.LeaseAnswer):
            return (Seq(outcome.fencing) if outcome.fencing and outcome.status == "granted" else None), ""
        names = ", ".join(_named(lease, self._globs(lease, caller)) for lease in outcome[:MOST_NAMED])
        if self._rule(caller) in ("deny", "queue"):
            raise await self.refusal(caller, f"a command in the workspace would go across: {names}", outcome)
        return None, f"it went across what others reserved: {names}"

    def given_back(self, agent: AgentName, lease: Seq | None) -> tuple[tuple[str, LeaseReleased], ...]:
        """The end of what `hold_all` granted, to be appended; nothing if its time was over before."""
        if lease is None or self._s.state.leases.get(lease) is None:
            return ()
        return ((f"lease:{agent}", LeaseReleased(lease=lease, by=agent)),)

    async def release_paths(self, caller: Caller, call: Call, params: a.ReleasePaths) -> a.LeaseAnswer:
        number = parse_seq(params.lease, parameter="lease")
        async with self._deciding:
            await self._expire_due()
            lease = self._s.state.leases.get(number)
            event = release(lease, number, by=caller.agent, person=caller.is_person)
            holder = lease.agent if lease is not None else caller.agent
            await self._s.notes.append(caller.origin(call), (f"lease:{holder}", event))
        return _released(number)

    async def again(self, recorded: Recorded) -> a.LeaseAnswer | None:
        """The answer of an earlier call, by the event that it led to, as things are now."""
        match recorded.event:
            case LeaseReleased(lease=number):
                return _released(number)
            case LeaseGranted():
                return self._held(recorded.seq, "granted")
            case LeaseRenewed(lease=number):
                return self._held(number, "renewed")
            case _:
                return None

    async def expire(self) -> int | None:
        """Expire what is due; the ms at which the next one will be, None if nothing is reserved."""
        async with self._deciding:
            await self._expire_due()
        return min((lease.expires_at for lease in self._s.state.leases.live()), default=None)

    # --- deciding ---------------------------------------------------------------------

    async def _reserve(
        self, origin: Origin, params: a.ReservePaths, globs: tuple[str, ...], caller: Caller
    ) -> a.LeaseAnswer | tuple[Lease, ...]:
        async with self._deciding:
            await self._expire_due()
            session, most = self._s.state.sessions.get(caller.session), self._s.permissions.policy.leases.max_ttl_s
            wanted = LeaseGranted(
                globs=globs,
                mode=params.mode,
                expires_at=self._s.clock.now_ms() + 1000 * min(params.ttl_s, most),
                task=session.task if session else None,
                reason=params.reason,
            )
            live = self._s.state.leases.live()
            known = self._s.state.registry.paths() if live else ()  # there may be many
            decide = partial(reserve, wanted, caller.agent, caller.session, live, known)
            outcome = await to_thread.run_sync(decide) if live else decide()
            if isinstance(outcome, tuple):
                return outcome
            recorded = await self._s.notes.append(origin, (f"lease:{caller.agent}", outcome))
            cut = f"; policy grants {most} s at most" if params.ttl_s > most else ""
            if isinstance(outcome, LeaseRenewed):
                return self._held(outcome.lease, "renewed", cut)
            return self._held(recorded[0].seq, "granted", cut)

    async def _expire_due(self) -> None:
        now = self._s.clock.now_ms()
        for lease in self._s.state.leases.live():
            if lease.ended(now):
                origin = Origin(session=lease.session, agent=lease.agent, cause=lease.seq)
                await self._s.notes.append(origin, (f"lease:{lease.agent}", LeaseExpired(lease=lease.seq)))

    def _over(self, leases: tuple[Lease, ...]) -> bool:
        return all(self._s.state.leases.get(lease.seq) is None for lease in leases)

    # --- answers ----------------------------------------------------------------------

    def _held(self, number: Seq, status: a.LeaseStatus, more: str = "") -> a.LeaseAnswer:
        """A lease that was granted or renewed, or has ended since."""
        name, lease = show(number), self._s.state.leases.get(number)
        if lease is None:
            return a.LeaseAnswer(status="ended", message=f"{name} was {status}, and has ended since", lease=name)
        return a.LeaseAnswer(
            status=status,
            message=f"{name} is {status}{more}",
            lease=name,
            fencing=number,
            expires_at=lease.expires_at,
            mode=lease.mode,
            globs=lease.globs,
        )


def _released(number: Seq) -> a.LeaseAnswer:
    return a.LeaseAnswer(status="released", message=f"{show(number)} is released", lease=show(number))


def _named(lease: Lease, globs: tuple[str, ...]) -> str:
    return f"{' '.join(globs) or 'paths that are not shown'} by {lease.agent} ({show(lease.seq)}, {lease.mode})"


def _held(path: WorkspacePath, lease: Lease) -> str:
    """Without the reason: that one may be redacted, and warnings and refusals are kept."""
    until = to_the_second(lease.expires_at)
    return f"{path} is reserved by {lease.agent} until {until} (lease {show(lease.seq)})"
