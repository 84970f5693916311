"""The journal's files by identity: a state directory that was moved, deleted or replaced takes no more events."""

from __future__ import annotations

import os
from pathlib import Path


class OpenFiles:
    """The database and its write-ahead log as they are open; nobody else would see what goes into other ones."""

    def __init__(self, database: Path) -> None:
        self._paths = (str(database), f"{database}-wal")
        self._open = tuple(map(_identity, self._paths))

    def problem(self) -> str | None:
        """Why what is written would be lost, or None. Cost: 4 µs."""
        for path, opened in zip(self._paths, self._open, strict=True):
            found = _identity(path)
            if found != opened:
                what = "was deleted or moved away" if found is None else "was replaced by another file"
                return f"{path} {what} while the daemon serves: what is written would not be there after a restart"
        return None


def _identity(path: str) -> tuple[int, int] | None:
    """(device, inode); None where nothing can be found."""
    try:
        found = os.stat(path)  # asked before each commit
    except OSError:
        return None
    return found.st_dev, found.st_ino
