"""Files that are covered for running commands: the kernel takes the cover off a file that is replaced."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Protocol

import anyio

from orchestrator.core.ids import WorkspacePath


class Covered(Protocol):
    """A command for which some files are covered."""

    async def fall(self, paths: Collection[WorkspacePath]) -> None:
        """End it if one of these is closed to it; nothing of it runs on return."""


class Covers:
    """Those of all running commands. A change through the daemon ends the commands whose covers it would take off."""

    def __init__(self) -> None:
        self._running: list[Covered] = []
        self._changes = 0
        self._no_change = anyio.Event()

    async def begin(self, covered: Covered) -> None:
        """From here on it is told of changes; before it looks at what is closed to it. Waits for changes under way."""
        while self._changes:
            await self._no_change.wait()
        self._running.append(covered)

    def end(self, covered: Covered) -> None:
        """Nothing of it runs any more."""
        if covered in self._running:
            self._running.remove(covered)

    @asynccontextmanager
    async def changing(self, paths: Collection[WorkspacePath]) -> AsyncIterator[None]:
        """While these are replaced, moved or deleted."""
        self._changes += 1
        try:
            for covered in tuple(self._running):
                await covered.fall(paths)
            yield
        finally:
            self._changes -= 1
            if not self._changes:
                done, self._no_change = self._no_change, anyio.Event()
                done.set()
