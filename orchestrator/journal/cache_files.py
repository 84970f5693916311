"""Files in the state directory that hold what can be made anew: no promise of the journal stands on them."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

FOLDER_NAME = "cache"
MOST_BYTES = 16 * 1024 * 1024
SUM_BYTES = 32
"""Before each value."""

MOST_OF_ONE = 1024 * 1024


class CacheFiles:
    """See `ports.Cache`. Nothing is synced: a file that a crash cut is none."""

    def __init__(self, state_dir: Path, most_bytes: int = MOST_BYTES) -> None:
        self._folder, self._most = state_dir / FOLDER_NAME, most_bytes

    def get(self, name: str) -> bytes | None:
        try:
            stored = (self._folder / name).read_bytes()
        except OSError:
            return None
        sum_, data = stored[:SUM_BYTES], stored[SUM_BYTES:]
        return data if sum_ == _sum_of(name, data) else None  # damaged, or another's

    def put(self, name: str, data: bytes) -> None:
        if len(data) > MOST_OF_ONE:
            return
        with suppress(OSError):  # a disk that is full, or takes no writes
            self._folder.mkdir(mode=0o700, exist_ok=True)
            draft = self._folder / f"{name}.new"
            draft.write_bytes(_sum_of(name, data) + data)
            draft.replace(self._folder / name)
            self._shrink(self._most)

    def __len__(self) -> int:
        return len(self._files())

    @property
    def held_bytes(self) -> int:
        return sum(size for _, size, _ in self._files())

    def clear(self) -> None:
        self._shrink(0)

    def _files(self) -> list[tuple[int, int, Path]]:
        """Of each when it was written, its bytes, and its path; the oldest first."""
        try:
            with os.scandir(self._folder) as found:
                stats = [(each.stat(), Path(each.path)) for each in found]
        except OSError:  # nothing was kept yet, or one went away
            return []
        return sorted((stat.st_mtime_ns, stat.st_size, path) for stat, path in stats)

    def _shrink(self, most: int) -> None:
        """Remove the oldest files until the others fit."""
        found = self._files()
        held = sum(size for _, size, _ in found)
        for _, size, file in found:
            if held <= most:
                return
            with suppress(OSError):
                file.unlink(missing_ok=True)
            held -= size


def _sum_of(name: str, data: bytes) -> bytes:
    return hashlib.sha256(name.encode() + data).digest()
