"""A line of JSON for each change that was applied."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from orchestrator.extensions.hookspecs import AppliedChange, hook

VARIABLE = "CHANGE_LOG_FILE"


class ChangeLog:
    """Appends to one file, for its owner alone."""

    def __init__(self) -> None:
        named = os.environ.get(VARIABLE, "")
        if not named:
            raise RuntimeError(f"set {VARIABLE} to a file outside the workspace")
        self._path = Path(named).expanduser()

    @hook
    def orchestrator_change_applied(self, change: AppliedChange) -> None:
        line = msgspec.json.encode(change) + b"\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, line)  # one write, so that lines of several daemons do not mix
        finally:
            os.close(descriptor)
