"""Verifying the journal: in the background after each start, and all of it when a person asks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing

import anyio
import msgspec

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.core.checkpoint import parse_checkpoint
from orchestrator.core.errors import JournalCorrupt, OrchestratorError
from orchestrator.core.ids import Seq, show
from orchestrator.core.timestamps import written
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.services import Services
from orchestrator.logs import logger
from orchestrator.ports.journal import VerifyReport

PAUSE_S = 0.002
"""Between two slices, so that callers have the interpreter at least half of the time."""


class Verification:
    """What a start leaves out because it grows with the journal: all pages, and the chain from the first event."""

    def __init__(self, services: Services, stop_writes: Callable[[str], None]) -> None:
        self._s, self._stop_writes = services, stop_writes
        self._log = logger("engine")
        self.checked = "running"
        """For `status`: `running`, `@N` when the chain up to there and the pages are whole, or `failed: …`."""
        self.whole = ""
        """For `status`: what the last `journal verify` of this run reported."""
        self.unread: tuple[str, ...] = ()
        """Archived files that could not be checked, and why; what needs them fails, all else goes on."""

    async def run(self) -> None:
        """Check once. Damage stops the writes: nothing is built on a damaged journal."""
        checked = Seq(0)
        try:
            async with aclosing(self._s.journal.checks()) as slices:
                async for at in slices:
                    checked, self.unread = at.seq, at.unread
                    await anyio.sleep(PAUSE_S)
        except JournalCorrupt as error:
            self.checked = f"failed: {error.message}"
            self._stop_writes(f"the journal is damaged: {error.message}")
            self._log.error("the journal is damaged; writes are stopped", error=error.message, hint=error.hint)
        except (OrchestratorError, OSError) as error:
            self.checked = f"failed: {error}"
            self._log.error("the journal could not be checked", error=str(error))
        else:
            self.checked = show(checked)
            if self.unread:
                self._log.warning("archived events can't be read", files=len(self.unread), first=self.unread[0])

    async def journal_verify(self, caller: Caller, call: Call, params: p.JournalVerify) -> r.VerifyAnswer:
        checkpoint = parse_checkpoint(params.checkpoint) if params.checkpoint is not None else None
        answer = verified(await self._s.journal.verify(checkpoint))
        self.whole = f"{answer.verdict}; up to {answer.head}, {written(self._s.clock.now_ms())}"
        return answer


def verified(report: VerifyReport) -> r.VerifyAnswer:
    """What a walk found, as callers see it."""
    found = msgspec.structs.asdict(report) | {"head": show(report.head)}
    return r.VerifyAnswer(ok=not report.problems, **found)
