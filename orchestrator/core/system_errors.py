"""What an error of the operating system means to a caller, whatever was being done."""

from __future__ import annotations

import errno

from orchestrator.core.errors import DescriptorsExhausted, DiskFull, OrchestratorError

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
