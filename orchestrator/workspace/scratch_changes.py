"""What a command made of a scratch tree, found by looking at it. No link is followed, whatever the command made."""

from __future__ import annotations

import os
import stat
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property

from orchestrator.core.errors import PathError, escaped
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import valid_name
from orchestrator.ports.commands import ScratchChange, ScratchChanges
from orchestrator.ports.workspace import Ignore
from orchestrator.workspace.confine import Confinement, blocks_of, digest_from
from orchestrator.workspace.disk import kind_of, signature_of
from orchestrator.workspace.overlay import OPAQUE, WHITEOUT
from orchestrator.workspace.tree_copy import Copied, folders_of


class Comparison:
    """What is in a folder by now against what was copied there."""

    def __init__(
        self,
        files: Mapping[str, Copied],
        links: Mapping[str, str],
        at: Confinement,
        ignore: Ignore,
        *,
        most_bytes: int,
    ) -> None:
        self._copied, self._links, self._at, self._ignore = files, links, at, ignore
        self._left_bytes = most_bytes
        self._seen: set[str] = set()
        self._closed: list[str] = []  # folders that can't be read: nothing is known of what was copied there
        self._changed: list[ScratchChange] = []
        self._left_out: list[tuple[str, str]] = []

    def changes(self) -> ScratchChanges:
        """In a thread. Raises OSError where the disk fails."""
        pending = [""]
        while pending:
            folder = pending.pop()
            try:
                with self._at.directory(WorkspacePath(folder or ".")) as handle:
                    self._enter(handle, folder)
                    for name in self._at.disk.names(handle):
                        path = f"{folder}/{name}" if folder else name
                        if self._look(handle, name, path):
                            pending.append(path)
            except PathError as error:
                self._leave_out(folder or ".", error.message)
                self._closed.append(f"{folder}/" if folder else "")
        closed = tuple(self._closed)
        for path in self._removed():
            if path in self._seen or path.startswith(closed):
                continue
            if path in self._copied:
                self._changed.append(_deleted(path, self._copied[path]))
            else:
                self._leave_out(path, "a symbolic link that was removed")
        self._changed.sort(key=lambda change: change.path)
        return ScratchChanges(tuple(self._changed), tuple(sorted(self._left_out)))

    def _removed(self) -> Iterable[str]:
        """What was copied and may be gone: all of it that was not seen."""
        return self._copied.keys() | self._links.keys()

    def _enter(self, handle: int, folder: str) -> None:
        """A directory, before the names in it are looked at."""

    def _look(self, handle: int, name: str, path: str) -> bool:
        """Whether it is a directory to go into."""
        return self._take(handle, name, path, self._at.disk.stat_at(handle, name))

    def _take(self, handle: int, name: str, path: str, found: os.stat_result) -> bool:
        kind = kind_of(found)
        if kind != "directory":
            self._seen.add(path)
        if not valid_name(name):
            self._leave_out(path, "its name breaks the name rule")
        elif kind == "directory":
            return not self._ignored(path, directory=True) or path in self._folders
        elif kind == "symlink":
            if self._at.disk.read_link(handle, name) != self._links.get(path) and not self._ignored(path):
                self._leave_out(path, "a symbolic link")
        elif path not in self._copied and self._ignored(path):
            pass
        elif kind != "file":
            self._leave_out(path, "a device, socket or pipe")
        else:
            self._compare(handle, name, WorkspacePath(path), found)
        return False

    def _compare(self, handle: int, name: str, path: WorkspacePath, found: os.stat_result) -> None:
        copied, mode = self._copied.get(path), stat.S_IMODE(found.st_mode)
        if copied is not None and (copied.signature, copied.mode) == (signature_of(found), mode):
            return
        try:
            with self._at.regular(handle, name, path) as (file, opened):
                size = opened.st_size
                if copied is not None and copied.mode == mode and digest_from(self._at.disk, file) == copied.digest:
                    return
                if size > self._left_bytes:
                    self._leave_out(path, f"its {size} bytes are more than what may come back")
                    return
                content = b"".join(blocks_of(self._at.disk, file))
        except PathError as error:
            self._leave_out(path, error.message)
            return
        self._left_bytes -= len(content)
        before = None if copied is None else copied.digest
        self._changed.append(ScratchChange(path=path, before=before, content=content, mode=mode))

    def _ignored(self, path: str, *, directory: bool = False) -> bool:
        return self._ignore.ignored(WorkspacePath(path), directory=directory)

    @cached_property
    def _folders(self) -> set[str]:
        """Of what was copied."""
        return folders_of(self._copied)

    def _leave_out(self, path: str, why: str) -> None:
        self._left_out.append((escaped(path), why))


def _deleted(path: str, copied: Copied) -> ScratchChange:
    return ScratchChange(path=WorkspacePath(path), before=copied.digest, content=None, mode=None)


class UpperComparison(Comparison):
    """The same from the upper layer of an overlay, where nothing is but what the command changed.

    A whiteout is what it removed. An opaque directory has none of what was copied there but what is in it, nor has
    what is no directory any more.
    """

    def __init__(
        self,
        files: Mapping[str, Copied],
        links: Mapping[str, str],
        at: Confinement,
        ignore: Ignore,
        *,
        most_bytes: int,
    ) -> None:
        super().__init__(files, links, at, ignore, most_bytes=most_bytes)
        self._replaced: list[str] = []  # with all that was copied below
        self._now_folders: list[str] = []

    def _removed(self) -> set[str]:
        copied = sorted(self._copied.keys() | self._links.keys())
        removed = {path for path in self._now_folders if path in self._copied or path in self._links}
        for path in self._replaced:
            if path in self._copied or path in self._links:
                removed.add(path)
            else:  # all that lies below it: "0" follows "/"
                removed.update(copied[bisect_left(copied, f"{path}/") : bisect_left(copied, f"{path}0")])
        return removed

    def _enter(self, handle: int, folder: str) -> None:
        with suppress(OSError):
            if os.getxattr(handle, OPAQUE) == b"y":
                self._replaced.append(folder)

    def _take(self, handle: int, name: str, path: str, found: os.stat_result) -> bool:
        if stat.S_ISDIR(found.st_mode):
            self._now_folders.append(path)
        else:
            self._replaced.append(path)
            if stat.S_ISCHR(found.st_mode) and found.st_rdev == WHITEOUT:
                return False
        return super()._take(handle, name, path, found)
