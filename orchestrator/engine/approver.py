"""The approver code: made once, kept only as a scrypt hash, asked for by every act that agents must not do."""

from __future__ import annotations

import hashlib
import hmac
from collections import OrderedDict
from typing import Literal

import anyio
from anyio import to_thread

from orchestrator.core.errors import ApproverCodeNeeded
from orchestrator.core.events.base import Origin
from orchestrator.core.events.conflicts import ApprovalGranted
from orchestrator.core.events.sessions import ApproverSet
from orchestrator.core.ids import Seq, SessionId
from orchestrator.core.projections.identities import Identities
from orchestrator.core.projections.pending import Pending
from orchestrator.engine.caller import Caller
from orchestrator.engine.notes import Notes
from orchestrator.ports.machine import Entropy

STREAM = "approver"
CODE_LETTERS = 25
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
_FAIR = 256 - 256 % len(_ALPHABET)
"""Random bytes from here on would make some letters likelier than others."""

By = Literal["first_up", "old_code", "owner_uid"]


FIRST_DELAY_S = 0.25
LONGEST_DELAY_S = 30.0
MOST_GUESSERS = 1000
"""Connections whose wrong codes are counted; the one that was longest quiet is forgotten first."""


class _CodeAttempts:
    """The checks of one connection: one at a time, each wrong one delays the next."""

    def __init__(self) -> None:
        self.turn = anyio.Lock()
        self.wrong = 0

    @property
    def delay_s(self) -> float:
        return min(FIRST_DELAY_S * 2 ** min(self.wrong - 1, 16), LONGEST_DELAY_S) if self.wrong else 0.0


class ApproverGate:
    """Makes and checks the code. The slow check runs one at a time, so that guessing is slow.

    A connection has one check in that queue, and after a wrong code waits longer each time, so
    that who guesses does not keep others waiting. A code that was right before is known again at
    once: this process keeps a digest of it under a key of its own, in memory only.
    """

    def __init__(self, entropy: Entropy, notes: Notes, identities: Identities) -> None:
        self._entropy, self._notes, self._identities = entropy, notes, identities
        self._one_at_a_time = anyio.Lock()
        self._guesses: OrderedDict[SessionId, _CodeAttempts] = OrderedDict()
        self._key = entropy.bytes(32)
        self._right: tuple[str, bytes] | None = None  # the salt of the code that it is for, and the digest

    @property
    def is_set(self) -> bool:
        return self._identities.approver is not None

    async def create(self) -> str | None:
        """The code, once; None if there is one already."""
        async with self._one_at_a_time:
            return None if self.is_set else await self._make("first_up")

    async def replace(self, caller: Caller, old_code: str | None) -> str:
        """A new code in place of the old. Raises ApproverCodeNeeded."""
        await self.check(caller, old_code)
        return await self._make("old_code")

    async def check(self, caller: Caller, code: str | None) -> None:
        """Raises ApproverCodeNeeded unless this is the code."""
        if (approver := self._identities.approver) is None:
            raise ApproverCodeNeeded("there is no approver code yet", hint="Run `orchestrator up` to make it.")
        if not code:
            raise ApproverCodeNeeded("this needs the approver code")
        digest = self._digest(code)
        if self._right is not None and self._right[0] == approver.salt and hmac.compare_digest(self._right[1], digest):
            return
        guesses = self._guesses_of(caller.session)
        async with guesses.turn:
            await anyio.sleep(guesses.delay_s)
            async with self._one_at_a_time:
                approver = self._identities.approver or approver  # it may have been replaced meanwhile
                given = await to_thread.run_sync(_scrypt, _plain(code), bytes.fromhex(approver.salt))
            right = hmac.compare_digest(given, bytes.fromhex(approver.scrypt))
            guesses.wrong = 0 if right else guesses.wrong + 1
        if not right:
            raise ApproverCodeNeeded("that is not the approver code")
        self._right = approver.salt, digest

    def _digest(self, code: str) -> bytes:
        return hmac.digest(self._key, _plain(code).encode("utf-8", "surrogatepass"), "sha256")

    def _guesses_of(self, session: SessionId) -> _CodeAttempts:
        guesses = self._guesses.setdefault(session, _CodeAttempts())
        self._guesses.move_to_end(session)
        if len(self._guesses) > MOST_GUESSERS:
            self._guesses.popitem(last=False)
        return guesses

    async def _make(self, by: By) -> str:
        code, event = await to_thread.run_sync(new_code, self._entropy, by)
        await self._notes.append(Origin(), (STREAM, event))
        self._right = event.salt, self._digest(code)
        return code


def new_code(entropy: Entropy, by: By) -> tuple[str, ApproverSet]:
    """A code of 25 letters and digits, over 120 bits, and the event that sets it. Blocking: scrypt takes its time."""
    letters = ""
    while len(letters) < CODE_LETTERS:
        letters += "".join(_ALPHABET[value % len(_ALPHABET)] for value in entropy.bytes(64) if value < _FAIR)
    letters = letters[:CODE_LETTERS]
    salt = entropy.bytes(16)
    event = ApproverSet(salt=salt.hex(), scrypt=_scrypt(letters, salt).hex(), by=by)
    return "-".join(letters[at : at + 5] for at in range(0, CODE_LETTERS, 5)), event


def _plain(code: str) -> str:
    return code.strip().lower().replace("-", "").replace(" ", "")


def _scrypt(code: str, salt: bytes) -> bytes:
    return hashlib.scrypt(code.encode(), salt=salt, n=2**14, r=8, p=1, dklen=32)


async def approver_of(pending: Pending, notes: Notes, approval: Seq | None) -> str | None:
    """Who granted an approval; None where there was none, or it was not granted."""
    request = pending.approval(approval) if approval is not None else None
    if request is None:
        return None
    granted = await notes.end_of(request, ApprovalGranted)
    return granted.by if granted is not None else None
