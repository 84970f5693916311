"""Work on texts in threads, and outlines without grammars: no process is started, and nothing is limited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from anyio import to_thread

from orchestrator.core.bounded_cache import BoundedCache
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.text.encoding import decode
from orchestrator.core.text.outline import plain_outline
from orchestrator.core.text.references import References, Sought
from orchestrator.core.text.symbols import Outline
from orchestrator.ports.machine import LIMIT_S

T = TypeVar("T")


class ThreadWorkers:
    """See `ports.Workers`."""

    async def run(self, work: Callable[[], T], *, limit_s: float = LIMIT_S) -> T:
        return await to_thread.run_sync(work)


class PlainParser:
    """See `ports.Parser`."""

    def __init__(self) -> None:
        self.outlines: BoundedCache[Any, Any] = BoundedCache(0)

    async def outline(
        self, path: WorkspacePath, digest: Digest, data: bytes, *, compiled: bool = False
    ) -> Outline | None:
        document = decode(data)
        return plain_outline(document.lines) if document is not None else None

    async def references(self, path: WorkspacePath, data: bytes, sought: Sought) -> References | None:
        return None
