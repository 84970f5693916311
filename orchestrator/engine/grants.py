"""Grants: given with a yes, listed, revoked by a person, and ended with their time, session or agent."""

from __future__ import annotations

import msgspec

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.administration import Approve
from orchestrator.api.grants import GrantInfo, GrantList, GrantRevoke
from orchestrator.core.errors import NotPermitted, ParameterInvalid
from orchestrator.core.events.base import Origin
from orchestrator.core.events.conflicts import GrantAdded, GrantEnd, GrantExpired, GrantRevoked
from orchestrator.core.grants import Grant, grants_for
from orchestrator.core.ids import show
from orchestrator.core.positions import parse_seq
from orchestrator.core.projections.pending import Approval
from orchestrator.engine.approver import ApproverGate
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.services import Services

GRANT_TTL_S = 8 * 3600
"""Of a grant for which nobody said how long: a day's work."""


class GrantService:
    """What people let agents do without asking each time."""

    def __init__(self, services: Services, gate: ApproverGate) -> None:
        self._s, self._gate = services, gate

    async def grants_list(self, caller: Caller, call: Call, params: p.Params) -> GrantList:
        return GrantList(grants=tuple(map(_info, self._s.state.grants)))

    async def grant_revoke(self, caller: Caller, call: Call, params: GrantRevoke) -> r.Done:
        await self._gate.check(caller, params.approver)
        grant = self._s.state.grants.need(parse_seq(params.grant, parameter="grant"))
        event = GrantRevoked(grant=grant.seq, by=caller.agent, reason=params.reason)
        await self._s.notes.append(caller.origin(call), (stream_of(grant.added), event))
        return r.Done(message=f"{grant.rule} is revoked; {grant.added.agent} is asked about again")

    async def wanted(self, caller: Caller, params: Approve, approval: Approval) -> tuple[GrantAdded, ...]:
        """The grants that a person gives with their yes, if any. Raises Denied, NotPermitted, ParameterInvalid."""
        if not params.for_session and params.pattern is None and params.ttl_s is None:
            return ()
        if not caller.is_person:
            raise NotPermitted("only a person grants more than the one request")
        session = self._s.state.sessions.get(approval.session) if approval.session is not None else None
        if params.for_session and (session is None or not session.open):
            why = f"the session of {show(approval.seq)} has ended"
            raise ParameterInvalid("for_session", why, hint="Send ttl_s (--ttl), with a pattern or without.")
        author = self._s.permissions.author(approval.agent, approval.session)
        ttl_s = GRANT_TTL_S if params.ttl_s is None else params.ttl_s
        checks = approval.request.permissions
        asked, rules = self._s.permissions.asked_about(author, checks)
        names = tuple(check for check in checks if check.directory) if approval.for_call and not asked else ()
        granted = grants_for(
            asked or names,
            agent=approval.agent,
            pattern=params.pattern,
            session=approval.session if params.for_session else None,
            expires_at=self._s.clock.now_ms() + ttl_s * 1000,
            approval=approval.seq,
            by=caller.agent,
            names_in=bool(names),
        )
        return tuple(msgspec.structs.replace(grant, rules=rules) for grant in granted)

    async def expire(self) -> int | None:
        """End what is over; the ms at which the next one will be by its time, None if none holds."""
        for grant in self._s.state.grants:
            if (cause := self._ended(grant)) is not None:
                event = GrantExpired(grant=grant.seq, cause=cause)
                await self._s.notes.append(Origin(cause=grant.seq), (stream_of(grant.added), event))
        return min((grant.added.expires_at for grant in self._s.state.grants), default=None)

    def _ended(self, grant: Grant) -> GrantEnd | None:
        added = grant.added
        if added.expires_at <= self._s.clock.now_ms():
            return "timeout"
        session = self._s.state.sessions.get(added.session) if added.session is not None else None
        if added.session is not None and (session is None or not session.open):
            return "session_ended"
        agent = self._s.state.identities.get(added.agent)
        return "agent_revoked" if agent is not None and agent.revoked else None


def stream_of(grant: GrantAdded) -> str:
    """Of an agent's grants."""
    return f"grant:{grant.agent}"


def _info(grant: Grant) -> GrantInfo:
    added = grant.added
    return GrantInfo(
        grant=show(grant.seq),
        agent=added.agent,
        actions=added.actions,
        globs=added.globs,
        session=added.session,
        since=grant.at,
        expires_at=added.expires_at,
        by=added.by,
        approval=show(added.approval),
    )
