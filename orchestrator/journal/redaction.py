"""Redactions: the unit that says so, and what goes with it on the writer's thread."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from abc import abstractmethod
from concurrent.futures import Future, wait
from pathlib import Path

import msgspec
from anyio import CancelScope, to_thread

from orchestrator.core.errors import VersionUnknown
from orchestrator.core.events import chain
from orchestrator.core.events.base import Origin
from orchestrator.core.events.journal import ContentRedacted, PayloadRedacted
from orchestrator.core.ids import Digest, Seq, show
from orchestrator.core.maintenance_errors import EventArchived
from orchestrator.core.redaction import blanked
from orchestrator.journal.queries import Reading
from orchestrator.journal.schema import sql
from orchestrator.journal.writer import Writer
from orchestrator.journal.writer_jobs import Job
from orchestrator.ports.journal import NewEvent, Redaction, Unit
from orchestrator.ports.machine import Entropy

STREAM = "journal"
"""Of what is done to the journal itself."""


class Redacting(Reading):
    """The part of `ports.Journal` that takes out of it, and knows which contents are kept."""

    _loop: asyncio.AbstractEventLoop
    _entropy: Entropy

    def __init__(self, state_dir: Path) -> None:
        super().__init__(state_dir)
        self._kept: dict[Digest, None] = {}
        self._forgetting: set[Digest] = set()
        self._remembered = threading.Event()
        self._remembered.set()
        self._packing: set[Future[None]] = set()

    @abstractmethod
    def _open_for_writing(self) -> Writer:
        """Raises WritesStopped."""

    def _known(self, digest: Digest) -> bool:
        return digest in self._kept and digest not in self._forgetting

    async def redact(self, event: PayloadRedacted, origin: Origin) -> Redaction:
        writer = self._open_for_writing()
        self._refuse_archived(event.target)
        row = await self._one(self._points, sql("stored_payload"), (event.target,))
        if row is None:
            self._refuse_archived(event.target)
            raise VersionUnknown(f"the journal has no event {show(event.target)}")
        payload, old_salt = row
        rest, salt = blanked(payload, event.fields), self._entropy.bytes(chain.REDACTED_SALT_BYTES)
        event = msgspec.structs.replace(event, rest_hash=chain.payload_hash(salt, rest).hex())
        job = Job(
            Unit((NewEvent(STREAM, event),), origin),
            (),
            self._loop.create_future(),
            redacts=(rest, salt, int(event.target), old_salt),
        )
        writer.submit(job)
        try:
            (recorded,) = await job.done
        except sqlite3.IntegrityError:
            self._refuse_archived(event.target)
            raise
        return Redaction(recorded=recorded, scrubbed=job.scrubbed)

    def _refuse_archived(self, seq: Seq) -> None:
        """Raises EventArchived: files of events are never written again."""
        files = [segment.file for segment in reversed(self._segments) if segment.last >= seq]
        if files:
            commands = ", then ".join(f"`orchestrator journal unarchive {file}`" for file in files)
            raise EventArchived(
                f"event {show(seq)} is archived, and archived events are not changed",
                hint=f"Run {commands}; delete the files in {self._archive.folder} that you brought back, "
                "which still hold the text; then redact again.",
            )

    async def forget(self, event: ContentRedacted, origin: Origin) -> Redaction:
        writer = self._open_for_writing()
        job = Job(Unit((NewEvent(STREAM, event),), origin), (), self._loop.create_future(), forgets=event.digest)
        self._forgetting.add(event.digest)
        self._remembered.clear()
        try:
            with CancelScope(shield=True):
                await to_thread.run_sync(wait, tuple(self._packing))  # those that may have met it as kept
                writer.submit(job)
                (recorded,) = await job.done
        finally:
            self._kept.pop(event.digest, None)
            self._forgetting.discard(event.digest)
            if not self._forgetting:
                self._remembered.set()
        return Redaction(recorded=recorded, scrubbed=job.scrubbed)
