"""Walks the whole tree by directory handles: every file that is not ignored, and every leftover of ours."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

from orchestrator.core.errors import FileNotFound, OrchestratorError
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import valid_name
from orchestrator.ports import Ignore, Scanned, ScanResult, TempFile
from orchestrator.workspace.confine import Confinement, kind_of, signature_of
from orchestrator.workspace.ignore import is_temp

_MODE_BITS = 0o7777


class Scanner:
    """Does not follow links, leave the file system, or enter what is the daemon's own."""

    def __init__(self, confinement: Confinement, ignore: Ignore, *, uid: int) -> None:
        self._at, self._ignore, self._uid = confinement, ignore, uid

    def scan(self) -> ScanResult:
        """The files in path order, and how many names were left out, by reason."""
        files: list[Scanned] = []
        skipped: Counter[str] = Counter()
        pending = [WorkspacePath(".")]
        device = self._at.disk.stat(self._at.root).st_dev
        while pending:
            directory = pending.pop()
            for name, found in self._entries(directory, skipped):
                path = WorkspacePath(name if directory == "." else f"{directory}/{name}")
                kind = kind_of(found)
                if not valid_name(name):
                    skipped["names that break the name rule"] += 1
                elif self._ignore.ignored(path, directory=kind == "directory"):
                    skipped["ignored"] += 1
                elif kind == "symlink":
                    skipped["symbolic links"] += 1
                elif kind == "other":
                    skipped["devices, sockets and pipes"] += 1
                elif found.st_dev != device:
                    skipped["on another file system"] += 1
                elif kind == "directory":
                    pending.append(path)
                else:
                    files.append(Scanned(path, signature_of(found), found.st_mode & _MODE_BITS))
        return ScanResult(tuple(sorted(files, key=lambda item: item.path)), dict(skipped))

    def temps(self) -> list[TempFile]:
        """Regular files of our uid with our prefix, anywhere in the tree, ignored directories too."""
        found_temps: list[TempFile] = []
        pending = [WorkspacePath(".")]
        device = self._at.disk.stat(self._at.root).st_dev
        while pending:
            directory = pending.pop()
            for name, found in self._entries(directory, Counter()):
                path = WorkspacePath(name if directory == "." else f"{directory}/{name}")
                kind = kind_of(found)
                if kind == "directory" and name != ".git" and found.st_dev == device and valid_name(name):
                    pending.append(path)
                elif kind == "file" and is_temp(name) and found.st_uid == self._uid:
                    found_temps.append(TempFile(path, name))
        return found_temps

    def _entries(self, directory: WorkspacePath, skipped: Counter[str]) -> Iterator[tuple[str, os.stat_result]]:
        try:
            with self._at.directory(directory) as handle:
                for name in self._at.disk.names(handle):
                    try:
                        found = self._at.disk.stat_at(handle, name)
                    except FileNotFoundError:
                        continue
                    if not self._at.hides(found):
                        yield name, found
        except FileNotFound:
            return
        except OrchestratorError:
            skipped["directories that can't be opened"] += 1
