"""Scans the whole tree: files that are not ignored, and leftover temporary files."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress

from orchestrator.core.errors import FileNotFound, OrchestratorError
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import valid_name
from orchestrator.ports.workspace import Scanned, ScanResult, TempFile
from orchestrator.workspace.confine import Confinement, signature_of
from orchestrator.workspace.ignore import IgnoreRules, is_temp


class Scanner:
    """Does not follow links, leave the file system, or enter what is the daemon's own."""

    def __init__(self, confinement: Confinement, ignore: IgnoreRules, *, uid: int) -> None:
        self._at, self._ignore, self._uid = confinement, ignore, uid

    def scan(self) -> ScanResult:
        """The files in path order, and how many names were left out, by reason."""
        files: list[Scanned] = []
        skipped: Counter[str] = Counter()

        def take(folder: str) -> Iterator[str]:
            rules = self._ignore.folder(folder)
            for name, path, found in self._entries(folder, skipped):
                mode = found.st_mode
                if not valid_name(name):
                    skipped["names that break the name rule"] += 1
                elif rules.ignores(name, directory=stat.S_ISDIR(mode)):
                    skipped["ignored"] += 1
                elif stat.S_ISLNK(mode):
                    skipped["symbolic links"] += 1
                elif found.st_dev != self._at.device:
                    skipped["on another file system"] += 1
                elif stat.S_ISDIR(mode):
                    yield path
                elif stat.S_ISREG(mode):
                    files.append(Scanned(WorkspacePath(path), signature_of(found), stat.S_IMODE(mode)))
                else:
                    skipped["devices, sockets and pipes"] += 1

        self._walk(take)
        files.sort(key=lambda item: item.path)
        return ScanResult(tuple(files), dict(skipped))

    def temps(self) -> list[TempFile]:
        """Regular files of our uid with our prefix, anywhere in the tree, ignored directories too."""
        leftovers: list[TempFile] = []

        def take(folder: str) -> Iterator[str]:
            for name, path, found in self._entries(folder, Counter()):
                if found.st_dev != self._at.device:
                    continue
                if stat.S_ISDIR(found.st_mode):
                    if name != ".git" and valid_name(name):
                        yield path
                elif is_temp(name) and stat.S_ISREG(found.st_mode) and found.st_uid == self._uid:
                    leftovers.append(TempFile(WorkspacePath(path), name))

        self._walk(take)
        return leftovers

    @staticmethod
    def _walk(take: Callable[[str], Iterator[str]]) -> None:
        """From the root (`""`) on, into every directory that `take` yields."""
        pending = [""]
        while pending:
            pending.extend(take(pending.pop()))

    def _entries(self, folder: str, skipped: Counter[str]) -> Iterator[tuple[str, str, os.stat_result]]:
        prefix = f"{folder}/" if folder else ""
        stat_at, hides = self._at.disk.stat_at, self._at.hides
        try:
            with self._at.directory(WorkspacePath(folder or ".")) as handle:
                for name in self._at.disk.names(handle):
                    with suppress(FileNotFoundError):
                        found = stat_at(handle, name)
                        if not hides(found):
                            yield name, prefix + name, found
        except FileNotFound:
            return  # gone since its parent was read
        except (OrchestratorError, OSError):
            skipped["directories that can't be read"] += 1
