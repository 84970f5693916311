"""What people ask of the daemon: its state, who may call, and which policy is in force."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Literal

import msgspec

from orchestrator.api import administration as a
from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.errors import ParameterInvalid, VersionUnknown, escaped, plural
from orchestrator.core.events.sessions import AgentAdded, AgentRevoked, AgentTokenRotated
from orchestrator.core.ids import AgentName, is_reserved, show, written
from orchestrator.core.projections.identities import Agent
from orchestrator.engine.approver import IDLE_S, ApproverGate, pause_ms
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.changes.effects import Effects
from orchestrator.engine.changes.recovery import Recovery
from orchestrator.engine.external.batch_import import BatchImporter
from orchestrator.engine.external.watch import Watching
from orchestrator.engine.leases import Leases
from orchestrator.engine.policy_files import LoadedPolicy, PolicyFiles, PolicyKeeper
from orchestrator.engine.record.verification import Verification
from orchestrator.engine.semantic.indexer import SemanticIndexer
from orchestrator.engine.services import Services

SHOWN_FILES = 5
"""That one note of `status` names."""

WRONG_CODES_SHOWN_MS = 24 * 60 * 60_000
"""How long `status` speaks of them."""


class DaemonFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What only the composition root knows."""

    pid: int
    version: str
    socket: str
    http: str | None = None  # the URL of MCP over HTTP, where that is on
    workspace_id: str
    state_dir: str
    policies: PolicyFiles
    loaded: LoadedPolicy
    stop: Callable[[], None]
    landlock: str
    commands: str
    notes: tuple[str, ...] = ()
    plugins: Callable[[], tuple[str, ...]] = tuple  # notes on them now
    failed_plugins: Callable[[], tuple[str, ...]] = tuple  # those of the notes that a person must act on


