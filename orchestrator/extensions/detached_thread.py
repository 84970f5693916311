"""Work that may never end, in a thread that the daemon does not wait for."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

import anyio
from anyio import from_thread, lowlevel

from orchestrator.core.errors import escaped

T = TypeVar("T")

MOST_SAID: Final = 300
MOST_TRACE: Final = 8_000


class DetachedFailure(Exception):
    """What foreign work raised, as plain text on one line: nobody calls the methods of its exception after this."""

    def __init__(self, kind: str, message: str, trace: str) -> None:
        super().__init__(f"{kind}: {message}" if message else kind)
        self.kind, self.trace = kind, trace


async def run_detached(work: Callable[[], T], *, name: str, timeout_s: float) -> T:
    """The result of work that is not ours. Raises DetachedFailure, and TimeoutError; the thread is then left alone.

    What the work raises is never raised here: a CancelledError or TimeoutError out of this is our own.
    """
    token, done = lowlevel.current_token(), anyio.Event()
    results: list[T] = []
    failures: list[DetachedFailure] = []

    def attempt() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001  # whatever a plugin raises, KeyboardInterrupt too, is reported
            failures.append(_failure(error))
        with suppress(anyio.RunFinishedError, RuntimeError):  # the daemon ended meanwhile
            from_thread.run_sync(done.set, token=token)

    threading.Thread(target=attempt, name=name, daemon=True).start()
    with anyio.fail_after(timeout_s):
        await done.wait()
    if failures:
        raise failures[0]
    return results[0]


def _failure(error: BaseException) -> DetachedFailure:
    """In the thread where it was raised: its own methods may raise again, or hang."""
    return DetachedFailure(
        _said(lambda: [type(error).__name__[:MOST_SAID]])[:MOST_SAID],
        _said(lambda: [str(error)[:MOST_SAID]])[:MOST_SAID],
        _said(lambda: "".join(traceback.format_exception(error))[-MOST_TRACE:].split("\n")),
    )


def _said(lines: Callable[[], list[str]]) -> str:
    try:
        return "\n".join(map(escaped, lines()))
    except BaseException:  # noqa: BLE001  # an exception whose own methods raise
        return "(can't be shown)"
