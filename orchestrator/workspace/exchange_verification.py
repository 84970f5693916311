"""Verifies the content behind a name after an exchange, and that no program is writing to it."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterator

from orchestrator.core.errors import ChangedWhileRead, FileBusy, FileNotFound, IoFailed, PathError
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.workspace.confine import Confinement, identity_of
from orchestrator.workspace.disk import Disk

BLOCK_BYTES = 1024 * 1024


class UnexpectedContent(Exception):
    """Another content, or another kind of thing, or another directory than it should be."""


def verify_content(at: Confinement, directory: int, name: str, expected: Digest, path: WorkspacePath) -> int:
    """The handle of a regular file that is `expected`, under a read lease where those can be had.

    The lease is refused while anyone has the file open for writing; it ends when the caller
    closes the handle. Raises UnexpectedContent, FileBusy, IoFailed.
    """
    try:
        handle, _ = at.open_regular(directory, name, path)
    except IoFailed:
        raise  # what came out is not known to be another's: it is not known at all
    except PathError as error:
        raise UnexpectedContent from error
    try:
        take_lease(at.disk, handle, path)
        if digest_from(at.disk, handle) != expected:
            raise UnexpectedContent
    except BaseException:
        at.disk.close(handle)
        raise
    return handle


def take_lease(disk: Disk, handle: int, path: WorkspacePath) -> None:
    """A read lease, where it can be had, for as long as the handle is open. Raises FileBusy."""
    try:
        disk.take_lease(handle)
    except OSError as error:
        if error.errno != errno.EAGAIN:
            raise
        raise FileBusy(path, "another program holds it open for writing") from error


def content(at: Confinement, directory: int, name: str, path: WorkspacePath) -> bytes | None:
    """The bytes under a name; None for nothing, or nothing regular. Raises IoFailed."""
    try:
        with at.regular(directory, name, path) as (handle, _):
            return b"".join(blocks_of(at.disk, handle))
    except IoFailed:
        raise
    except PathError:
        return None


def holds(at: Confinement, directory: int, name: str, expected: Digest, path: WorkspacePath) -> bool:
    """Whether a regular file with this content has the name. Raises what keeps it from being read, except absence."""
    try:
        with at.regular(directory, name, path) as (handle, _):
            return digest_from(at.disk, handle) == expected
    except (FileNotFound, ChangedWhileRead):
        return False


def same_directory(at: Confinement, handle: int, path: WorkspacePath) -> bool:
    """Whether the directory of `path` is still the one that the handle refers to. Raises IoFailed."""
    try:
        with at.parent(path) as (present, _):
            return identity_of(at.disk.stat(present)) == identity_of(at.disk.stat(handle))
    except IoFailed:
        raise
    except PathError:
        return False


def blocks_of(disk: Disk, handle: int) -> Iterator[bytes]:
    """The content of a file, piece by piece."""
    at = 0
    while block := disk.read(handle, BLOCK_BYTES, at):
        yield block
        at += len(block)


def digest_from(disk: Disk, handle: int) -> Digest:
    """The digest of a whole file, in bounded memory."""
    hashed = hashlib.sha256()
    for block in blocks_of(disk, handle):
        hashed.update(block)
    return Digest("sha256:" + hashed.hexdigest())
