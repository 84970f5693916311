"""Outlines by content, computed in a worker process."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial

import msgspec
from anyio import to_thread

from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.text.encoding import decode
from orchestrator.core.text.outline.languages import language_of
from orchestrator.core.text.outline.plain import plain_outline
from orchestrator.core.text.symbols import Outline
from orchestrator.logs import logger
from orchestrator.ports.workers import Workers
from orchestrator.workspace.grammars import encoded_outline

LIMIT_S = 4.0
"""For one text. 20,000 lines of Python take 0.4 s."""

MOST_PARSED_BYTES = 8 * 1024 * 1024
"""Larger texts are outlined by indentation and headings: a tree takes twenty times its text."""

CACHE_BYTES = 16 * 1024 * 1024
"""Of outlines as the worker wrote them; in memory they take about four times as much."""

OFF_LOOP_BYTES = 64 * 1024
"""Larger texts are outlined without a grammar in a thread."""


class LocalParser:
    """Outlines texts in worker processes, and remembers the outlines."""

    def __init__(self, workers: Workers, *, limit_s: float = LIMIT_S, cache_bytes: int = CACHE_BYTES) -> None:
        self._workers, self._limit_s, self._most = workers, limit_s, cache_bytes
        self._cache: OrderedDict[tuple[str, Digest], tuple[Outline | None, int]] = OrderedDict()
        self._held = 0
        self._log = logger("parser")

    async def outline(self, path: WorkspacePath, digest: Digest, data: bytes) -> Outline | None:
        """See `ports.workers.Parser`."""
        language = language_of(path)
        if language is None or len(data) > MOST_PARSED_BYTES:
            return await _plain(data)
        known = self._cache.get((language, digest))
        if known is None:
            known = await self._made(language, data)
            if (language, digest) not in self._cache:  # somebody else may have asked for the same meanwhile
                self._keep((language, digest), known)
        else:
            self._cache.move_to_end((language, digest))
        return known[0]

    async def _made(self, language: str, data: bytes) -> tuple[Outline | None, int]:
        """The outline and its size."""
        work = partial(encoded_outline, language, data, self._limit_s)
        try:
            answer = await self._workers.run(work, limit_s=self._limit_s)
        except Exception as error:  # noqa: BLE001  # whatever a grammar's defect is: the text can be outlined without
            self._log.warning("a text is outlined without its grammar", language=language, error=repr(error))
            return await _plain(data), len(data) // 8
        return msgspec.msgpack.decode(answer, type=Outline | None), len(answer)

    def _keep(self, key: tuple[str, Digest], made: tuple[Outline | None, int]) -> None:
        self._cache[key] = made
        self._held += made[1]
        while self._held > self._most and len(self._cache) > 1:
            self._held -= self._cache.popitem(last=False)[1][1]


async def _plain(data: bytes) -> Outline | None:
    work = partial(_outlined_plainly, data)
    return await to_thread.run_sync(work) if len(data) > OFF_LOOP_BYTES else work()


def _outlined_plainly(data: bytes) -> Outline | None:
    document = decode(data)
    return plain_outline(document.lines) if document is not None else None
