"""Authentication: from a preamble and the peer's uid to a caller, or a refusal."""

from __future__ import annotations

import hashlib
import pwd
import re
from collections.abc import Callable
from itertools import count

from orchestrator.api.framing import Preamble
from orchestrator.core.errors import SessionNotYours, SessionUnknown, Unauthorised, escaped
from orchestrator.core.events.base import Origin
from orchestrator.core.events.sessions import AgentAdded
from orchestrator.core.ids import AgentName, SessionId, is_reserved
from orchestrator.core.projections.identities import Agent
from orchestrator.core.projections.state import State
from orchestrator.engine.caller import Caller
from orchestrator.engine.notes import Notes
from orchestrator.engine.sessions import SessionLifecycle
from orchestrator.ports.machine import Clock, Entropy

UNNAMED = AgentName("unnamed")
LOGIN_DIGITS = 32
"""Of the session of a login: with fewer, one who tries logins finds one whose session is another agent's."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,63}\Z")


class Authenticator:
    """Knows the identities; lets a name without a token in only for the daemon's own uid.

    `is_command`: whether a process belongs to a command that an agent runs. None is let in: it would be a person.
    """

    def __init__(
        self,
        notes: Notes,
        state: State,
        entropy: Entropy,
        clock: Clock,
        lifecycle: SessionLifecycle,
        *,
        uid: int,
        is_command: Callable[[int], bool] = lambda pid: False,
    ) -> None:
        self._notes, self._state, self._entropy, self._clock, self._uid = notes, state, entropy, clock, uid
        self._is_command = is_command
        self._connections = count(1)
        self._lifecycle = lifecycle
        self._own_login = _login(uid)  # now: without a file descriptor left, the system would not know it

    async def authenticate(self, preamble: Preamble, peer_uid: int, pid: int = 0) -> Caller:
        """The caller behind a preamble. Raises Unauthorised, SessionNotYours, SessionUnknown."""
        if self._is_command(pid):
            raise Unauthorised(
                "a command that an agent runs can't call the daemon",
                hint="Make this call yourself, without run_command.",
            )
        hashed = None
        if preamble.token is not None:
            hashed = hashlib.sha256(preamble.token.strip().encode("utf-8", "surrogatepass")).hexdigest()
            agent, asserted = self._with_token(hashed, preamble.agent), False
        elif peer_uid != self._uid:
            raise Unauthorised(
                "a caller of another user needs a token", hint="`orchestrator agent add NAME` prints one."
            )
        elif preamble.agent is not None:
            agent, asserted = await self._asserted(preamble.agent), True
        elif preamble.person:
            agent, asserted = Agent(AgentName(f"person:{self._login_of(peer_uid)}"), "person", None), False
        else:
            agent, asserted = await self._known_or_new(UNNAMED), True
        return Caller(
            agent=agent.name,
            agent_class=agent.agent_class,
            session=self._session(preamble, agent.name),
            transport=preamble.transport,
            asserted=asserted,
            owner=self._login_of(peer_uid),
            token_hash=hashed,
            connection=next(self._connections),
            pid=pid,
        )

    async def of_token(self, preamble: Preamble) -> Caller:
        """The caller of a transport that does not know whose process calls: by a token alone. Raises as before."""
        if preamble.token is None:
            raise Unauthorised("this transport needs a token")
        return await self.authenticate(preamble, self._uid)

    def _with_token(self, hashed: str, name: str | None) -> Agent:
        agent, now_ms = self._state.identities.with_token_hash(hashed), self._clock.now_ms()
        if agent is None or not agent.is_open_to(hashed, now_ms):
            expired = agent is not None and not agent.revoked
            raise Unauthorised(
                "the token has expired" if expired else "the token is wrong or was revoked",
                hint=f"`orchestrator agent {'rotate' if expired else 'add'} NAME` makes a new one.",
            )
        if name not in (None, agent.name):
            raise Unauthorised(f"the token is not {escaped(name or '')}'s")
        return agent

    async def _asserted(self, name: str) -> Agent:
        if not _NAME.match(name) or (name != UNNAMED and is_reserved(name)):
            hint = "Letters, digits and . _ : @ - only, and no word that histories use for others than agents."
            raise Unauthorised(f"{escaped(name)!r} can't be an agent's name", hint=hint)
        agent = self._state.identities.get(name)
        if agent is not None and (agent.token_hash is not None or agent.revoked):
            raise Unauthorised(
                f"{name} needs its token", hint="Set ORCHESTRATOR_TOKEN or --token-file, or take another name."
            )
        return await self._known_or_new(AgentName(name))

    async def _known_or_new(self, name: AgentName) -> Agent:
        agent = self._state.identities.get(name)
        if agent is not None:
            return agent
        added = AgentAdded(name=name, agent_class="cloud")
        await self._notes.note(Origin(agent=name), (f"agent:{name}", added))
        return Agent(name, added.agent_class, None)

    def _login_of(self, uid: int) -> str:
        return self._own_login if uid == self._uid else _login(uid)

    def _session(self, preamble: Preamble, agent: AgentName) -> SessionId:
        if preamble.session is None:
            if not preamble.login:
                return SessionId(f"s-{self._entropy.bytes(6).hex()}")
            named = hashlib.sha256(f"{agent}\0{preamble.login}".encode("utf-8", "surrogatepass"))
            return SessionId(f"s-{named.hexdigest()[:LOGIN_DIGITS]}")
        session = SessionId(preamble.session)
        holder = self._lifecycle.agent_of(session)
        if holder is None:
            raise SessionUnknown(f"there is no session {escaped(preamble.session)}")
        if holder != agent:
            raise SessionNotYours(f"the session {preamble.session} is another agent's")
        return session


def _login(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
