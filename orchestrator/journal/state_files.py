"""Files in the state directory: how they are written, whether they are in place, and space held back beside them."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path

PUT_BACK = (
    "Reads go on. Put the state directory back in its place, then restart the daemon; without it, the next "
    "`orchestrator up` says how to begin anew."
)
VERIFY = (
    "Reads go on. Run `orchestrator stop`, then `orchestrator journal verify`; where it finds damage, restore a backup "
    "with `orchestrator journal restore`."
)

_INDEX_HEADER = struct.Struct("=14xHI")
"""Of the write-ahead log's index: bytes of a page, frames in the log. Source: sqlite.org/walformat.html, 2.1."""
_LOG_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24

RESERVE_NAME = "disk-reserve"
RESERVE_BYTES = 2 * 1024 * 1024
"""A commit with an outcome in it writes about twenty pages, 80 KB; outcomes that wait share one."""


class OpenFiles:
    """The database and its write-ahead log as they are open; nobody else would see what goes into other ones."""

    def __init__(self, database: Path) -> None:
        """Of a database that is open and was written to."""
        self._paths = (str(database), f"{database}-wal")
        self._open = tuple(map(_identity, self._paths))
        self._bytes = 0
        self._index: int | None = None
        with suppress(FileNotFoundError):  # SQLite keeps it in memory where it has the database for itself
            self._index = os.open(f"{database}-shm", os.O_RDONLY | os.O_CLOEXEC)

    def problem(self) -> tuple[str, str] | None:
        """Why what is written would be lost, and what to do; None where all is in place."""
        least = self._bytes, self._log_bytes()  # before the files are looked at, which only grow meanwhile
        sizes = []
        for path, opened in zip(self._paths, self._open, strict=True):
            found = _stat(path)
            if found is None or (found.st_dev, found.st_ino) != opened:
                return _problem(f"{path} was deleted, moved away or replaced", PUT_BACK)
            sizes.append(found.st_size)
        if sizes[0] < least[0]:
            return _problem(f"{self._paths[0]} was cut from {least[0]} to {sizes[0]} bytes", VERIFY)
        if sizes[1] < least[1] == self._log_bytes():  # else the log was begun anew just now
            return _problem(f"{self._paths[1]} was cut from {least[1]} to {sizes[1]} bytes", VERIFY)
        self._bytes = sizes[0]
        return None

    def close(self) -> None:
        """Not before the last connection to the database: closing drops this process's locks on the index."""
        if self._index is not None:
            os.close(self._index)

    def _log_bytes(self) -> int:
        """How long the log is at the least, for the commits in it that are not in the database yet."""
        if self._index is None:
            return 0
        page, frames = _INDEX_HEADER.unpack(os.pread(self._index, _INDEX_HEADER.size, 0))
        return _LOG_HEADER_BYTES + frames * (_FRAME_HEADER_BYTES + page) if frames else 0


def _problem(what: str, mend: str) -> tuple[str, str]:
    return f"{what} while the daemon serves: what is written would not be there after a restart", mend


def _stat(path: str) -> os.stat_result | None:
    """None where nothing can be found."""
    try:
        return os.stat(path)  # asked before each commit
    except OSError:
        return None


def _identity(path: str) -> tuple[int, int] | None:
    """(device, inode)."""
    found = _stat(path)
    return found and (found.st_dev, found.st_ino)


class DiskReserve:
    """A file that only takes room; `bytes_held` 0: none is kept. Blocking; one thread at a time."""

    def __init__(self, state_dir: Path, bytes_held: int = RESERVE_BYTES) -> None:
        self._path, self._bytes = state_dir / RESERVE_NAME, bytes_held
        self.released = False
        """The room was given away, and could not be taken since."""

    def allocate(self) -> bool:
        """Take the room, if it isn't taken; False when the disk has none to give."""
        try:
            if self._bytes and not (self._path.is_file() and self._path.stat().st_size == self._bytes):
                write_synced(self._path, os.urandom(self._bytes))  # nothing that could be stored as a hole
        except OSError:
            with suppress(OSError):
                self._path.unlink()
            return False
        self.released = False
        return True

    def release(self) -> bool:
        """Give the room to whoever writes next; whether there was any."""
        self.released = True
        try:
            self._path.unlink()
        except OSError:
            return False  # nothing is gained then; the write that needed it says so
        return True


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(path: Path) -> None:
    """Make the names in a directory, and in those below it, durable. Raises OSError."""
    for folder, _, _ in os.walk(path):
        sync_directory(Path(folder))


def sync_above(path: Path) -> None:
    """Make the name of a new directory durable, and the names of those that its owner may have made above it.

    Stops at another device and above another user's directory. Raises OSError.
    """
    own = path.stat()
    for folder in path.absolute().parents:
        found = folder.stat()
        if found.st_dev != own.st_dev:
            return
        with suppress(PermissionError):  # a directory that may not be read can't be synced either
            sync_directory(folder)
        if found.st_uid != own.st_uid:
            return


def write_synced(path: Path, data: bytes) -> None:
    """Put bytes into a file, 0600, and sync it; its name is not synced. Raises OSError."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(handle, "wb") as file:  # a descriptor has no path
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def publish(data: bytes, draft: Path, path: Path) -> None:
    """Put a whole file in place by way of a draft, name and all synced. Raises OSError; then no draft is left."""
    try:
        write_synced(draft, data)
        draft.rename(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)
