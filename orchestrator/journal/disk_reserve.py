"""Space held back beside the journal: when the disk is full, what is under way can still be closed."""

from __future__ import annotations

import os
from pathlib import Path

RESERVE_NAME = "ballast"
RESERVE_BYTES = 2 * 1024 * 1024
"""A commit with an outcome in it writes about twenty pages, 80 KB; outcomes that wait share one."""


class DiskReserve:
    """A file that only takes room; `bytes` 0: none is kept. Blocking; one thread at a time."""

    def __init__(self, state_dir: Path, bytes_held: int = RESERVE_BYTES) -> None:
        self._path, self._bytes = state_dir / RESERVE_NAME, bytes_held

    def allocate(self) -> bool:
        """Take the room, if it isn't taken; False when the disk has none to give."""
        if not self._bytes:
            return True
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                if os.fstat(handle).st_size != self._bytes:
                    _fill(handle, self._bytes)
            finally:
                os.close(handle)
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


def _fill(handle: int, count: int) -> None:
    """Real blocks, not a hole. Raises OSError, with nothing promised about what is there then."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, count)
    else:
        os.ftruncate(handle, 0)
        left = count
        while left:
            left -= os.write(handle, bytes(min(left, 1 << 20)))
    os.fsync(handle)
