"""Checkpoints and redaction, as methods of the Python client."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

from orchestrator.api import checkpoints as r
from orchestrator.api.parameters import Params
from orchestrator.api.results import Result

R = TypeVar("R", bound=Result)


class SealingCalls:
    """What people do to the journal itself; never an agent's tool."""

    @abstractmethod
    async def _call(self, result: type[R], params: Params) -> R: ...

    async def journal_checkpoint(self) -> r.SignedCheckpoint:
        """Sign where the journal ends now, to keep elsewhere."""
        return await self._call(r.SignedCheckpoint, r.JournalCheckpoint())

    async def journal_redact(
        self,
        event: str | int | None = None,
        *,
        approver: str | None = None,
        fields: tuple[str, ...] = (),
        blob: str | int | None = None,
        path: str | None = None,
        reason: str = "",
    ) -> r.Redacted:
        """Take the texts of one event, or one content, out of the journal for good."""
        params = r.JournalRedact(event=event, approver=approver, fields=fields, blob=blob, path=path, reason=reason)
        return await self._call(r.Redacted, params)
