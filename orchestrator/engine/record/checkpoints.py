"""Signed checkpoints: every so many events or so much time, at a clean stop, and when somebody asks."""

from __future__ import annotations

from functools import partial

import anyio
from anyio import to_thread

from orchestrator.api import parameters as p
from orchestrator.api import results as r
from orchestrator.api.checkpoints import JournalCheckpoint, SignedCheckpoint
from orchestrator.core.checkpoint import Checkpoint, message, parse_checkpoint
from orchestrator.core.errors import OrchestratorError, VersionUnknown
from orchestrator.core.events.base import Origin, Recorded
from orchestrator.core.events.catalog import tag_of
from orchestrator.core.events.journal import CheckpointSigned
from orchestrator.core.ids import show
from orchestrator.core.timestamps import written
from orchestrator.engine.caller import Call, Caller
from orchestrator.engine.services import Services
from orchestrator.logs import logger
from orchestrator.ports.journal import EventFilter, VerifyReport
from orchestrator.ports.machine import Signer

EVERY_EVENTS = 1000
EVERY_S = 3600.0
"""After so much time a checkpoint is signed too, if there is at least one event that is not under one."""

STREAM = "journal"


class Sealer:
    """Signs the chain's end, and compares it with what was signed."""

    def __init__(
        self, services: Services, signer: Signer, *, every_events: int = EVERY_EVENTS, every_s: float = EVERY_S
    ) -> None:
        self._s, self._signer = services, signer
        self._every_events, self._every_s = every_events, every_s
        self._log = logger("sealing")
        self._one_at_a_time = anyio.Lock()
        self._new = 0
        self.whole = ""
        """For `status`: what the last verify of this run said."""
        self._some, self._many = anyio.Event(), anyio.Event()
        services.journal.subscribe(self._count)

    def _count(self, recorded: Recorded) -> None:
        if not isinstance(recorded.event, CheckpointSigned):
            self._add(1)

    def _add(self, events: int) -> None:
        self._new += events
        if self._new > 0:
            self._some.set()
        if self._new >= self._every_events:
            self._many.set()

    # --- the duty -----------------------------------------------------------------------

    async def begin(self) -> None:
        """Count what came after the last checkpoint of an earlier run."""
        wanted = EventFilter(tags=(tag_of(CheckpointSigned),))
        last = await self._s.journal.newest(wanted, limit=1, archived=False)
        sealed = 0
        if last and isinstance(last[0].event, CheckpointSigned):
            # What came between the head that was signed and the signature's own event counts as new.
            sealed = last[0].event.head + 1
        self._new = 0  # those of this start are among them
        self._add(max(0, self._s.journal.head - sealed))

    async def duty(self) -> None:
        """Sign when it is time, until cancelled. What fails is logged, and tried again when it is time again."""
        while True:
            await self._some.wait()
            many = self._many
            with anyio.move_on_after(self._every_s):
                await many.wait()
            await self._seal_or_say()

    async def end(self) -> None:
        """At a clean stop: nothing that was recorded stays without a signature."""
        if self._new > 0:
            await self._seal_or_say()

    async def _seal_or_say(self) -> None:
        try:
            await self.seal()
        except OrchestratorError as error:
            self._new, self._some, self._many = 0, anyio.Event(), anyio.Event()
            self._log.warning("no checkpoint was signed", code=error.code, message=error.message)

    async def seal(self, origin: Origin | None = None) -> tuple[Recorded, Checkpoint]:
        """Sign the end as it is now. Raises SigningKeyUnusable, VersionUnknown (nothing to sign), WritesStopped."""
        async with self._one_at_a_time:
            self._new, self._some, self._many = 0, anyio.Event(), anyio.Event()
            journal = self._s.journal
            last = await journal.event(journal.head)
            if last is None:
                raise VersionUnknown("the journal is empty, so there is nothing to sign")
            head_hash = last.hash.hex()
            signed = message(journal.id, last.seq, head_hash)
            key, signature = await to_thread.run_sync(partial(self._signer.sign, signed))
            event = CheckpointSigned(
                journal=journal.id, head=last.seq, head_hash=head_hash, key=key, signature=signature
            )
            (recorded,) = await self._s.append(origin or Origin(), (STREAM, event))
            return recorded, checkpoint_of(recorded, event)

    # --- operations ---------------------------------------------------------------------

    async def journal_checkpoint(self, caller: Caller, call: Call, params: JournalCheckpoint) -> SignedCheckpoint:
        recorded, made = await self.seal(caller.origin(call))
        return SignedCheckpoint(
            checkpoint=show(recorded.seq),
            seq=show(made.seq),
            journal=made.journal,
            hash=made.hash,
            key=made.key,
            signed_at=made.signed_at,
            text=made.text(),
        )

    async def journal_verify(self, caller: Caller, call: Call, params: p.JournalVerify) -> r.VerifyAnswer:
        checkpoint = parse_checkpoint(params.checkpoint) if params.checkpoint is not None else None
        answer = verified(await self._s.journal.verify(checkpoint))
        self.whole = f"{answer.verdict}; up to {answer.head}, {written(self._s.clock.now_ms())}"
        return answer


def checkpoint_of(recorded: Recorded, event: CheckpointSigned) -> Checkpoint:
    """The file of a signature that is in the journal."""
    return Checkpoint(
        journal=event.journal,
        seq=event.head,
        hash=event.head_hash,
        key=event.key,
        signature=event.signature,
        signed_at=recorded.at,
    )


def verified(report: VerifyReport) -> r.VerifyAnswer:
    """What a walk found, as callers see it."""
    return r.VerifyAnswer(
        ok=not report.problems,
        events=report.events,
        head=show(report.head),
        head_hash=report.head_hash,
        blobs=report.blobs,
        problems=report.problems,
        unchecked=report.unchecked,
        proven=report.proven,
        unread=report.unread,
    )
