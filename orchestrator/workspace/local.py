"""The workspace on this machine's disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress

from orchestrator.core.content import digest_of
from orchestrator.core.errors import ChangedWhileRead, FileNotFound, FileTooLarge, escaped
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import valid_name
from orchestrator.ports import (
    Disk,
    DiskChange,
    FileBytes,
    FileStat,
    ListedName,
    ScanResult,
    Step,
    TempFile,
)
from orchestrator.workspace.confine import Confinement, Identity, kind_of, stat_of, translated
from orchestrator.workspace.ignore import IgnoreRules, is_temp
from orchestrator.workspace.landing import BLOCK_BYTES, LocalLanding
from orchestrator.workspace.scanner import Scanner

READ_TRIES = 3


class LocalWorkspace:
    """See `ports.Workspace`."""

    def __init__(
        self,
        root: str,
        *,
        disk: Disk,
        hidden: frozenset[Identity] = frozenset(),
        is_own: Callable[[Identity], bool] = lambda identity: False,
        step: Step = lambda name: None,
    ) -> None:
        self._root = os.path.realpath(root)
        self._at = Confinement(self._root, disk, hidden=hidden, is_own=is_own)
        self._disk, self._step = disk, step
        self.ignore = IgnoreRules(self._at)
        self._scanner = Scanner(self._at, self.ignore, uid=os.getuid())

    @property
    def root(self) -> str:
        return self._root

    @property
    def features(self) -> tuple[str, ...]:
        """What is degraded here, as sentences."""
        return self._disk.features

    def close(self) -> None:
        self._at.close()

    # --- looking ----------------------------------------------------------------------

    def stat(self, path: WorkspacePath) -> FileStat | None:
        if path == ".":
            return stat_of(self._disk.stat(self._at.root))
        try:
            with self._at.parent(path) as (parent, name), translated(path, self._at):
                found = self._disk.stat_at(parent, name)
                target = self._disk.read_link(parent, name) if kind_of(found) == "symlink" else None
        except FileNotFound:
            return None
        return None if self._at.hides(found) else stat_of(found, target)

    def identity(self, path: WorkspacePath) -> Identity | None:
        try:
            with self._at.parent(path) as (parent, name), translated(path, self._at):
                found = self._disk.stat_at(parent, name)
        except FileNotFound:
            return None
        return found.st_dev, found.st_ino

    def read(self, path: WorkspacePath, *, most: int) -> FileBytes:
        for _ in range(READ_TRIES):
            with self._at.parent(path) as (parent, name), self._at.regular(parent, name, path) as (handle, found):
                if found.st_size > most:
                    raise FileTooLarge(path, f"it has {found.st_size} bytes; the limit is {most}")
                with translated(path):
                    data = self._whole(path, handle, most)
                    after = self._disk.stat(handle)
                if stat_of(found).signature == stat_of(after).signature and len(data) == after.st_size:
                    return FileBytes(data, stat_of(after), digest_of(data))
        raise ChangedWhileRead(path, "another program keeps writing to it")

    def _whole(self, path: WorkspacePath, handle: int, most: int) -> bytes:
        blocks: list[bytes] = []
        at = 0
        while block := self._disk.read(handle, BLOCK_BYTES, at):
            blocks.append(block)
            at += len(block)
            if at > most:
                raise FileTooLarge(path, f"it grew over the limit of {most} bytes while it was read")
        return b"".join(blocks)

    def names(self, path: WorkspacePath) -> list[ListedName]:
        listed = []
        with self._at.directory(path) as handle, translated(path):
            for name in self._disk.names(handle):
                if is_temp(name):
                    continue
                with suppress(FileNotFoundError):
                    found = self._disk.stat_at(handle, name)
                    if self._at.hides(found):
                        continue
                    target = self._disk.read_link(handle, name) if kind_of(found) == "symlink" else None
                    valid = valid_name(name)
                    listed.append(ListedName(name if valid else escaped(name), valid, stat_of(found, target)))
        return listed

    def scan(self) -> ScanResult:
        self.ignore.refresh()
        return self._scanner.scan()

    # --- changing ---------------------------------------------------------------------

    def landing(self, change: DiskChange) -> LocalLanding:
        return LocalLanding(self._at, change, self._step)

    # --- recovery ---------------------------------------------------------------------

    def temps(self) -> list[TempFile]:
        return self._scanner.temps()

    def read_temp(self, temp: TempFile) -> FileBytes | None:
        try:
            return self.read(temp.path, most=2**40)
        except FileNotFound:
            return None

    def in_use(self, temp: TempFile) -> bool:
        try:
            with self._at.parent(temp.path) as (parent, name), self._at.regular(parent, name, temp.path) as (handle, _):
                self._disk.take_lease(handle)
        except FileNotFound:
            return False
        except OSError as error:
            if error.errno != errno.EAGAIN:
                raise
            return True
        return False

    def unlink_temp(self, temp: TempFile) -> None:
        with self._at.parent(temp.path) as (parent, name), translated(temp.path):
            with suppress(FileNotFoundError):
                self._disk.unlink_at(parent, name)
            self._disk.sync(parent)

    def exchange_back(self, temp: TempFile, path: WorkspacePath) -> None:
        with self._at.parent(path) as (parent, name), translated(path):
            try:
                self._disk.stat_at(parent, name)
            except FileNotFoundError:
                self._disk.rename(parent, temp.name, parent, name, "noreplace")
            else:
                self._disk.rename(parent, temp.name, parent, name, "exchange")
            self._disk.sync(parent)

    def sync_directory(self, path: WorkspacePath) -> None:
        with self._at.parent(path) as (parent, _), translated(path):
            self._disk.sync(parent)
