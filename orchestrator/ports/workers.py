"""Effort: work on texts that may take long, apart from the thread that answers everybody."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Protocol, TypeVar

from anyio import to_thread

T = TypeVar("T")

OWNER: ContextVar[str] = ContextVar("owner", default="")
"""For whom the present task works: the agent whose call it is; nobody for the daemon's own work. Owners take turns."""

LIMIT_S = 10.0
"""For one piece of work."""


class Effort(Protocol):
    """Does pure work elsewhere."""

    async def run(self, work: Callable[[], T], *, limit_s: float = LIMIT_S) -> T:
        """The result of `work`, or what it raised. It is a `partial` of a function of some module.

        What it is given and what it returns may be copied. Raises TextTooCostly when it takes longer
        than `limit_s`, or more memory than there is for it.
        """


class InThreads:
    """A stand-in without processes and limits."""

    async def run(self, work: Callable[[], T], *, limit_s: float = LIMIT_S) -> T:
        return await to_thread.run_sync(work)
