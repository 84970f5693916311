"""One lock per canonical path: reads share it, changes take it alone, several are taken in order."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio

from orchestrator.core.ids import WorkspacePath


class _Lock:
    """Shared or exclusive, first come first served."""

    __slots__ = ("holders", "waiting")

    def __init__(self) -> None:
        self.holders = 0  # who share it; -1: one holds it alone
        self.waiting: deque[tuple[bool, anyio.Event]] = deque()

    def free_for(self, *, alone: bool) -> bool:
        return self.holders == 0 if alone else self.holders >= 0

    def take(self, *, alone: bool) -> None:
        self.holders = -1 if alone else self.holders + 1

    def give(self, *, alone: bool) -> None:
        self.holders = 0 if alone else self.holders - 1
        while self.waiting and self.free_for(alone=self.waiting[0][0]):
            wants_alone, turn = self.waiting.popleft()
            self.take(alone=wants_alone)
            turn.set()


class PathLocks:
    """The locks that are in use now."""

    def __init__(self) -> None:
        self._locks: dict[WorkspacePath, _Lock] = {}

    def shared(self, path: WorkspacePath) -> AbstractAsyncContextManager[None]:
        """Hold a path together with other readers."""
        return self.hold((path,), shared=True)

    @asynccontextmanager
    async def hold(self, paths: Iterable[WorkspacePath], *, shared: bool = False) -> AsyncIterator[None]:
        """Hold these paths against everybody, or `shared` with readers.

        Taken in sorted order, so that no two holders wait for each other.
        """
        held: list[WorkspacePath] = []
        try:
            for path in sorted(set(paths)):
                await self.acquire(path, alone=not shared)
                held.append(path)
            yield
        finally:
            for path in reversed(held):
                self.release(path, alone=not shared)

    def alone(self, paths: Iterable[WorkspacePath]) -> AbstractAsyncContextManager[None]:
        """Hold these paths against everybody."""
        return self.hold(paths)

    async def acquire(self, path: WorkspacePath, *, alone: bool) -> None:
        """Take one lock, when its turn comes."""
        lock = self._locks.setdefault(path, _Lock())
        if not lock.waiting and lock.free_for(alone=alone):
            lock.take(alone=alone)
            return
        turn = anyio.Event()
        ticket = (alone, turn)
        lock.waiting.append(ticket)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():
                self.release(path, alone=alone)
            else:
                lock.waiting.remove(ticket)
            raise

    def release(self, path: WorkspacePath, *, alone: bool) -> None:
        """Give it back."""
        lock = self._locks[path]
        lock.give(alone=alone)
        if not lock.holders and not lock.waiting:
            del self._locks[path]
