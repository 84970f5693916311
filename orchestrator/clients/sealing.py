"""Checkpoints and redaction, as methods of the Python client."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

from orchestrator.api import results as r
from orchestrator.api import sealing as s
from orchestrator.api.parameters import Params

R = TypeVar("R", bound=r.Result)


class SealingCalls:
    """What people do to the journal itself; never an agent's tool."""

    @abstractmethod
    async def _call(self, result: type[R], params: Params) -> R: ...

    async def journal_checkpoint(self) -> s.SignedCheckpoint:
        """Sign where the journal ends now, to keep elsewhere."""
        return await self._call(s.SignedCheckpoint, s.JournalCheckpoint())

    async def journal_redact(
        self,
        event: str | int | None = None,
        *,
        approver: str | None = None,
        fields: tuple[str, ...] = (),
        blob: str | int | None = None,
        reason: str = "",
    ) -> s.Redacted:
        """Take the texts of one event, or one content, out of the journal for good."""
        return await self._call(
            s.Redacted, s.JournalRedact(event=event, approver=approver, fields=fields, blob=blob, reason=reason)
        )
