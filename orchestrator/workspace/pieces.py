"""A file that is read piece by piece, under one handle; never the whole of it in memory."""

from __future__ import annotations

from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.ports.workspace import FileStat
from orchestrator.workspace.confine import Confinement, digest_from, translated
from orchestrator.workspace.disk import Disk, stat_of


class LocalPieces:
    """See `ports.FilePieces`."""

    def __init__(self, at: Confinement, disk: Disk, path: WorkspacePath) -> None:
        self._disk, self._path = disk, path
        self.handle, found = at.open_file(path)
        self.stat = stat_of(found)

    def read(self, at: int, count: int) -> bytes:
        with translated(self._path):
            data = self._disk.read(self.handle, count, at)
            while len(data) < count and (more := self._disk.read(self.handle, count - len(data), at + len(data))):
                data += more
            return data

    def data_from(self, at: int) -> int:
        with translated(self._path):
            return self._disk.data_from(self.handle, at)

    def stat_now(self) -> FileStat:
        with translated(self._path):
            return stat_of(self._disk.stat(self.handle))

    def digest(self) -> Digest:
        """Of the whole file."""
        with translated(self._path):
            return digest_from(self._disk, self.handle)

    def close(self) -> None:
        self._disk.close(self.handle)