class Administration:
    """The operations that are no agent's."""

    def __init__(  # noqa: PLR0913  # the parts whose state `status` shows
        self,
        services: Services,
        facts: DaemonFacts,
        *,
        effects: Effects,
        gate: ApproverGate,
        leases: Leases,
        importer: BatchImporter,
        policies: PolicyKeeper,
        recovery: Recovery,
        watching: Watching,
        verification: Verification,
        indexer: SemanticIndexer,
        expire: Callable[[], Awaitable[object]],
    ) -> None:
        self._s, self._effects, self._gate, self._facts, self._leases = services, effects, gate, facts, leases
        self._importer, self._recovery, self._watching = importer, recovery, watching
        self._verification, self._policies, self._expire = verification, policies, expire
        self._indexer = indexer

    async def status(self, caller: Caller, call: Call, params: p.Params) -> a.StatusInfo:
        pending = self._s.state.pending
        amiss = []
        if not self._gate.is_set:
            amiss.append("no approver code yet, so approvals wait: run `orchestrator up` in a terminal")
        amiss += self._policies.notes()
        stopped = self._effects.stopped or self._s.journal.trouble
        if stopped:
            amiss.append(f"writes are stopped: {stopped}")
        moved = not self._s.workspace.in_place()
        if moved:
            amiss.append(
                f"{self._s.workspace.root} was deleted, moved or replaced since the daemon started, and calls are "
                "refused: run `orchestrator stop`, then `orchestrator up`"
            )
        return a.StatusInfo(
            pid=self._facts.pid,
            version=self._facts.version,
            socket=self._facts.socket,
            http=self._facts.http,
            workspace=self._s.workspace.root,
            workspace_id=self._facts.workspace_id,
            state_dir=self._facts.state_dir,
            head=show(self._s.state.head),
            sessions=tuple(
                a.SessionLine(
                    session=item.id,
                    agent=item.agent,
                    agent_class=item.agent_class,
                    asserted=item.asserted,
                    client=item.client,
                    open=item.open,
                )
                for item in self._s.state.sessions
                if item.open
            ),
            approvals=sum(1 for _ in pending.waiting()),
            conflicts=sum(1 for _ in pending.open_conflicts()),
            health=a.Health(
                state="workspace_moved" if moved else "writes_stopped" if stopped else "ok",
                baseline="done" if self._importer.kept.is_set() else "running",
                watching=self._watching.health,
                landlock=self._facts.landlock,
                commands=self._facts.commands,
                search=self._s.sweep.health if self._s.sweep is not None else "off: every file is read",
                semantic=self._indexer.health,
                checked=self._verification.checked,
                notes=(*self._facts.notes, *self._facts.plugins(), *amiss, *self._notes()),
                amiss=(*self._facts.failed_plugins(), *amiss),
                recovered=self._recovery.closed,
                diverged=tuple(map(show, pending.diverged)),
            ),
            policy=f"{self._s.permissions.policy.name} ({self._s.permissions.policy.source})",
            approver="set" if self._gate.is_set else "missing",
            leases=await self._leases.infos(self._leases.live(), caller),
            caches=self._s.caches.lines(),
        )

    def _notes(self) -> Iterator[str]:
        yield from self._verification.unread
        if unnoted := self._s.notes.unrecorded:
            yield f"not in the journal, which could take nothing then: {unnoted} reads and refusals"
        if skipped := [f"{why} ({count})" for why, count in sorted(self._importer.skipped.items()) if count]:
            yield f"left out of the start scan: {', '.join(skipped)}"
        wrong, now_ms = self._s.state.identities.wrong_codes, self._s.clock.now_ms()
        if wrong is not None and now_ms - wrong.at < WRONG_CODES_SHOWN_MS:
            pause = pause_ms(wrong, now_ms) / 1000
            yield (
                f"{plural(wrong.count, 'wrong approver code')}, the last {written(wrong.at)} by {wrong.agent} in "
                f"session {wrong.session}, process {wrong.pid}"
                + (f"; no code is checked for {pause:g} s" if pause else "")
            )
        unused = self._s.ignore.over_budget()
        for path, why in unused[:SHOWN_FILES]:
            yield f"ignore file {escaped(path)} is not used, so what it names is tracked: {why}. Shorten or split it"
        if unused[SHOWN_FILES:]:
            yield f"further ignore files that are not used: {len(unused) - SHOWN_FILES}"
        if self._importer.kept.is_set() and (left := self._s.state.registry.unkept()):
            most, beyond = self._s.permissions.policy.external.keep_max_bytes, self._importer.beyond_budget
            room = f", or without room ({beyond}; [external] keep_total_bytes and keep_percent)" if beyond else ""
            yield (
                f"contents not kept: {plural(left, 'file')}, secret or over {most} bytes{room}; what other programs do "
                "to them can't be undone"
            )

    # --- who may call -----------------------------------------------------------------

    async def agent_add(self, caller: Caller, call: Call, params: a.AgentAdd) -> a.AgentToken:
        await self._gate.check(caller, params.approver)
        if is_reserved(params.name):
            raise ParameterInvalid("name", f"{params.name} is reserved")
        known = self._s.state.identities.get(params.name)
        if known is not None and known.token_hash is not None and not known.revoked:
            raise ParameterInvalid("name", f"{params.name} has a token already", hint="Revoke it first.")
        token, token_hash = self._new_token()
        event = AgentAdded(
            name=AgentName(params.name),
            agent_class=params.agent_class,
            token_hash=token_hash,
            read_only=params.read_only,
            expires_at=self._in(params.expires_s),
        )
        return await self._token_given(caller, call, event, token)

    async def agent_rotate(self, caller: Caller, call: Call, params: a.AgentRotate) -> a.AgentToken:
        await self._gate.check(caller, params.approver)
        known = self._s.state.identities.get(params.name)
        if known is None or known.token_hash is None or known.revoked:
            raise ParameterInvalid(
                "name", f"{params.name} has no token", hint="`orchestrator agent add NAME` makes the first one."
            )
        token, token_hash = self._new_token()
        former_until = self._s.clock.now_ms() + params.grace_s * 1000
        event = AgentTokenRotated(
            name=known.name,
            token_hash=token_hash,
            expires_at=self._in(params.expires_s),
            former_until=former_until if known.expires_at is None else min(former_until, known.expires_at),
        )
        return await self._token_given(caller, call, event, token)

    def _new_token(self) -> tuple[str, str]:
        """A token, and what is kept of it."""
        token = "orc_" + self._s.entropy.bytes(32).hex()
        return token, hashlib.sha256(token.encode()).hexdigest()

    def _in(self, seconds: int) -> int | None:
        return self._s.clock.now_ms() + seconds * 1000 if seconds else None

    async def _token_given(
        self, caller: Caller, call: Call, event: AgentAdded | AgentTokenRotated, token: str
    ) -> a.AgentToken:
        await self._s.notes.append(caller.origin(call), (f"agent:{event.name}", event))
        agent = self._s.state.identities.get(event.name)
        assert agent is not None
        return a.AgentToken(
            name=agent.name,
            agent_class=agent.agent_class,
            token=token,
            read_only=agent.read_only,
            expires_at=agent.expires_at,
        )

    async def agent_revoke(self, caller: Caller, call: Call, params: a.AgentRevoke) -> r.Done:
        await self._gate.check(caller, params.approver)
        if self._s.state.identities.get(params.name) is None:
            raise VersionUnknown(f"there is no agent {params.name}", hint="`orchestrator agent list` shows them.")
        event = AgentRevoked(name=AgentName(params.name))
        await self._s.notes.append(caller.origin(call), (f"agent:{params.name}", event))
        await self._expire()  # so that nobody is asked for a yes to what it waits for
        return r.Done(message=f"{params.name} may not call any more")

    async def agent_list(self, caller: Caller, call: Call, params: p.Params) -> a.Agents:
        return a.Agents(
            agents=tuple(
                a.AgentLine(
                    name=agent.name,
                    agent_class=agent.agent_class,
                    token=_token_state(agent, self._s.clock.now_ms()),
                    read_only=agent.read_only,
                    expires_at=agent.expires_at,
                )
                for agent in self._s.state.identities
            )
        )

    async def approver_create(self, caller: Caller, call: Call, params: p.Params) -> a.ApproverCode:
        return a.ApproverCode(approver_code=await self._gate.create())

    async def approver_open(self, caller: Caller, call: Call, params: p.Approving) -> r.Done:
        await self._gate.open_session(caller, call, params.approver)
        return r.Done(message=f"this connection decides without a code, until {IDLE_S // 60} minutes pass without")

    async def approver_reset(self, caller: Caller, call: Call, params: a.ApproverReset) -> a.ApproverCode:
        code = await self._gate.replace(caller, params.approver, params.new_code)
        return a.ApproverCode(approver_code=code if params.new_code is None else None)

    async def stop(self, caller: Caller, call: Call, params: p.Params) -> r.Done:
        self._facts.stop()
        return r.Done(message="the daemon ends when the calls that are open are answered")


def _token_state(agent: Agent, now_ms: int) -> Literal["yes", "asserted", "revoked", "expired"]:
    if agent.revoked:
        return "revoked"
    if agent.token_hash is None:
        return "asserted"
    return "expired" if agent.is_expired(now_ms) else "yes"
