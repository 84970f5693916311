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
from orchestrator.core.events.catalog import tag_of
from orchestrator.core.events.conflicts import ApprovalGranted
from orchestrator.core.events.sessions import ApproverSet
from orchestrator.core.ids import Seq
from orchestrator.engine.services import Services
from orchestrator.ports.journal import EventFilter
from orchestrator.ports.machine import Entropy

STREAM = "approver"
CODE_LETTERS = 25
_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
_FAIR = 256 - 256 % len(_ALPHABET)
"""Random bytes from here on would make some letters likelier than others."""

By = Literal["first_up", "old_code", "owner_uid"]


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
        async with self._one_at_a_time:
            return None if self.is_set else await self._make("first_up")

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

    async def _make(self, by: By) -> str:
        code, event = await to_thread.run_sync(new_code, self._s.entropy, by)
        await self._s.append(Origin(), (STREAM, event))
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


async def approver_of(services: Services, approval: Seq | None) -> str | None:
    """Who granted an approval; None where there was none, or it was not granted."""
    request = services.state.pending.approval(approval) if approval is not None else None
    if request is None:
        return None
    stream = f"approval:{request.request.paths[0].path}"
    wanted = EventFilter(tags=(tag_of(ApprovalGranted),), stream=stream, after=request.seq)
    async for recorded in services.journal.events(wanted):
        if isinstance(recorded.event, ApprovalGranted) and recorded.event.approval == approval:
            return recorded.event.by
    return None
