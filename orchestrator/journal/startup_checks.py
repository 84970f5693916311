"""What is looked at in a state directory before its journal is written to."""

from __future__ import annotations

import sqlite3
from collections import deque
from pathlib import Path

from orchestrator.core.errors import JournalCorrupt
from orchestrator.core.ids import Digest
from orchestrator.journal.blobs import FOLDER_NAME, Blobs
from orchestrator.journal.database_file import FILE_NAME, naming_trouble, sql
from orchestrator.journal.high_water_mark import HighWaterMarkFile, require_at_least
from orchestrator.journal.segments import Archive, archived_end
from orchestrator.journal.verification import ChainVerifier
from orchestrator.journal.versions import rebuild_versions

TAIL = 1000
"""Events whose chain is checked at every start, at least."""

MOST_TAIL = 20_000
"""And at most; 0.3 s. What is older is checked while the daemon serves."""


def refuse_to_begin_anew(state_dir: Path, mark: HighWaterMarkFile | None) -> None:
    """Contents without a journal: it was lost, and a new one would forget all that it said.

    Raises JournalBehind, JournalCorrupt. Blocking.
    """
    path, blobs = state_dir / FILE_NAME, state_dir / FOLDER_NAME
    lost = not path.exists() or path.stat().st_size == 0
    if lost and mark is not None:
        mark.refuse_a_lost_journal(state_dir)
    if lost and blobs.is_dir() and any(item.name != "incoming" for item in blobs.iterdir()):
        raise JournalCorrupt(
            f"{path} is gone, but the contents it names are there",
            hint=f"Restore it from a backup, or move {state_dir} away to begin anew.",
        )


def check_before_writing(
    connection: sqlite3.Connection, archive: Archive, blobs: Blobs, mark: HighWaterMarkFile | None
) -> None:
    """The checks that a start makes, and what it repairs; their cost does not grow with the journal.

    Blocking. Raises JournalCorrupt, naming the place, JournalTooNew, JournalBehind, ArchiveMissing.
    """
    check_tail(connection, archive)
    known = mark.read() if mark is not None else None
    if known is not None:
        require_at_least(known, connection, archive)
    rebuild_versions(connection, archive)
    _sweep(connection, blobs)


def _sweep(connection: sqlite3.Connection, blobs: Blobs) -> None:
    """Remove what a crash left: files half written, and such as no row names, or none any more.

    Those of contents that were redacted or collected are among them. Blocking; raises
    JournalCorrupt. Cost: O(contents in files).
    """
    try:
        with naming_trouble("the journal"):
            named = {Digest(row[0]) for row in connection.execute(sql("filed_blobs"))}
            for file in blobs.strays(named):
                file.unlink()
    except OSError as error:
        raise JournalCorrupt(
            f"a content that is kept no more can't be removed: {error}",
            hint="Give the state directory back to its owner.",
        ) from error


def check_tail(connection: sqlite3.Connection, archive: Archive) -> None:
    """Check the chain from the last snapshot on, at least TAIL and at most MOST_TAIL events.

    A redaction comes after its target, so those of a tail's events are in it. Raises JournalCorrupt, naming the
    first position that does not hold.
    """
    with naming_trouble("the journal"):
        (head, _) = connection.execute(sql("last_event")).fetchone() or (0, b"")
        before = head - max(TAIL, min(head - _last_snapshot(connection), MOST_TAIL))
        anchor = connection.execute(sql("event"), (before,)).fetchone()
        verifier = ChainVerifier(connection, archive, until=head)
        verifier.walk.end = (before, anchor[17]) if anchor else archived_end(connection) or verifier.walk.end
    deque(verifier.require(verifier.events(), verifier.walk.redaction_problems()), maxlen=0)


def _last_snapshot(connection: sqlite3.Connection) -> int:
    """0 where there is none, or where they can't be read: nothing hangs on them."""
    try:
        (seq,) = connection.execute(sql("last_snapshot")).fetchone()
    except sqlite3.DatabaseError:
        return 0
    return int(seq or 0)
