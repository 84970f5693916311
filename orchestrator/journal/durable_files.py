"""Files that SQLite does not write: put in place whole, and their names synced."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


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
