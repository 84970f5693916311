"""The workspace on this machine's disk."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import groupby
from typing import TypeVar

from orchestrator.core.content import digest_of
from orchestrator.core.errors import (
    ChangedWhileRead,
    FileBusy,
    FileNotFound,
    FileTooLarge,
    NotAFile,
    NotARegularFile,
    OrchestratorError,
    PathError,
    SymlinkRefused,
    escaped,
)
from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.name_index import line_of
from orchestrator.core.paths import valid_name
from orchestrator.ports.machine import Step
from orchestrator.ports.workspace import (
    DiskChange,
    FileBytes,
    FileStat,
    Known,
    ListedName,
    Scanned,
    ScanResult,
    Watcher,
)
from orchestrator.workspace.atomic_write import LocalAtomicWrite
from orchestrator.workspace.change_threads import ChangeThreads
from orchestrator.workspace.confine import BLOCK_BYTES, Confinement, blocks_of, translated
from orchestrator.workspace.disk import Disk, identity_of, kind_of, signature_of, stat_of
from orchestrator.workspace.ignore import IgnoreRules, is_temp
from orchestrator.workspace.notifier import FilesWatcher
from orchestrator.workspace.own_files import OwnFiles
from orchestrator.workspace.pieces import LocalPieces
from orchestrator.workspace.ripgrep import Ripgrep
from orchestrator.workspace.temporary_file import sync
from orchestrator.workspace.watcher import InotifyWatcher

T = TypeVar("T")

READ_TRIES = 3
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class LocalWorkspace:
    """See `ports.Workspace`.

    `own`: the daemon's files, which are as if absent. `uid`: whose leftovers are ours.
    """

    def __init__(
        self,
        root: str,
        *,
        disk: Disk,
        own: OwnFiles | None = None,
        uid: int | None = None,
        step: Step = lambda name: None,
    ) -> None:
        self.root = os.path.realpath(root)
        self._at = Confinement(self.root, disk, own=own)
        self._disk, self._step = disk, step
        self._identity = identity_of(disk.stat(self._at.root))
        self._uid = os.getuid() if uid is None else uid
        self._threads = ChangeThreads(self._at.root)
        self.ignore = IgnoreRules(self._at)

    @property
    def landlock(self) -> str:
        """Whether the kernel keeps changes below the root besides us: "on", or "off: …" with the reason."""
        return self._threads.landlock

    @property
    def features(self) -> tuple[str, ...]:
        """What is degraded here, as sentences; some is only learned when it is first tried."""
        return self._disk.degraded

    def close(self) -> None:
        self._threads.close()
        self._at.close()

    def sweep(self) -> Ripgrep:
        """Chooses files by what is in them."""
        return Ripgrep(self.root, self._at.root)

    def watcher(self) -> Watcher:
        """Reports external changes on this system; not started yet."""
        if sys.platform == "linux":
            return InotifyWatcher(self._at, self.ignore)
        return FilesWatcher(self.root)

    # --- looking ----------------------------------------------------------------------

    def in_place(self) -> bool:
        try:
            return identity_of(self._disk.stat_root(self.root)) == self._identity
        except OSError as error:
            return error.errno not in _GONE  # what can't be looked at is no other one for that

    def stat(self, path: WorkspacePath) -> FileStat | None:
        if path == ".":
            return stat_of(self._disk.stat(self._at.root))
        try:
            with self._at.parent(path) as (parent, name), translated(path):
                return self._stat_in(parent, name)
        except FileNotFound:
            return None

    def stats(self, paths: Sequence[WorkspacePath]) -> list[FileStat | None]:
        found: list[FileStat | None] = []
        for folder, names in groupby((path.rpartition("/") for path in paths), key=lambda parts: parts[0]):
            known: list[FileStat | None] = []
            wanted = [name for _, _, name in names]
            with suppress(PathError), self._at.directory(WorkspacePath(folder or ".")) as handle:
                for name in wanted:
                    try:
                        known.append(self._stat_in(handle, name))
                    except OSError:
                        known.append(None)
            found += known or [None] * len(wanted)
        return found

    def _stat_in(self, directory: int, name: str) -> FileStat | None:
        """None for what is the daemon's own."""
        found = self._disk.stat_at(directory, name)
        target = self._disk.read_link(directory, name) if kind_of(found) == "symlink" else None
        return None if self._at.hides(found) else stat_of(found, target)

    def read(self, path: WorkspacePath, *, most: int, growing: bool = False) -> FileBytes:
        for _ in range(READ_TRIES):
            handle, found = self._at.open_file(path)
            try:
                if found.st_size > most:
                    raise FileTooLarge(path, f"it has {found.st_size} bytes; the limit is {most}")
                with translated(path):
                    data = self._first(handle, found.st_size)
                    after = self._disk.stat(handle)
                if signature_of(found) == signature_of(after) and len(data) == after.st_size:
                    return FileBytes(data, stat_of(after), digest_of(data))
                if growing and len(data) == found.st_size < after.st_size and self._begins(path, handle, data):
                    return FileBytes(data, stat_of(found), digest_of(data))
            finally:
                self._disk.close(handle)
        raise ChangedWhileRead(path, "another program keeps writing to it")

    def _first(self, handle: int, size: int) -> bytes:
        """So many bytes of a file, in one call where it is small; fewer if it was cut."""
        data = self._disk.read(handle, min(size, BLOCK_BYTES), 0)
        if len(data) == size:
            return data
        pieces = bytearray(data)
        while len(pieces) < size:
            block = self._disk.read(handle, min(size - len(pieces), BLOCK_BYTES), len(pieces))
            if not block:
                break
            pieces += block
        return bytes(pieces)

    def _begins(self, path: WorkspacePath, handle: int, first: bytes) -> bool:
        """Whether an open file still begins as it was read."""
        at = 0
        with translated(path):
            for block in blocks_of(self._disk, handle):
                if not block.startswith(first[at : at + len(block)]):
                    return False
                if (at := at + len(block)) >= len(first):
                    return True
        return not first

    def hash(self, path: WorkspacePath, *, most: int) -> tuple[Digest, FileStat]:
        for _ in range(READ_TRIES):
            with closing(self.pieces(path)) as pieces:
                size = pieces.stat.signature.size
                if size > most:
                    raise FileTooLarge(path, f"it has {size} bytes; the limit is {most}")
                digest = pieces.digest()
                if pieces.stat_now() == pieces.stat:
                    return digest, pieces.stat
        raise ChangedWhileRead(path, "another program keeps writing to it")

    def pieces(self, path: WorkspacePath) -> LocalPieces:
        return LocalPieces(self._at, self._disk, path)

    def names(self, path: WorkspacePath) -> list[ListedName]:
        listed = []
        with self._at.directory(path) as handle, translated(path):
            for name in self._disk.names(handle):
                with suppress(FileNotFoundError):
                    if not is_temp(name) and (found := self._stat_in(handle, name)) is not None:
                        valid = valid_name(name)
                        listed.append(ListedName(name if valid else escaped(name), valid, found))
        return listed

    def scan(self, known: Known = lambda path, signature, mode: False) -> ScanResult:
        self.ignore.refresh()
        files: list[Scanned] = []
        lines: list[str] = []
        invalid: set[str] = set()
        skipped: Counter[str] = Counter()

        def take(folder: str, handle: int) -> Iterator[str]:
            above, rules = f"{folder}/" if folder else "", self.ignore.folder(folder, handle)
            with self._disk.entries(handle) as entries:
                for entry in entries:
                    try:
                        name, found = entry.name, entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    if self._at.hides(found):
                        continue
                    mode, is_directory = stat.S_IMODE(found.st_mode), stat.S_ISDIR(found.st_mode)
                    if not valid_name(name):
                        skipped["names that break the name rule"] += 1
                        invalid.add(line_of(above + escaped(name), "invalid"))
                    elif rules.ignores(name, directory=is_directory):
                        continue
                    elif found.st_dev != self._at.device:
                        skipped["on another file system"] += 1
                        lines.append(line_of(above + name, "directory" if is_directory else "other"))
                    elif is_directory:
                        lines.append(line_of(above + name, "directory"))
                        yield above + name
                    elif not stat.S_ISREG(found.st_mode):
                        lines.append(line_of(above + name, "other"))
                    else:
                        path, signature = WorkspacePath(above + name), signature_of(found)
                        lines.append(path)
                        if not known(path, signature, mode):
                            files.append(Scanned(path, signature, mode))

        self._walk(take, skipped)
        self.ignore.refresh()  # what it holds of each directory would keep the memory of the walk from being given back
        lines += invalid
        lines.sort()
        files.sort(key=lambda item: item.path)
        return ScanResult(tuple(files), dict(skipped), lines)

    # --- changing ---------------------------------------------------------------------

    def atomic_write(self, change: DiskChange) -> LocalAtomicWrite:
        return LocalAtomicWrite(self._at, change, self._step)

    async def off_loop(self, work: Callable[[], T]) -> T:
        return await self._threads.run(work)

    # --- recovery ---------------------------------------------------------------------

    def temps(self) -> list[WorkspacePath]:
        """Regular files of our uid with our prefix, anywhere in the tree, ignored directories too."""
        leftovers: list[WorkspacePath] = []

        def take(folder: str, handle: int) -> Iterator[str]:
            above = f"{folder}/" if folder else ""
            with self._disk.entries(handle) as entries:
                for entry in entries:
                    name = entry.name
                    if entry.is_dir(follow_symlinks=False):
                        if name != ".git" and valid_name(name):
                            yield above + name
                    elif is_temp(name):
                        path = WorkspacePath(above + name)
                        with suppress(FileNotFoundError):
                            found = self._stat_in(handle, name)
                            if found is not None and found.device == self._at.device and self._is_ours(path, found):
                                leftovers.append(path)

        self._walk(take, Counter())
        return leftovers

    def _walk(self, take: Callable[[str, int], Iterator[str]], skipped: Counter[str]) -> None:
        """From the root (`""`) on, into every directory that `take` yields, which gets the handle of each."""
        pending = [""]
        while pending:
            folder = pending.pop()
            try:
                handle = self._at.open_directory(WorkspacePath(folder or "."))
            except FileNotFound:
                continue  # gone since its parent was read
            except OrchestratorError:
                skipped["directories that can't be read"] += 1
                continue
            try:
                pending.extend(take(folder, handle))
            except OSError:
                skipped["directories that can't be read"] += 1
            finally:
                self._disk.close(handle)

    def read_temp(self, temp: WorkspacePath, *, most: int) -> FileBytes | None:
        found = self.stat(temp)
        if found is None or not self._is_ours(temp, found):
            return None
        try:
            read = self.read(temp, most=most)
        except (FileNotFound, SymlinkRefused, NotAFile, NotARegularFile):
            return None
        return read if self._is_ours(temp, read.stat) else None

    def in_use(self, temp: WorkspacePath) -> bool:
        try:
            with self._at.parent(temp) as (parent, name), self._at.regular(parent, name, temp) as (handle, _):
                self._at.take_lease(handle, temp)
        except FileNotFound:
            return False
        except FileBusy:
            return True
        return False

    def unlink_temp(self, temp: WorkspacePath) -> None:
        try:
            with self._at.parent(temp) as (parent, name), translated(temp):
                found = stat_of(self._disk.stat_at(parent, name))
                if self._is_ours(temp, found):
                    self._disk.unlink_at(parent, name)
                sync(self._disk, parent, temp)
        except FileNotFound:
            return

    def _is_ours(self, temp: WorkspacePath, found: FileStat) -> bool:
        return is_temp(temp.rpartition("/")[2]) and found.kind == "file" and found.uid == self._uid

    def exchange_back(self, temp: WorkspacePath, path: WorkspacePath) -> None:
        old = temp.rpartition("/")[2]
        with self._at.parent(path) as (parent, name), translated(path):
            try:
                self._disk.stat_at(parent, name)
            except FileNotFoundError:
                self._disk.rename(parent, old, parent, name, "noreplace")
            else:
                self._disk.rename(parent, old, parent, name, "exchange")
            sync(self._disk, parent, path)

    def remove_empty(self, path: WorkspacePath, *, below: bool = True) -> None:
        stat = self.stat(path)
        if stat is None or stat.kind != "directory":
            return
        with suppress(PathError):
            for listed in self.names(path) if below else ():
                if listed.valid and listed.stat.kind == "directory":
                    self.remove_empty(WorkspacePath(f"{path}/{listed.name}"))
        with self._at.parent(path) as (above, name), translated(path):
            try:
                self._disk.remove_directory(above, name)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                    raise
            else:
                sync(self._disk, above, path)

    def sync_directory(self, path: WorkspacePath) -> None:
        with self._at.parent(path) as (parent, _), translated(path):
            sync(self._disk, parent, path)
