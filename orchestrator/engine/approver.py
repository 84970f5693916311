"""The approver code: kept only as a scrypt hash, asked for by every act that agents must not do, slow to guess."""

from __future__ import annotations

import hashlib
import hmac
import unicodedata
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Literal

import anyio
from anyio import to_thread

from orchestrator.core.errors import ApproverCodeNeeded, ParameterInvalid
from orchestrator.core.events.base import Origin
from orchestrator.core.events.conflicts import ApprovalGranted
from orchestrator.core.events.sessions import (
    ApproverCodeRefused,
    ApproverSessionClosed,
    ApproverSessionEnd,
    ApproverSessionOpened,
    ApproverSet,
)
from orchestrator.core.ids import Seq
from orchestrator.core.projections.identities import Identities, WrongCodes
from orchestrator.core.projections.pending import Pending
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.notes import Notes
from orchestrator.ports.machine import Clock, Entropy

STREAM = "approver"
CODE_LETTERS = 10
"""Of 31: 49 bits. See docs/threat-model.md for what that withstands."""

SHORTEST_OWN = 12
"""Characters of a code that a person thinks of, without its spaces and hyphens."""

_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
_FAIR = 256 - 256 % len(_ALPHABET)
"""Random bytes from here on would make some letters likelier than others."""

By = Literal["first_up", "old_code", "owner_uid"]

IDLE_S = 15 * 60
"""After that time without an act that needs the code, an approver session is over."""

FIRST_PAUSE_MS = 250
LONGEST_PAUSE_MS = 30_000


def pause_ms(wrong: WrongCodes | None, now_ms: int) -> int:
    """How long no code is checked from now on: the more wrong ones came, from whomever, the longer after the last."""
    if wrong is None:
        return 0
    pause = min(FIRST_PAUSE_MS << min(wrong.count - 1, 16), LONGEST_PAUSE_MS)
    return min(max(wrong.at + pause - now_ms, 0), pause)  # a clock that was set back makes no pause longer


class ApproverGate:
    """Makes and checks the code.

    One code is checked at a time, and after each wrong one, on any connection, nobody's for a growing while. Of those
    who wait the newest connection is next, so that who guesses does not keep others waiting long, and people at a
    terminal come before those whom an agent's client asks: over HTTP an agent has new connections without end. A code
    that was right before is known again at once: this process keeps a digest of it under a key of its own, in memory
    only.

    An approver session is one connection for which the code was given: its further calls go without, until it ends or
    is idle too long, or the code is replaced.
    """

    def __init__(self, clock: Clock, entropy: Entropy, notes: Notes, identities: Identities) -> None:
        self._clock, self._entropy, self._notes, self._identities = clock, entropy, notes, identities
        self._making = anyio.Lock()
        self._turns = anyio.Condition()
        self._arrivals, self._waiting, self._checking = count(), set[tuple[bool, int, int]](), False
        self._key = entropy.bytes(32)
        self._right: tuple[str, bytes] | None = None  # the salt of the code that it is for, and the digest
        self._sessions: dict[int, tuple[Caller, int]] = {}  # by connection: whose, and when the code was last needed
        self._idle: set[int] = set()  # connections on which one ended so, and nothing was asked for since

    @property
    def is_set(self) -> bool:
        return self._identities.approver is not None

    async def create(self) -> str | None:
        """The code, once; None if there is one already."""
        async with self._making:
            return None if self.is_set else await self._make("first_up")

    async def replace(self, caller: Caller, old_code: str | None, own: str | None) -> str:
        """A new code in place of the old: `own`, else a random one. Raises ApproverCodeNeeded, ParameterInvalid."""
        await self._check_code(caller, old_code)
        return await self._make("old_code", own)

    async def open_session(self, caller: Caller, call: Call, code: str | None) -> None:
        """The caller's connection needs no code from now on. Raises ApproverCodeNeeded."""
        await self._check_code(caller, code)
        await self._notes.append(caller.origin(call), (STREAM, ApproverSessionOpened(pid=caller.pid)))
        self._sessions[caller.connection] = caller, self._clock.ticks_us()
        self._idle.discard(caller.connection)

    async def end_session(self, caller: Caller) -> None:
        """The connection has ended."""
        self._idle.discard(caller.connection)
        await self._end("disconnected", caller)

    async def expire(self) -> None:
        """End the sessions in which nothing was decided for too long."""
        over_us = self._clock.ticks_us() - IDLE_S * 1_000_000
        idle = [caller for caller, last_us in self._sessions.values() if last_us < over_us]
        self._idle.update(caller.connection for caller in idle)
        await self._end("idle", *idle)

    async def _end(self, cause: ApproverSessionEnd, *callers: Caller) -> None:
        ended = [caller for caller in callers if self._sessions.pop(caller.connection, None) is not None]
        for caller in ended:
            await self._notes.note(caller.origin(), (STREAM, ApproverSessionClosed(cause=cause, pid=caller.pid)))

    async def check(self, caller: Caller, code: str | None) -> None:
        """Raises ApproverCodeNeeded unless this is the code, or none was given in an approver session."""
        await self.expire()
        if not code and caller.connection in self._idle:
            self._idle.discard(caller.connection)
            raise ApproverCodeNeeded(
                f"the approver session ended: nothing was decided in it for {IDLE_S // 60} minutes"
            )
        if code or caller.connection not in self._sessions:
            await self._check_code(caller, code)
        else:
            self._sessions[caller.connection] = caller, self._clock.ticks_us()

    async def _check_code(self, caller: Caller, code: str | None) -> None:
        if (approver := self._identities.approver) is None:
            raise ApproverCodeNeeded("there is no approver code yet", hint="Run `orchestrator up` to make it.")
        if not code:
            raise ApproverCodeNeeded("this needs the approver code")
        digest = self._digest(code)
        if self._right is not None and self._right[0] == approver.salt and hmac.compare_digest(self._right[1], digest):
            return
        async with self._turn(caller):
            approver = self._identities.approver or approver  # it may have been replaced meanwhile
            if not await to_thread.run_sync(is_code, code, approver):
                await self._notes.append(caller.origin(), (STREAM, ApproverCodeRefused(pid=caller.pid)))
                raise ApproverCodeNeeded(
                    "that is not the approver code",
                    hint="The newest code counts, without regard to case and hyphens. If it is lost: "
                    "`orchestrator stop`, then `orchestrator approver reset`.",
                )
        self._right = approver.salt, digest

    @asynccontextmanager
    async def _turn(self, caller: Caller) -> AsyncIterator[None]:
        """Wait until this caller's code may be checked, alone."""
        ticket = caller.via is None, caller.connection, -next(self._arrivals)
        async with self._turns:
            self._waiting.add(ticket)
            try:
                while self._checking or ticket != max(self._waiting) or self._pause_s():
                    with anyio.move_on_after(self._pause_s() or None):
                        await self._turns.wait()
                self._checking = True
            finally:
                self._waiting.discard(ticket)
                self._turns.notify_all()
        try:
            yield
        finally:
            self._checking = False
            with anyio.CancelScope(shield=True):
                async with self._turns:
                    self._turns.notify_all()

    def _pause_s(self) -> float:
        return pause_ms(self._identities.wrong_codes, self._clock.now_ms()) / 1000

    def _digest(self, code: str) -> bytes:
        return hmac.digest(self._key, _plain(code), "sha256")

    async def _make(self, by: By, own: str | None = None) -> str:
        code, event = await to_thread.run_sync(new_code, self._entropy, by, own)
        await self._notes.append(Origin(), (STREAM, event))
        self._right = event.salt, self._digest(code)
        await self._end("code_replaced", *(caller for caller, _ in self._sessions.values()))
        return code


