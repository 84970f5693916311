"""Space held back beside the journal: when the disk is full, what is under way can still be closed."""

from __future__ import annotations

import os
from pathlib import Path

RESERVE_NAME = "disk-reserve"
RESERVE_BYTES = 2 * 1024 * 1024
"""A commit with an outcome in it writes about twenty pages, 80 KB; outcomes that wait share one."""


class DiskReserve:
    """A file that only takes room; `bytes_held` 0: none is kept. Blocking; one thread at a time."""

    def __init__(self, state_dir: Path, bytes_held: int = RESERVE_BYTES) -> None:
        self._path, self._bytes = state_dir / RESERVE_NAME, bytes_held

    def allocate(self) -> bool:
        """Take the room, if it isn't taken; False when the disk has none to give."""
        try:
            if self._bytes and not (self._path.is_file() and self._path.stat().st_size == self._bytes):
                handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
                with open(handle, "wb") as file:  # a descriptor has no path
                    file.write(os.urandom(self._bytes))  # nothing that a file system could store as a hole
                    file.flush()
                    os.fsync(file.fileno())
        except OSError:
            self.release()
            return False
        return True

    def release(self) -> bool:
        """Give the room to whoever writes next; whether there was any."""
        try:
            self._path.unlink()
        except OSError:
            return False  # nothing is gained then; the write that needed it says so
        return True
