"""`orchestrator replay`: rebuilds the tree at a sequence number into a folder, or checks it against the disk."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from orchestrator.api import time_travel as t
from orchestrator.clients.cli.context import Settings, shared, usage
from orchestrator.clients.connection import Connection, RemoteError
from orchestrator.core.errors import CallerError

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
NEW_MODE = 0o644
"""For versions whose mode the journal did not learn."""

_REASONS = {
    "policy": "policy keeps its content from you",
    "not_kept": "its content at that time is not in the journal",
}


class TargetRefused(
    CallerError,
    code="target_refused",
    hint="Name a new folder, or an empty one, outside of the workspace and of the state directory.",
):
    """A tree is only rebuilt into an empty or new folder outside of the workspace and of the state directory."""


class NotWhole(Exception):
    """What came is not what the tree names."""


@click.command()
@click.option("--to", "at", metavar="@N", help="The state to rebuild: @N, or current.")
@click.option("--into", metavar="DIR", type=click.Path(path_type=Path), help="A new or empty folder to write it to.")
@click.option("--check", is_flag=True, help="Rebuild the present from the journal and compare it with the disk.")
@shared
@click.pass_obj
def replay(settings: Settings, *, at: str | None, into: Path | None, check: bool) -> int:
    """Rebuild the tracked files as they were at any point, or check that the journal explains the disk."""
    if check:
        if at is not None or into is not None:
            usage("--check goes alone")
        return settings.run(t.REPLAY_CHECK)
    if at is None or into is None:
        usage("give --to and --into, or --check")
    with settings.connect() as connection:
        return settings.show(_rebuilt(connection, at, into, settings.state_directory))


def _rebuilt(connection: Connection, at: str, into: Path, state_dir: str) -> t.Replayed:
    first = connection.call("tree_at", t.TreeAt(at=at, contents=True), t.Tree)  # a wrong position makes no folder
    left_out: list[t.NotWritten] = []
    files = size = unlisted = 0
    with Target.opened(into, workspace=connection.welcome.workspace, state_dir=state_dir) as target:
        for page in _pages(connection, first):
            unlisted += page.unlisted
            for entry in page.entries:
                try:
                    missed, written = _written(connection, target, entry)
                except OSError as error:
                    raise TargetRefused(
                        f"{entry.path} could not be written into {target.path}: {error.strerror}",
                        hint="Empty the folder and start again.",
                    ) from error
                size += written
                files += missed is None
                left_out += [missed] if missed is not None else []
        return t.Replayed(
            at=first.at,
            into=str(target.path),
            files=files,
            bytes=size,
            complete=not left_out and not unlisted,
            left_out=tuple(left_out),
            unlisted=unlisted,
        )


def _written(connection: Connection, target: Target, entry: t.TreeEntry) -> tuple[t.NotWritten | None, int]:
    """Write one file: why that could not be, or None; and how many bytes. Raises OSError."""
    if entry.left_out is not None:
        return t.NotWritten(path=entry.path, reason=entry.left_out, message=_REASONS[entry.left_out]), 0
    try:
        return None, target.write(entry, _pieces(connection, entry))
    except RemoteError as error:
        reason, message = error.code, error.message
    except NotWhole as error:
        reason, message = "not_whole", str(error)
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        reason, message = "not_portable", "another file of the tree has its name there"
    return t.NotWritten(path=entry.path, reason=reason, message=message), 0


def _pages(connection: Connection, page: t.Tree) -> Iterator[t.Tree]:
    yield page
    while page.cursor is not None:
        page = connection.call("tree_at", t.TreeAt(contents=True, cursor=page.cursor), t.Tree)
        yield page


def _pieces(connection: Connection, entry: t.TreeEntry) -> Iterator[bytes]:
    if entry.data is not None:
        yield entry.data
        return
    offset: int | None = 0
    while offset is not None:
        params = t.ContentAt(path=entry.path, at=entry.version_id, offset=offset)
        piece = connection.call("content_at", params, t.Content)
        yield piece.data
        offset = piece.next


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
        """Write one file, give it its mode, and verify its content; how many bytes it has.

        Raises NotWhole (nothing stands there then), OSError.
        """
        *folders, name = entry.path.split("/")
        if not {*folders, name}.isdisjoint(("", ".", "..")):
            raise NotWhole("it is no path of a workspace")
        folder = self._folder(folders)
        try:
            handle = os.open(name, _NEW_FILE, 0o600, dir_fd=folder)
            try:
                size, digest = _copied(handle, pieces)
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


def _copied(handle: int, pieces: Iterable[bytes]) -> tuple[int, str]:
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
