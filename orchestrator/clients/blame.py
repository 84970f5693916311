"""Who wrote what, and what happened since, as methods of the Python client.

Written out so that editors and type checkers know them; a test holds them equal to the catalogue.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TypeVar

from orchestrator.api import blame as t
from orchestrator.api import parameters as p
from orchestrator.api import results as r

R = TypeVar("R", bound=r.Result)


class TracingCalls:
    """The operations of `api/blame.py`."""

    @abstractmethod
    async def _call(self, result: type[R], params: p.Params) -> R: ...

    async def blame(
        self, path: str, *, start: int = 1, end: int | None = None, at: str | int | None = None
    ) -> t.BlameAnswer:
        """Who brought each line of a file in: agent, session, task, approver and change, by ranges of lines."""
        return await self._call(t.BlameAnswer, t.Blame(path=path, start=start, end=end, at=at))

    async def changes_since(
        self, version: str | int, *, globs: Sequence[str] = (), limit: int = 100, skip: int = 0
    ) -> t.Changes:
        """What changed after a version, oldest first. Go on with `head` of the answer."""
        return await self._call(t.Changes, t.ChangesSince(version=version, globs=tuple(globs), limit=limit, skip=skip))
