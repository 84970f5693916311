"""What is handed to the writer: units with what goes along with them, and errands."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from orchestrator.core.events.base import Recorded
from orchestrator.core.ids import Digest
from orchestrator.journal.blobs import StoredBlob
from orchestrator.ports.journal import Unit

Outcome = tuple[Recorded, ...] | Exception


class TransactionHook(Protocol):
    """Work on the journal itself that happens together with a unit, in a transaction of their own."""

    def inside(self, connection: sqlite3.Connection) -> None:
        """When the unit's rows are in and nothing is committed; what it raises undoes all."""

    def after(self) -> frozenset[Digest]:
        """Right after the commit; the contents that are kept no more."""


class Job:
    """A unit on its way, who waits for it, and what happens along with it."""

    __slots__ = ("along", "blobs", "done", "forgets", "redacts", "scrubbed", "unit")

    def __init__(
        self,
        unit: Unit,
        blobs: tuple[StoredBlob, ...],
        done: asyncio.Future[tuple[Recorded, ...]],
        *,
        along: TransactionHook | None = None,
        redacts: tuple[bytes, bytes, int, bytes] | None = None,
        forgets: Digest | None = None,
    ) -> None:
        self.unit, self.blobs, self.done, self.along = unit, blobs, done, along
        self.redacts, self.forgets = redacts, forgets  # a redaction's statement and values
        self.scrubbed = False


class MaintenanceTask:
    """Work on the write connection, in a transaction of its own, between those of the units."""

    __slots__ = ("done", "name", "work")

    def __init__(self, name: str, work: Callable[[sqlite3.Connection], None]) -> None:
        self.name, self.work = name, work
        self.done: Future[None] = Future()
