"""The workspace at any point, as methods of the Python client.

Written out so that editors and type checkers know them; a test holds them equal to the catalogue.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api import time_travel as t

R = TypeVar("R", bound=r.Result)


class TravelCalls:
    """The operations of `api/time_travel.py`, for people."""

    @abstractmethod
    async def _call(self, result: type[R], params: p.Params) -> R: ...

    async def tree_at(
        self, *, at: str | int = "current", contents: bool = False, limit: int = 5000, cursor: str | None = None
    ) -> t.Tree:
        """The tracked files at any point: path, version, hash, mode, size."""
        return await self._call(t.Tree, t.TreeAt(at=at, contents=contents, limit=limit, cursor=cursor))

    async def content_at(self, path: str, at: str | int, *, offset: int = 0, limit: int = t.CHUNK_BYTES) -> t.Content:
        """The bytes that a file had at any point, in pieces."""
        return await self._call(t.Content, t.ContentAt(path=path, at=at, offset=offset, limit=limit))

    async def replay_check(self) -> t.ReplayReport:
        """Rebuild every file from events and contents, and compare with the disk."""
        return await self._call(t.ReplayReport, t.ReplayCheck())
