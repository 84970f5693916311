"""Work that may never end, in a thread that the daemon does not wait for."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Generic, TypeVar

import anyio
import msgspec
from anyio import from_thread, lowlevel

from orchestrator.core.errors import escaped

T = TypeVar("T")

MOST_SAID: Final = 300
MOST_TRACE: Final = 8_000


class Fault(msgspec.Struct, frozen=True):
    """What was raised, as plain text: nobody calls a foreign exception's methods after this."""

    kind: str
    message: str
    trace: str

    @property
    def shown(self) -> str:
        """On one line."""
        return f"{self.kind}: {self.message}" if self.message else self.kind


class DetachedFailure(Exception):
    """The work raised something, whatever that was."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.shown)
        self.fault = fault


class DetachedThread(Generic[T]):
    """One piece of work that is not ours. The thread is a daemon's: one that hangs holds up no stop."""

    def __init__(self, work: Callable[[], T], *, name: str) -> None:
        self._work, self._name = work, name
        self._done = anyio.Event()
        self._result: list[T] = []
        self._fault = Fault("no result", "", "")

    async def run(self, timeout_s: float) -> T:
        """Its result. Raises DetachedFailure, and TimeoutError; the thread is then left to itself.

        What the work raises is never raised here: a CancelledError or TimeoutError out of this is our own.
        """
        token = lowlevel.current_token()
        threading.Thread(target=self._try, args=(token,), name=self._name, daemon=True).start()
        with anyio.fail_after(timeout_s):
            await self._done.wait()
        if not self._result:
            raise DetachedFailure(self._fault)
        return self._result[0]

    def _try(self, token: lowlevel.EventLoopToken) -> None:
        try:
            self._result.append(self._work())
        except BaseException as error:  # noqa: BLE001  # what a plugin raises, KeyboardInterrupt too, is told to who waits
            self._fault = _fault(error)
        with suppress(anyio.RunFinishedError, RuntimeError):  # the daemon ended meanwhile
            from_thread.run_sync(self._done.set, token=token)


def _fault(error: BaseException) -> Fault:
    """In the thread where it was raised: its own methods may raise again, or hang."""
    return Fault(
        _said(lambda: type(error).__name__, MOST_SAID),
        _said(lambda: str(error), MOST_SAID),
        _said(lambda: "".join(traceback.format_exception(error)), MOST_TRACE, lines=True),
    )


def _said(tell: Callable[[], str], most: int, *, lines: bool = False) -> str:
    """Plain text: of a long trace its end, where it happened; of a message its beginning."""
    try:
        said = tell()
        if lines:
            return "\n".join(map(escaped, said[-most:].split("\n")))
        return escaped(said[:most])[:most]
    except BaseException:  # noqa: BLE001  # an exception whose own methods raise
        return "(can't be shown)"
