"""Work that may never end, in a thread that the daemon does not wait for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

import anyio
from anyio import from_thread, lowlevel

T = TypeVar("T")


class Aside(Generic[T]):
    """One piece of work that is not ours. The thread is a daemon's: one that hangs holds up no stop."""

    def __init__(self, work: Callable[[], T], *, name: str) -> None:
        self._work, self._name = work, name
        self._done = anyio.Event()
        self._result: list[T] = []
        self._error: BaseException | None = None

    async def run(self, timeout_s: float) -> T:
        """Its result, or the exception that it raised. Raises TimeoutError; the thread is then left to itself."""
        token = lowlevel.current_token()
        threading.Thread(target=self._try, args=(token,), name=self._name, daemon=True).start()
        with anyio.fail_after(timeout_s):
            await self._done.wait()
        if self._error is not None:
            raise self._error
        return self._result[0]

    def _try(self, token: lowlevel.EventLoopToken) -> None:
        try:
            self._result.append(self._work())
        except BaseException as error:  # noqa: BLE001  # SystemExit of a plugin, too, is told to who waits
            self._error = error
        with suppress(anyio.RunFinishedError, RuntimeError):  # the daemon ended meanwhile
            from_thread.run_sync(self._done.set, token=token)
