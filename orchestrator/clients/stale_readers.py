"""Read sets in the clients: the query as a method, and a notice as a person reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from orchestrator.api import results as r
from orchestrator.api import stale_readers as n

R = TypeVar("R", bound=r.Result)


def rendered(notice: r.Notice) -> Iterator[str]:
    """What a terminal shows of a notice."""
    yield f"notice: {n.told(notice)}"
    if notice.diff:
        yield from (f"  {line}" for line in notice.diff.splitlines())
    if notice.diff_truncated:
        yield "  …"
