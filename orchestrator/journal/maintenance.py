"""Archives, unarchives, collects and backs up; implements `ports.JournalMaintenance`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
from anyio import CancelScope, to_thread

from orchestrator.api.journal_operations import BackupAnswer
from orchestrator.core.errors import JournalCorrupt, NotLatestSegment, VersionUnknown
from orchestrator.core.events.base import Event, Origin
from orchestrator.core.events.journal_maintenance import ContentsCollected, SegmentArchived, SegmentRestored
from orchestrator.core.ids import Digest, Seq
from orchestrator.core.system_errors import system_trouble
from orchestrator.journal.backup import make_backup
from orchestrator.journal.blobs import Blobs
from orchestrator.journal.database_file import FILE_NAME, naming_trouble, open_reader
from orchestrator.journal.garbage import UnreferencedBlob, named_since, unreferenced_blobs
from orchestrator.journal.segments import ARCHIVE, MOST_EVENTS, Archive, write_segment
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.journal.transaction_hooks import ArchiveEvents, CollectContents, RestoreEvents, TransactionHook
from orchestrator.ports.journal import AppendBatch, NewEvent
from orchestrator.ports.machine import Clock
from orchestrator.ports.maintenance import ArchivedFile, Collected

STREAM = "journal"
MOST_CONTENTS = 500
"""Named by one ContentsCollected."""

T = TypeVar("T")


class SqliteMaintenance:
    """Keeps one open journal."""

    def __init__(self, journal: SqliteJournal, *, clock: Clock, most_events: int = MOST_EVENTS) -> None:
        self._journal, self._clock, self._most = journal, clock, most_events
        self._state_dir = journal.state_dir
        self._folder = journal.state_dir / ARCHIVE
        self._one_at_a_time = anyio.Lock()

    @property
    def archived(self) -> tuple[ArchivedFile, ...]:
        return self._journal.segments

    # --- archiving ----------------------------------------------------------------------

    async def archive(self, last: Seq, origin: Origin) -> tuple[ArchivedFile, ...]:
        made: list[ArchivedFile] = []
        async with self._one_at_a_time:
            while (first := self._next()) <= last:
                end = min(int(last), first + self._most - 1)
                made.append(await self._archive(first, end, origin))
        return tuple(made)

    def _next(self) -> int:
        segments = self._journal.segments
        return segments[-1].last + 1 if segments else 1

    async def _archive(self, first: int, last: int, origin: Origin) -> ArchivedFile:
        head = self._journal.head
        try:
            segment = await self._reading(partial(write_segment, folder=self._folder, first=first, last=last))
        except OSError as error:
            trouble = system_trouble(error, f"nothing was archived in {self._folder}")
            raise trouble or JournalCorrupt(
                f"{self._folder} can't be written: {error.strerror}", hint="Mend the disk."
            ) from error
        event = SegmentArchived(
            first=Seq(first),
            last=Seq(last),
            last_hash=segment.last_hash.hex(),
            file=segment.file,
            digest=segment.digest,
            size=segment.size,
        )
        # From here on readers use the file: it is whole, and says what the rows say until they are gone.
        before = self._journal.segments
        self._journal.segments = (*before, segment)
        try:
            await self._append(event, origin, ArchiveEvents(segment, head))
        except BaseException:
            self._journal.segments = before
            (self._folder / segment.file).unlink(missing_ok=True)  # nothing names it, and what it holds may be redacted
            raise
        return segment

    async def unarchive(self, file: str, origin: Origin) -> ArchivedFile:
        async with self._one_at_a_time:
            segments = self._journal.segments
            found = next((segment for segment in segments if segment.file == Path(file).name), None)
            if found is None:
                raise VersionUnknown(
                    f"no archived segment is called {Path(file).name}",
                    hint=f"They are: {', '.join(segment.file for segment in segments) or 'none'}.",
                )
            if found is not segments[-1]:
                newest = segments[-1].file
                raise NotLatestSegment(f"{found.file} is not the newest segment", hint=f"Bring back {newest} first.")
            rows = await to_thread.run_sync(Archive(self._folder).rows, found)
            event = SegmentRestored(first=Seq(found.first), last=Seq(found.last), file=found.file)
            await self._append(event, origin, RestoreEvents(found, rows))
            self._journal.segments = segments[:-1]
            return found

    # --- collecting ---------------------------------------------------------------------

    async def collect(
        self, *, needed: frozenset[Digest], as_of: Seq, before_ms: int, origin: Origin, dry_run: bool
    ) -> Collected:
        async with self._one_at_a_time:
            found = await self._reading(partial(unreferenced_blobs, needed=needed, as_of=as_of))
            old = sorted((item for item in found if item.last_named < before_ms), key=lambda item: item.digest)
            young = len(found) - len(old)
            gone: list[UnreferencedBlob] = []
            for start in range(0, len(old) if not dry_run else 0, MOST_CONTENTS):
                gone += await self._collect(old[start : start + MOST_CONTENTS], as_of, origin)
            removed = old if dry_run else gone
            return Collected(tuple(item.digest for item in removed), sum(item.size for item in removed), young)

    async def _collect(self, items: list[UnreferencedBlob], as_of: int, origin: Origin) -> list[UnreferencedBlob]:
        named = await self._reading(partial(named_since, seq=as_of))
        items = [item for item in items if item.digest not in named]
        if not items:
            return []
        digests = tuple(item.digest for item in items)
        event = ContentsCollected(digests=digests, bytes=sum(item.size for item in items))
        await self._append(event, origin, CollectContents(digests, as_of, Blobs(self._state_dir)))
        return items

    # --- backing up ---------------------------------------------------------------------

    async def backup(self, directory: str) -> BackupAnswer:
        async with self._one_at_a_time:
            work = partial(make_backup, self._state_dir, Path(directory), made_at=self._clock.now_ms())
            return await to_thread.run_sync(work)

    # --- small things -------------------------------------------------------------------

    async def _append(self, event: Event, origin: Origin, along: TransactionHook) -> None:
        """Appended or not, it is known when this returns: what follows depends on it."""
        with CancelScope(shield=True):
            await self._journal.append(AppendBatch((NewEvent(STREAM, event),), origin), along)

    async def _reading(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """On a connection of its own, in one snapshot, in a worker thread."""
        path = self._state_dir / FILE_NAME

        def run() -> T:
            with naming_trouble(path), closing(open_reader(path)) as reader:
                reader.execute("BEGIN")
                return work(reader)

        return await to_thread.run_sync(run)
