"""The threads that change files: where the system has Landlock they can write below the workspace's root only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cached_property
from typing import TypeVar

import anyio

from orchestrator.logs import logger
from orchestrator.workspace.landlock import why_not, write_only_beneath

T = TypeVar("T")

THREADS = 32
"""As many changes of several agents are on their way to the disk at once; each waits for it."""


class ChangeThreads:
    """`root`: the handle of the workspace's root. What these threads start, or open, is restricted like them."""

    def __init__(self, root: int) -> None:
        self._root, self._why_not = root, ""
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="change", initializer=self._restrict)

    @cached_property
    def landlock(self) -> str:
        """ "on", or "off: …" with the reason."""
        self._pool.submit(lambda: None).result()
        return f"off: {self._why_not}" if self._why_not else "on"

    async def run(self, work: Callable[[], T]) -> T:
        """What the work gives back or raises; who is cancelled waits for its end."""
        with anyio.CancelScope(shield=True):
            return await asyncio.get_running_loop().run_in_executor(self._pool, copy_context().run, work)
        raise AssertionError  # the scope swallows nothing that nobody cancelled

    def close(self) -> None:
        self._pool.shutdown()

    def _restrict(self) -> None:
        """Of a new thread. Without Landlock it works all the same, and `landlock` says so."""
        try:
            write_only_beneath(self._root)
        except OSError as error:
            if not self._why_not:
                logger("workspace").info("no Landlock for the threads that change files", why=why_not(error))
            self._why_not = why_not(error)
