"""Files in the state directory that hold what can be made anew: no promise of the journal stands on them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

FOLDER_NAME = "cache"
MOST_BYTES = 16 * 1024 * 1024
MOST_OF_ONE = 1024 * 1024


class CacheFiles:
    """See `ports.Cache`. Nothing is synced: a file that a crash cut is none."""

    def __init__(self, state_dir: Path, most_bytes: int = MOST_BYTES) -> None:
        self._folder, self._most = state_dir / FOLDER_NAME, most_bytes

    def get(self, name: str) -> bytes | None:
        try:
            return (self._folder / name).read_bytes()
        except OSError:
            return None

    def put(self, name: str, data: bytes) -> None:
        if len(data) > MOST_OF_ONE:
            return
        with suppress(OSError):  # a disk that is full, or takes no writes
            self._folder.mkdir(mode=0o700, exist_ok=True)
            draft = self._folder / f"{name}.new"
            draft.write_bytes(data)
            draft.replace(self._folder / name)
            self._tidy()

    def _tidy(self) -> None:
        """Remove the oldest files until the others fit."""
        found = sorted((file.stat().st_mtime_ns, file.stat().st_size, file) for file in self._folder.iterdir())
        held = sum(size for _, size, _ in found)
        for _, size, file in found:
            if held <= self._most:
                return
            file.unlink(missing_ok=True)
            held -= size
