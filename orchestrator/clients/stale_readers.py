"""Read sets in the clients: the query as a method, and a notice as a person reads it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TypeVar

from orchestrator.api import results as r
from orchestrator.api import stale_readers as n
from orchestrator.api.parameters import Params

R = TypeVar("R", bound=r.Result)


class NoticingCalls:
    """Who has read what."""

    @abstractmethod
    async def _call(self, result: type[R], params: Params) -> R: ...

    async def stale_readers(self, path: str, *, limit: int = 20) -> n.StaleReadersAnswer:
        """Who holds a stale view of a file: sessions that read lines of it which others changed since."""
        return await self._call(n.StaleReadersAnswer, n.StaleReaders(path=path, limit=limit))


def rendered(notice: r.Notice) -> Iterator[str]:
    """What a terminal shows of a notice."""
    yield f"notice: {n.told(notice)}"
    if notice.diff:
        yield from (f"  {line}" for line in notice.diff.splitlines())
    if notice.diff_truncated:
        yield "  …"
