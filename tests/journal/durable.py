"""What of the files that our own code syncs would be there after a power cut: nothing that no sync made durable.

A file has the content that it had at its last sync, a directory the names that it had at its own. What SQLite
writes and syncs by itself is not seen here; `simulated_disk` is for that.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest


class DurableFiles:
    """Below a root; all that is there now is durable."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self._root = root
        self._contents: dict[int, bytes] = {}  # by inode, as the names in directories
        self._names: dict[int, dict[str, int]] = {}
        for path in (root, *root.rglob("*")):
            handle = os.open(path, os.O_RDONLY)
            self._synced(handle)
            os.close(handle)
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, self._synced)

    def _synced(self, handle: int) -> None:
        found = os.fstat(handle)
        path = Path(f"/proc/self/fd/{handle}")
        if stat.S_ISDIR(found.st_mode):
            with os.scandir(path) as names:  # of a folder above, some of which others remove meanwhile
                self._names[found.st_ino] = {item.name: item.inode() for item in names}
        else:
            self._contents[found.st_ino] = path.read_bytes()

    def left(self) -> dict[str, bytes]:
        """The files, and what is in them."""
        return dict(self._below("", self._root.stat().st_ino))

    def content(self, path: Path) -> bytes:
        """Of the file that has this name now, should the name survive."""
        return self._contents.get(path.stat().st_ino, b"")

    def _below(self, above: str, directory: int) -> list[tuple[str, bytes]]:
        found: list[tuple[str, bytes]] = []
        for name, inode in self._names.get(directory, {}).items():
            if inode in self._names or (self._root / above / name).is_dir():
                found += self._below(f"{above}{name}/", inode)
            else:
                found.append((above + name, self._contents.get(inode, b"")))
        return found
