"""Saying where one works, as methods of the Python client.

Written out so that editors and type checkers know them; a test holds them equal to the catalogue.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal, TypeVar

from orchestrator.api import leases as r
from orchestrator.api.parameters import Params
from orchestrator.api.results import Result

R = TypeVar("R", bound=Result)


class LeaseCalls:
    """The operations on leases."""

    @abstractmethod
    async def _call(self, result: type[R], params: Params) -> R: ...

    async def reserve_paths(
        self,
        globs: Sequence[str],
        *,
        ttl_s: int = 600,
        mode: Literal["exclusive", "shared"] = "exclusive",
        reason: str = "",
        request_id: str | None = None,
    ) -> r.LeaseAnswer:
        """Say where you work for a while, so that others keep away."""
        return await self._call(
            r.LeaseAnswer,
            r.ReservePaths(globs=tuple(globs), ttl_s=ttl_s, mode=mode, reason=reason, request_id=request_id),
        )

    async def release_paths(self, lease: str | int, *, request_id: str | None = None) -> r.LeaseAnswer:
        """Give a lease back before its time is over."""
        return await self._call(r.LeaseAnswer, r.ReleasePaths(lease=lease, request_id=request_id))
