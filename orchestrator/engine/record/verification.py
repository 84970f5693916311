"""Signing where the chain ends, and verifying the journal: in the background after a start, or on demand."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import Any

import anyio
import msgspec
from anyio import to_thread

from orchestrator.api.journal_checks import JournalVerify, SignedCheckpoint, VerifyAnswer
from orchestrator.api.parameters import Params
from orchestrator.core.errors import JournalCorrupt, OrchestratorError, VersionUnknown
from orchestrator.core.events.base import Origin, Recorded
from orchestrator.core.events.chain import Checkpoint, message, parse_checkpoint
from orchestrator.core.events.codec import tag_of
from orchestrator.core.events.journal_maintenance import CheckpointSigned
from orchestrator.core.ids import Seq, show
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.notes import Notes
from orchestrator.engine.services import Growth
from orchestrator.logs import logger
from orchestrator.ports.journal import EventFilter, Journal, VerifyReport
from orchestrator.ports.machine import Signer

PAUSE_S = 0.002
"""Between two slices, so that callers have the interpreter at least half of the time."""


class Verification:
    """What a start leaves out because it grows with the journal: all pages, and the chain from the first event."""

    def __init__(self, journal: Journal, stop_writes: Callable[[str], None]) -> None:
        self._journal, self._stop_writes = journal, stop_writes
        self._log = logger("engine")
        self.checked = "running"
        """For `status`: `running`, `@N` when the chain up to there and the pages are whole, or `failed: …`."""
        self.unread: tuple[str, ...] = ()
        """Archived files that could not be checked, and why; what needs them fails, all else goes on."""

    async def run(self) -> None:
        """Check once. Damage stops the writes: nothing is built on a damaged journal."""
        checked = Seq(0)
        try:
            async with aclosing(self._journal.checks()) as slices:
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

    async def journal_verify(self, caller: Caller, call: Call, params: JournalVerify) -> VerifyAnswer:
        checkpoint = parse_checkpoint(params.checkpoint) if params.checkpoint is not None else None
        return verified(await self._journal.verify(checkpoint))


def verified(report: VerifyReport) -> VerifyAnswer:
    """What a walk found, as callers see it."""
    found = msgspec.structs.asdict(report) | {"head": show(report.head)}
    return VerifyAnswer(ok=not report.problems, **found)


EVERY_EVENTS = 1000
EVERY_S = 3600.0
"""After so much time a checkpoint is signed too, if there is at least one event since the last one."""

STREAM = "journal"


class CheckpointSigner:
    """Signs the chain's end."""

    def __init__(
        self,
        journal: Journal,
        notes: Notes,
        signer: Signer,
        *,
        every_events: int = EVERY_EVENTS,
        every_s: float = EVERY_S,
    ) -> None:
        self._journal, self._notes, self._signer = journal, notes, signer
        self._every_events, self._every_s = every_events, every_s
        self._log = logger("sealing")
        self._one_at_a_time = anyio.Lock()
        self._sealed = 0
        """Up to here nothing has to be signed: the head of the last checkpoint, and the checkpoint's own event."""
        self._growth = Growth(journal)

    async def begin(self) -> None:
        """Learn where the last checkpoint of an earlier run is."""
        last = await self._journal.newest(EventFilter(tags=(tag_of(CheckpointSigned),)), limit=1, archived=False)
        if last and isinstance(last[0].event, CheckpointSigned):
            self._sealed = last[0].event.head + 1

    async def run(self) -> None:
        """Sign when it is time, until cancelled. What fails is logged, and tried again when it is time again."""
        while True:
            await self._growth.reach(self._sealed + 1)
            with anyio.move_on_after(self._every_s):
                await self._growth.reach(self._sealed + self._every_events)
            await self.end()

    async def end(self) -> None:
        """Sign what is new, as at a clean stop: nothing that was recorded stays without a signature."""
        if self._journal.head <= self._sealed:
            return
        try:
            await self.seal()
        except OrchestratorError as error:
            self._sealed = self._journal.head
            self._log.warning("no checkpoint was signed", code=error.code, message=error.message)

    async def seal(self, origin: Origin | None = None) -> tuple[Recorded, CheckpointSigned]:
        """Sign the end as it is now. Raises SigningKeyUnusable, VersionUnknown (nothing to sign), WritesStopped."""
        async with self._one_at_a_time:
            journal = self._journal
            last = await journal.event(journal.head)
            if last is None:
                raise VersionUnknown("the journal is empty, so there is nothing to sign")
            head_hash = last.hash.hex()
            signed = message(journal.id, last.seq, head_hash)
            key, signature = await to_thread.run_sync(partial(self._signer.sign, signed))
            event = CheckpointSigned(
                journal=journal.id, head=last.seq, head_hash=head_hash, key=key, signature=signature
            )
            (recorded,) = await self._notes.append(origin or Origin(), (STREAM, event))
            self._sealed = last.seq + 1
            return recorded, event

    async def journal_checkpoint(self, caller: Caller, call: Call, params: Params) -> SignedCheckpoint:
        recorded, event = await self.seal(caller.origin(call))
        signed: dict[str, Any] = {"journal": event.journal, "hash": event.head_hash, "key": event.key}
        made = Checkpoint(**signed, seq=event.head, signature=event.signature, signed_at=recorded.at)
        at, text = show(recorded.seq), made.text()
        return SignedCheckpoint(**signed, checkpoint=at, seq=show(event.head), signed_at=recorded.at, text=text)
