"""Redactions on the write connection: out of the tables with the event that says so, then out of the files."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Protocol

from orchestrator.core.ids import Digest
from orchestrator.journal.blobs import Blobs
from orchestrator.journal.schema import BUSY_TIMEOUT_S, sql

PATIENCE_MS = 1000
"""How long a truncation waits for readers that hold an older state; other commits wait meanwhile."""


class Redacting(Protocol):
    """The part of a job that is about redaction."""

    redacts: tuple[bytes, bytes, int, bytes] | None
    forgets: Digest | None
    scrubbed: bool


class Scrubber:
    """What a transaction with redactions does more, inside it and after it. On the writer's thread.

    Free space is overwritten by SQLite itself (`secure_delete`, set when the connection was
    opened); what is left are older pages in the write-ahead log, and files of contents.
    """

    def __init__(self, connection: sqlite3.Connection, blobs: Blobs) -> None:
        self._db, self._blobs = connection, blobs
        self._unclean = False

    def within(self, jobs: Iterable[Redacting]) -> None:
        """Inside the transaction. Raises sqlite3.IntegrityError: the event was redacted meanwhile."""
        for job in jobs:
            if job.redacts is not None and self._db.execute(sql("redact_event"), job.redacts).rowcount != 1:
                raise sqlite3.IntegrityError(f"event @{job.redacts[2]} was redacted by another call meanwhile")
            if job.forgets is not None:
                self._db.execute(sql("forget_blob"), (job.forgets,))

    def after(self, jobs: Iterable[Redacting]) -> None:
        """After the commit. A file that can't be unlinked now is unlinked at the next start."""
        redacting = [job for job in jobs if job.redacts is not None or job.forgets is not None]
        if not redacting:
            if self._unclean:
                self._unclean = not self._truncate(0)
            return
        left = [job.forgets for job in redacting if job.forgets is not None and not self._removed(job.forgets)]
        self._unclean = not self._truncate(PATIENCE_MS)
        for job in redacting:
            job.scrubbed = not self._unclean and job.forgets not in left

    def _removed(self, digest: Digest) -> bool:
        try:
            self._blobs.remove(digest)
        except OSError:
            return False
        return True

    def _truncate(self, patience_ms: int) -> bool:
        """Fold the log into the database and cut it to nothing; False while somebody reads an older state."""
        try:
            self._db.execute(f"PRAGMA busy_timeout = {patience_ms}")
            (busy, _, _) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._db.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT_S * 1000)}")
        except sqlite3.OperationalError:
            return False  # the disk; the next commit meets the same trouble and says so
        return not busy
