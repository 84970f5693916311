"""What becomes of an append: its answer, or why there is none."""

from __future__ import annotations

import sqlite3

from orchestrator.core.system_errors import system_trouble
from orchestrator.journal.writer import Writer
from orchestrator.journal.writer_jobs import Job, Outcome


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
    if isinstance(error, OSError):
        trouble = system_trouble(error, "a content can't be kept beside the journal; nothing was changed")
        if trouble is not None:
            return trouble
    if isinstance(error, OSError | sqlite3.Error):
        stopped = writer.stop_after(f"a content can't be written beside the journal: {error}")
        stopped.__cause__ = error
        return stopped
    return error
