"""Where a command writes: a new or empty folder, outside of the workspace and of the state directory."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from orchestrator.api.history import TreeEntry
from orchestrator.clients.cli.context import Settings
from orchestrator.core.errors import CallerError, escaped

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
NEW_MODE = 0o644
"""For versions whose mode the journal did not learn."""


class OutputPathRefused(
    CallerError,
    code="output_path_refused",
    hint="Name a new or empty folder outside of the workspace and of the state directory.",
):
    """What a command writes must not lie where agents write, nor where the journal itself is lost."""


class ContentMismatch(Exception):
    """The received content is not the one that the tree names."""


class NewFolder:
    """The folder that a tree is rebuilt into. Nothing in it is overwritten, no link in it followed."""

    def __init__(self, path: Path, root: int) -> None:
        self.path, self._root = path, root

    @classmethod
    @contextmanager
    def opened(cls, settings: Settings, into: Path) -> Iterator[NewFolder]:
        """Make the folder, or take an empty one. Raises OutputPathRefused."""
        into = Path(os.path.abspath(into))  # noqa: PTH100  # `resolve` would follow a link at the end
        _check_outside(settings, into)
        try:
            into.mkdir(parents=True, exist_ok=True)
            root = os.open(into, _DIRECTORY)
        except OSError as error:
            raise OutputPathRefused(f"{into} can't be used: {error.strerror}") from error
        try:
            _check_outside(settings, into)
            if os.listdir(root):
                raise OutputPathRefused(f"{into} is not empty")
            yield cls(into, root)
        finally:
            os.close(root)

    def write(self, entry: TreeEntry, pieces: Iterable[bytes]) -> int:
        """Write one file, give it its mode, and verify its content; how many bytes it has.

        Raises ContentMismatch (then there is no file), OSError.
        """
        *folders, name = entry.path.split("/")
        if not {*folders, name}.isdisjoint(("", ".", "..")):
            raise ContentMismatch("it is no path of a workspace")
        folder = self._folder(folders)
        try:
            with open(os.open(name, _NEW_FILE, 0o600, dir_fd=folder), "wb") as file:  # noqa: PTH123  # a descriptor
                try:
                    return _copy(file, entry, pieces)
                except BaseException:
                    os.unlink(name, dir_fd=folder)
                    raise
        finally:
            os.close(folder)

    def _folder(self, names: list[str]) -> int:
        """A handle of a folder below the target, made where it is missing."""
        here = os.dup(self._root)
        for name in names:
            try:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=here)
                below = os.open(name, _DIRECTORY, dir_fd=here)
            finally:
                os.close(here)
            here = below
        return here


def _copy(file: BinaryIO, entry: TreeEntry, pieces: Iterable[bytes]) -> int:
    size, digest = 0, hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
        size += file.write(piece)
    file.flush()
    if f"sha256:{digest.hexdigest()}" != entry.digest:
        raise ContentMismatch(f"the received content has the hash sha256:{digest.hexdigest()}, not {entry.digest}")
    os.fchmod(file.fileno(), NEW_MODE if entry.mode is None else int(entry.mode, 8))
    return size


def _check_outside(settings: Settings, place: Path) -> None:
    """By (device, inode) of every folder above, so that no other spelling or mount of either passes."""
    kept = {_identity(Path(settings.root)): f"the workspace, {settings.root}"}
    kept[_identity(Path(settings.state_directory))] = f"the state directory, {settings.state_directory}"
    for folder in (place.resolve(), *place.resolve().parents):
        inside = kept.get(found) if (found := _identity(folder)) is not None else None
        if inside is not None:
            raise OutputPathRefused(f"{escaped(str(place))} is inside of {inside}")


def _identity(folder: Path) -> tuple[int, int] | None:
    """None: it is not there. Raises OutputPathRefused where that can't be found out."""
    try:
        found = folder.stat()
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise OutputPathRefused(f"{folder} can't be used: {error.strerror}") from error
    return found.st_dev, found.st_ino
