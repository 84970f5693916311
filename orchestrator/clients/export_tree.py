"""Writing an earlier tree into a folder of its own, outside of the workspace."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestrator.api import time_travel as t
from orchestrator.core.errors import CallerError

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
NEW_MODE = 0o644
"""For versions whose mode the journal did not learn."""


class TargetRefused(CallerError):
    """A tree is only rebuilt into an empty or new folder outside of the workspace and of the state directory."""

    code = "target_refused"
    hint = "Name a new folder, or an empty one, outside of the workspace and of the state directory."


class NotWhole(Exception):
    """What came is not what the tree names."""


class Target:
    """The folder that a tree is rebuilt into. Nothing in it is overwritten, no link in it followed."""

    def __init__(self, into: Path, root: int) -> None:
        self.path, self._root = into, root

    @classmethod
    @contextmanager
    def opened(cls, into: Path, *, workspace: str, state_dir: str) -> Iterator[Target]:
        """Make the folder, or take an empty one. Raises TargetRefused."""
        into = Path(os.path.abspath(into))  # noqa: PTH100  # `resolve` would follow a link at the end
        _check_outside(into, workspace, state_dir)
        try:
            into.mkdir(parents=True, exist_ok=True)
            root = os.open(into, _DIRECTORY)
        except OSError as error:
            raise TargetRefused(f"{into} can't be used: {error.strerror}") from error
        try:
            _check_outside(into, workspace, state_dir)
            if os.listdir(root):
                raise TargetRefused(f"{into} is not empty")
            yield cls(into, root)
        finally:
            os.close(root)

    def write(self, entry: t.TreeEntry, pieces: Iterable[bytes]) -> int:
        """Write one file, give it its mode, and prove its content; how many bytes it has.

        Raises NotWhole (nothing stands there then), OSError.
        """
        *folders, name = entry.path.split("/")
        if not {*folders, name}.isdisjoint(("", ".", "..")):
            raise NotWhole("it is no path of a workspace")
        folder = self._folder(folders)
        try:
            handle = os.open(name, _NEW_FILE, 0o600, dir_fd=folder)
            try:
                size, digest = _written(handle, pieces)
                if f"sha256:{digest}" != entry.digest:
                    raise NotWhole(f"what came has the hash sha256:{digest}, not {entry.digest}")
                os.fchmod(handle, NEW_MODE if entry.mode is None else int(entry.mode, 8))
            except BaseException:
                os.unlink(name, dir_fd=folder)
                raise
            finally:
                os.close(handle)
        finally:
            os.close(folder)
        return size

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


def _written(handle: int, pieces: Iterable[bytes]) -> tuple[int, str]:
    size, digest = 0, hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(handle, rest) :]
    return size, digest.hexdigest()


def _check_outside(into: Path, workspace: str, state_dir: str) -> None:
    """By (device, inode) of every folder above, so that no other spelling or mount of either passes."""
    kept = {_identity(Path(state_dir)): f"the state directory, {state_dir}"}
    kept[_identity(Path(workspace))] = f"the workspace, {workspace}"
    real = into.resolve()
    for folder in (real, *real.parents):
        try:
            found = folder.stat()
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                continue
            raise TargetRefused(f"{into} can't be used: {error.strerror}") from error
        inside = kept.get((found.st_dev, found.st_ino))
        if inside is not None:
            raise TargetRefused(f"{into} is inside of {inside}")


def _identity(folder: Path) -> tuple[int, int] | None:
    """None: it is not there, so nothing is inside of it."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
