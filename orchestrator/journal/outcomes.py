"""What becomes of an append: its answer, or why there is none."""

from __future__ import annotations

import errno
import sqlite3

from orchestrator.core.errors import DiskFull, WritesStopped
from orchestrator.journal.jobs import Job, Outcome
from orchestrator.journal.writer import MEND, Writer


def resolve(job: Job, outcome: Outcome) -> None:
    """Hand it to who waits."""
    if job.done.done():
        return  # its caller was cancelled
    if isinstance(outcome, tuple):
        job.done.set_result(outcome)
    else:
        job.done.set_exception(outcome)


def refusal(writer: Writer, error: Exception) -> Exception:
    """What a content that could not be kept means for the append that needs it."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull("the disk that holds the journal is full; nothing was changed")
    if isinstance(error, OSError | sqlite3.Error):
        message = f"a content can't be written beside the journal: {error}"
        writer.stop(message)
        stopped = WritesStopped(message, hint=MEND)
        stopped.__cause__ = error
        return stopped
    return error
