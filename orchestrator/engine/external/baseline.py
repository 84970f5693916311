"""The start scan: what the disk holds against what the journal says; and the background one, which keeps contents."""

from __future__ import annotations

from functools import partial

import anyio
from anyio import to_thread

from orchestrator.core.content import FoundFile
from orchestrator.core.errors import PathError
from orchestrator.core.events.base import Origin
from orchestrator.core.events.files import FilesFound
from orchestrator.core.ids import WorkspacePath
from orchestrator.engine.external.batch_import import FOUND_STREAM, BatchImporter
from orchestrator.engine.external.observer import Observer
from orchestrator.engine.services import Services
from orchestrator.ports.journal import AppendBatch, NewEvent
from orchestrator.ports.workspace import FileBytes, Scanned

ENTRIES = 500
"""Files in one FilesFound at most."""

BATCH_BYTES = 8 * 1024 * 1024
"""Contents that the background scan keeps in one transaction at most."""


class Baseline:
    """Makes the journal know every file that is not ignored."""

    def __init__(self, services: Services, observer: Observer, importer: BatchImporter) -> None:
        self._s, self._observer, self._importer = services, observer, importer
        self.done = anyio.Event()
        self.skipped: dict[str, int] = {}

    async def scan(self) -> None:
        """Before the daemon listens: new files are found; changed and missing ones become one external batch."""
        first = self._s.state.head == 0 or len(self._s.state.registry) == 0
        result = await to_thread.run_sync(self._s.workspace.scan)
        self.skipped = result.skipped
        if first:
            await self._find(result.files)
        self._observer.scanned = True
        if not first:
            group = self._importer.batch("scan")
            await self._importer.import_scan(result, group)
            await group.close()

    async def _look(self, path: WorkspacePath) -> None:
        async with self._s.locks.alone((path,)):
            try:
                await self._observer.refresh(path, content=False)
            except PathError:
                return  # unreadable now; it is looked at again when somebody touches it

    async def _find(self, files: tuple[Scanned, ...]) -> None:
        for start in range(0, len(files), ENTRIES):
            chunk = files[start : start + ENTRIES]
            entries = tuple(FoundFile(item.path, item.signature, item.mode) for item in chunk)
            await self._s.notes.append(Origin(), (FOUND_STREAM, FilesFound(entries=entries)))

    async def keep(self) -> None:
        """In the background: hash what is not hashed, and keep contents up to the policy's `keep_max_bytes`.

        Not of what everybody is denied to read: that is kept where it is to be changed.
        """
        try:
            await self._keep()
        finally:
            self.done.set()

    async def _keep(self) -> None:
        most = self._s.permissions.policy.external.keep_max_bytes
        wanted = [
            entry.path
            for entry in self._s.state.registry.files()
            if (entry.digest is None or not entry.kept)
            and entry.signature is not None
            and entry.signature.size <= most
            and not self._s.permissions.hidden_from_all(entry.path)
        ]
        batch: list[tuple[FoundFile, FileBytes]] = []
        size = 0
        for path in wanted:
            read = await self._read(path)
            if read is not None:
                batch.append(read)
                size += len(read[1].data)
            if size >= BATCH_BYTES or len(batch) >= ENTRIES:
                await self._append(batch)
                batch, size = [], 0
        if batch:
            await self._append(batch)

    async def _read(self, path: WorkspacePath) -> tuple[FoundFile, FileBytes] | None:
        """A file that is still what the registry says; one that is not is looked at instead."""
        most = self._s.permissions.policy.external.keep_max_bytes
        try:
            read = await to_thread.run_sync(partial(self._s.workspace.read, path, most=most))
        except PathError:
            await self._look(path)
            return None
        entry = self._s.state.registry.get(path)
        if entry is None or entry.signature != read.stat.signature or entry.digest not in (None, read.digest):
            await self._look(path)
            return None
        if entry.digest is not None and entry.kept:
            return None
        found = FoundFile(path, read.stat.signature, read.stat.mode, read.digest, True, int(entry.version))
        return found, read

    async def _append(self, batch: list[tuple[FoundFile, FileBytes]]) -> None:
        """Only what still holds: a change may have come between the read and now."""
        entries = self._s.state.registry
        current = [
            (found, read)
            for found, read in batch
            if (entry := entries.get(found.path)) is not None
            and (entry.version, entry.signature) == (found.version, found.signature)
        ]
        if not current:
            return
        event = FilesFound(entries=tuple(found for found, _ in current))
        blobs = tuple((read.digest, read.data) for _, read in current)
        await self._s.journal.append(AppendBatch((NewEvent(FOUND_STREAM, event),), Origin(), blobs))
