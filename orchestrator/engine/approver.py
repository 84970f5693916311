"""The approver code: made once, kept only as a scrypt hash, asked for by every act that agents must not do."""

from __future__ import annotations

import hashlib
import hmac
from functools import partial
from typing import Literal

import anyio
from anyio import to_thread

from orchestrator.core.errors import ApproverCodeNeeded
from orchestrator.core.events.base import Origin
from orchestrator.core.events.sessions import ApproverSet
from orchestrator.engine.services import Services

STREAM = "approver"
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"


class ApproverGate:
    """Makes and checks the code. Checks are taken one at a time, so that guessing is slow."""

    def __init__(self, services: Services) -> None:
        self._s = services
        self._one_at_a_time = anyio.Lock()

    @property
    def is_set(self) -> bool:
        return self._s.state.identities.approver is not None

    async def create(self) -> str | None:
        """The code, once; None if there is one already."""
        if self.is_set:
            return None
        return await self._make("first_up")

    async def replace(self, old_code: str | None) -> str:
        """A new code in place of the old. Raises ApproverCodeNeeded."""
        await self.check(old_code)
        return await self._make("old_code")

    async def check(self, code: str | None) -> None:
        """Raises ApproverCodeNeeded unless this is the code."""
        approver = self._s.state.identities.approver
        if approver is None:
            raise ApproverCodeNeeded("there is no approver code yet", hint="Run `orchestrator up` to make it.")
        if not code:
            raise ApproverCodeNeeded("this needs the approver code")
        async with self._one_at_a_time:
            given = await to_thread.run_sync(partial(_scrypt, _plain(code), bytes.fromhex(approver.salt)))
        if not hmac.compare_digest(given, bytes.fromhex(approver.scrypt)):
            raise ApproverCodeNeeded("that is not the approver code")

    async def _make(self, by: Literal["first_up", "old_code", "owner_uid"]) -> str:
        letters = "".join(_ALPHABET[value % len(_ALPHABET)] for value in self._s.entropy.bytes(64) if value < 248)[:25]
        salt = self._s.entropy.bytes(16)
        hashed = await to_thread.run_sync(partial(_scrypt, letters, salt))
        event = ApproverSet(salt=salt.hex(), scrypt=hashed.hex(), by=by)
        await self._s.append(Origin(), (STREAM, event))
        return "-".join(letters[at : at + 5] for at in range(0, 25, 5))


def _plain(code: str) -> str:
    return code.strip().lower().replace("-", "").replace(" ", "")


def _scrypt(code: str, salt: bytes) -> bytes:
    return hashlib.scrypt(code.encode(), salt=salt, n=2**14, r=8, p=1, dklen=32)
