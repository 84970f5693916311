"""The check of the whole journal, while callers are served."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing

import anyio

from orchestrator.core.errors import JournalCorrupt, OrchestratorError
from orchestrator.core.ids import Seq, show
from orchestrator.engine.services import Services
from orchestrator.logs import logger

PAUSE_S = 0.002
"""Between two slices, so that callers have the interpreter at least half of the time."""


class Checking:
    """What a start leaves out because it grows with the journal: all pages, and the chain from the first event."""

    def __init__(self, services: Services, stop_writes: Callable[[str], None]) -> None:
        self._s, self._stop_writes = services, stop_writes
        self._log = logger("engine")
        self.checked = "running"
        """For `status`: `running`, `@N` when the chain up to there and the pages held, or `failed: …`."""
        self.unread: tuple[str, ...] = ()
        """Archived files that could not be checked, and why; what needs them fails, all else goes on."""

    async def run(self) -> None:
        """Check once. What does not hold stops the writes: nothing is built on a journal nobody can vouch for."""
        checked = Seq(0)
        try:
            async with aclosing(self._s.journal.checks()) as slices:
                async for at in slices:
                    checked, self.unread = at.seq, at.unread
                    await anyio.sleep(PAUSE_S)
        except JournalCorrupt as error:
            self.checked = f"failed: {error.message}"
            self._stop_writes(f"the journal is damaged: {error.message}")
            self._log.error("the journal does not hold; writes are stopped", error=error.message, hint=error.hint)
        except (OrchestratorError, OSError) as error:
            self.checked = f"failed: {error}"
            self._log.error("the journal could not be checked", error=str(error))
        else:
            self.checked = show(checked)
            if self.unread:
                self._log.warning("archived events can't be read", files=len(self.unread), first=self.unread[0])
