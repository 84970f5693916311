"""Whoever started the daemon and waits at a pipe: told once, that it is ready or why it can't serve."""

from __future__ import annotations

import errno
from contextlib import suppress

import msgspec

from orchestrator.api.failures import rejection
from orchestrator.core.errors import InternalError, OrchestratorError, escaped
from orchestrator.core.system_errors import leaves, refusal_in, state_trouble


class Starter:
    """The pipe's other end; `fd` None: nobody waits."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd

    def tell(self, what: object) -> None:
        """One line, once. A starter that has gone away is no reason to end."""
        fd, self._fd = self._fd, None
        if fd is not None:
            with suppress(OSError), open(fd, "wb") as ready:  # noqa: PTH123  # a descriptor has no path
                ready.write(msgspec.json.encode(what) + b"\n")

    def refuse(self, error: OrchestratorError) -> None:
        self.tell(rejection(error))


def why_not_served(error: Exception) -> OrchestratorError:
    """What ended the daemon, as a refusal with a stable code; task groups hide it in groups of their own."""
    refused = refusal_in(error, "the daemon can't serve")
    if refused is not None:
        return refused
    causes = list(leaves(error))
    for cause in causes:
        if isinstance(cause, OSError) and cause.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            return state_trouble(cause, "a file of the daemon")
    return InternalError(
        f"the daemon failed ({type(causes[0]).__name__}: {escaped(str(causes[0]))[:300]})",
        hint="Its log, daemon.log in the state directory, has the trace. Please report it.",
    )