def new_code(entropy: Entropy, by: By, own: str | None = None) -> tuple[str, ApproverSet]:
    """A code, `own` or a random one, and the event that sets it. Blocking: scrypt takes its time.

    Raises ParameterInvalid for one of one's own that is too short.
    """
    letters, code = "", own
    if code is None:
        while len(letters) < CODE_LETTERS:
            letters += "".join(_ALPHABET[value % len(_ALPHABET)] for value in entropy.bytes(64) if value < _FAIR)
        code = "-".join(letters[at : at + 5] for at in range(0, CODE_LETTERS, 5))
    elif len(_plain(code).decode("utf-8", "surrogatepass")) < SHORTEST_OWN:
        raise ParameterInvalid(
            "new_code", f"an approver code of one's own has at least {SHORTEST_OWN} characters, spaces not counted"
        )
    salt = entropy.bytes(16)
    return code, ApproverSet(salt=salt.hex(), scrypt=_scrypt(code, salt).hex(), by=by)


def is_code(code: str, approver: ApproverSet) -> bool:
    """Whether this is the code. Blocking: scrypt takes its time."""
    return hmac.compare_digest(_scrypt(code, bytes.fromhex(approver.salt)), bytes.fromhex(approver.scrypt))


def _plain(code: str) -> bytes:
    """As it is compared: however it was typed."""
    typed = unicodedata.normalize("NFKC", code).strip().lower().replace("-", "").replace(" ", "")
    return typed.encode("utf-8", "surrogatepass")


def _scrypt(code: str, salt: bytes) -> bytes:
    return hashlib.scrypt(_plain(code), salt=salt, n=2**14, r=8, p=1, dklen=32)


async def approver_of(pending: Pending, notes: Notes, approval: Seq | None) -> str | None:
    """Who granted an approval; None where there was none, or it was not granted."""
    request = pending.approval(approval) if approval is not None else None
    if request is None:
        return None
    granted = await notes.end_of(request, ApprovalGranted)
    return granted.by if granted is not None else None
