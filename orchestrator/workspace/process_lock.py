"""Locks on the workspace's root and the state directory that exclude a second daemon."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import suppress

from orchestrator.api.processes import LOCK_FILE
from orchestrator.core.errors import WorkspaceHeld
from orchestrator.core.system_errors import state_trouble

TRIES, PAUSE_S = 20, 0.005
"""Whoever asks who holds a lock takes it, shared, for an instant (`api/processes.py`); a daemon outlasts that."""


class ProcessLock:
    """A lock, held until it is closed or the process ends."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def report(self, doing: str) -> None:
        """Write into the locked file who holds it and, for whoever waits, what it is doing."""
        text = f"{os.getpid()}\n{doing}\n".encode()
        with suppress(OSError):  # a full disk: nobody can be informed
            os.pwrite(self._handle, text, 0)
            os.ftruncate(self._handle, len(text))

    def close(self) -> None:
        with suppress(OSError):
            os.close(self._handle)


def hold_root(root: str) -> ProcessLock:
    """Lock the workspace's root directory. Raises WorkspaceHeld."""
    return _hold(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), root)


def hold_state(state_dir: str | os.PathLike[str]) -> ProcessLock:
    """Lock the state directory, by a file in it that names the holder. Raises as `state_trouble`, or WorkspaceHeld."""
    path = os.path.join(state_dir, LOCK_FILE)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise state_trouble(error, path) from error
    holder = os.pread(handle, 32, 0).decode("ascii", "replace").partition("\n")[0]
    held = _hold(handle, os.fspath(state_dir), holder=holder)
    held.report("")
    return held


def _hold(handle: int, what: str, *, holder: str = "") -> ProcessLock:
    for left in reversed(range(TRIES)):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError as error:
            held = error.errno in (errno.EAGAIN, errno.EACCES)
            if held and left:
                time.sleep(PAUSE_S)
                continue
            os.close(handle)
            if not held:
                raise
            who = f" (process {holder})" if holder else ""
            raise WorkspaceHeld(
                f"another daemon{who} serves {what}",
                hint="`orchestrator status` shows it; `orchestrator stop` ends it.",
            ) from error
    return ProcessLock(handle)
