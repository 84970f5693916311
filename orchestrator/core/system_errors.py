"""The caller's error for an error of the operating system."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from orchestrator.core.errors import DescriptorsExhausted, DiskFull, OrchestratorError, StateDirectoryUnusable, escaped

OUT_OF_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def system_trouble(error: OSError, doing: str) -> OrchestratorError | None:
    """The refusal for what is the whole system's trouble, not one file's; None for any other."""
    if error.errno in OUT_OF_DESCRIPTORS:
        whose = "the daemon has" if error.errno == errno.EMFILE else "the system has"
        return DescriptorsExhausted(f"{whose} no file descriptor left: {doing}")
    if error.errno in NO_SPACE:
        return DiskFull(f"no space is left on the disk: {doing}")
    return None


def state_trouble(error: OSError, path: str) -> OrchestratorError:
    """The refusal for a file of the state directory, or of the directory of location files, that can't be written."""
    where = escaped(str(error.filename or path))
    return system_trouble(error, f"{where} can't be opened") or StateDirectoryUnusable(
        f"{where} can't be written: {error.strerror}"
    )


def refusal_in(error: BaseException, doing: str) -> OrchestratorError | None:
    """The refusal behind an error, also behind a group that a task group made; None for what nobody foresaw."""
    causes = list(leaves(error))
    for cause in causes:
        if isinstance(cause, OrchestratorError):
            return cause
    troubles = (system_trouble(cause, doing) for cause in causes if isinstance(cause, OSError))
    return next(filter(None, troubles), None) or next(filter(None, (_behind(cause, doing) for cause in causes)), None)


def _behind(error: BaseException, doing: str) -> OrchestratorError | None:
    """The lack of descriptors that another error came out of: an event loop can't end properly without any."""
    before = error.__cause__ or error.__context__
    while before is not None:
        for cause in leaves(before):
            if isinstance(cause, OSError) and cause.errno in OUT_OF_DESCRIPTORS:
                return system_trouble(cause, doing)
        before = before.__cause__ or before.__context__
    return None


def leaves(error: BaseException) -> Iterator[BaseException]:
    """What was raised, out of the groups that task groups make of it."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error
