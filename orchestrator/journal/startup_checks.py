"""What is looked at in a state directory before its journal is written to."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from orchestrator.core.errors import JournalCorrupt
from orchestrator.core.ids import Digest
from orchestrator.journal.blobs import FOLDER_NAME, Blobs
from orchestrator.journal.chain_verification import check_tail
from orchestrator.journal.high_water_mark import HighWaterMarkFile
from orchestrator.journal.schema import FILE_NAME, naming_trouble, open_writer, sql
from orchestrator.journal.segments import Archive
from orchestrator.journal.versions import rebuild_versions


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


def open_checked(path: Path, archive: Archive, blobs: Blobs, mark: HighWaterMarkFile | None) -> sqlite3.Connection:
    """The connection that writes, after the checks that a start makes; their cost does not grow with the journal.

    Blocking. Raises JournalCorrupt, naming the place, JournalTooNew, JournalBehind, WorkspaceHeld, ArchiveMissing.
    """
    connection = open_writer(path)
    try:
        check_tail(connection)
        if mark is not None:
            mark.check(connection, archive)
        rebuild_versions(connection, archive)
        _sweep(connection, blobs)
    except BaseException:
        connection.close()
        raise
    return connection


def _sweep(connection: sqlite3.Connection, blobs: Blobs) -> None:
    """Remove what a crash left: files half written, and such as no row names, or none any more.

    Those of contents that were redacted or collected are among them. Blocking; raises
    JournalCorrupt. Cost: O(contents in files).
    """
    try:
        with naming_trouble("the journal"):
            blobs.sweep()
            named = {Digest(row[0]) for row in connection.execute(sql("filed_blobs"))}
            for file in blobs.unnamed(named):
                file.unlink()
    except OSError as error:
        raise JournalCorrupt(
            f"a content that is kept no more can't be removed: {error}",
            hint="Give the state directory back to its owner.",
        ) from error
