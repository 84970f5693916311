"""The journal on SQLite: one writer thread, readers that only read."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from anyio import CancelScope, to_thread

from orchestrator.core.errors import DiskFull, JournalCorrupt, WritesStopped
from orchestrator.core.events.base import Recorded
from orchestrator.core.ids import Digest
from orchestrator.journal.history import renew_versions
from orchestrator.journal.reading import INLINE_BYTES
from orchestrator.journal.schema import FILE_NAME, naming_trouble, open_reader, open_writer, sql
from orchestrator.journal.snapshots import Keeping
from orchestrator.journal.verify import check_tail
from orchestrator.journal.writer import Errand, Job, Outcome, Writer
from orchestrator.ports import Clock, Entropy, Step, Unit

KNOWN_BLOBS = 20_000
KNOWN_STREAMS = 50_000
PACKERS = 2
"""Threads that compress and publish contents."""


class SqliteJournal(Keeping):
    """See `ports.Journal`. Made by `open`."""

    def __init__(self, state_dir: Path) -> None:
        super().__init__(state_dir)
        self._writer: Writer | None = None
        self._folds: list[Callable[[Recorded], None]] = []
        self._streams: dict[str, int] = {}
        self._kept: dict[Digest, None] = {}
        self._packers = ThreadPoolExecutor(PACKERS, "journal-packer")

    @classmethod
    async def open(
        cls,
        state_dir: str | os.PathLike[str],
        *,
        clock: Clock,
        entropy: Entropy,
        step: Step = lambda name: None,
        readonly: bool = False,
    ) -> Self:
        """Open or create the journal of a state directory; `readonly`: never create, never append.

        For writing, the schema and the chain from the last snapshot on are checked, in a time
        that does not grow with the journal; `checks` goes on from there. Raises JournalCorrupt,
        naming the place, JournalTooNew, WorkspaceHeld.
        """
        journal = cls(Path(state_dir))
        try:
            await journal._open(clock, entropy, step, readonly=readonly)
        except BaseException:
            await journal.close()
            raise
        return journal

    async def _open(self, clock: Clock, entropy: Entropy, step: Step, *, readonly: bool) -> None:
        self._loop = asyncio.get_running_loop()
        if not readonly:
            await to_thread.run_sync(self._refuse_to_begin_anew)
            connection = await to_thread.run_sync(open_writer, self._path)
            try:
                await to_thread.run_sync(check_tail, connection)
                await to_thread.run_sync(renew_versions, connection)
                await to_thread.run_sync(self._blobs.sweep)
                writer = Writer(connection, clock=clock, entropy=entropy, step=step, deliver=self._hand_over)
            except BaseException:
                connection.close()
                raise
            self._writer, self._head = writer, writer.head
        elif not self._path.exists():
            raise JournalCorrupt(
                f"there is no {FILE_NAME} in {self._state_dir}", hint="Start the daemon on this workspace first."
            )
        # One for the loop's thread, one for the packers; both only for lookups of microseconds.
        self._lookup = open_reader(self._path)
        self._reads.callback(self._lookup.close)
        self._packers_lookup = open_reader(self._path)
        self._reads.callback(self._packers_lookup.close)
        if readonly:
            last = self._lookup.execute(sql("last_event")).fetchone()
            self._head = last[0] if last else 0
        await self._open_readers()
        if self._writer is not None:
            self._writer.start()

    def _refuse_to_begin_anew(self) -> None:
        """Contents without a journal: it was lost, and a new one would forget all that it said."""
        blobs = self._state_dir / "blobs"
        lost = not self._path.exists() or self._path.stat().st_size == 0
        if lost and blobs.is_dir() and any(item.name != "incoming" for item in blobs.iterdir()):
            raise JournalCorrupt(
                f"{self._path} is gone, but the contents it names are there",
                hint=f"Restore it from a backup, or move {self._state_dir} away to begin anew.",
            )

    async def _on_writer(self, name: str, work: Callable[[sqlite3.Connection], None]) -> None:
        writer = self._writer
        if writer is None:
            raise WritesStopped("the journal is not open for writing")
        errand = Errand(name, work)
        writer.submit(errand)
        try:
            await asyncio.wrap_future(errand.done)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorname", "") == "SQLITE_FULL":
                raise DiskFull("the disk that holds the journal is full") from error
            raise JournalCorrupt(f"{self._path} can't be written: {error}") from error

    async def close(self) -> None:
        """Finish what is under way, then close; later appends are refused."""
        with CancelScope(shield=True):
            writer, self._writer = self._writer, None
            await to_thread.run_sync(self._packers.shutdown)
            await self._reads.aclose()
            if writer is not None:
                await to_thread.run_sync(writer.close)  # last, so that SQLite folds the log into the database

    # --- appending ----------------------------------------------------------------------

    def stream_version(self, stream: str) -> int:
        found = self._streams.get(stream)
        if found is None:
            with naming_trouble(self._path):
                row = self._lookup.execute(sql("stream_version"), (stream, self._head)).fetchone()
            found = self._streams[stream] = row[0] if row else 0
            self._trim()
        return found

    def subscribe(self, fold: Callable[[Recorded], None]) -> None:
        self._folds.append(fold)

    async def append(self, unit: Unit) -> tuple[Recorded, ...]:
        writer = self._writer
        if writer is None:
            raise WritesStopped("the journal is not open for writing")
        # Nothing is awaited before the unit is on its way: whoever is cancelled from here on gives up
        # the answer, not the append.
        job = Job(unit, (), self._loop.create_future())
        new = tuple(blob for blob in unit.blobs if blob[0] not in self._kept) if unit.blobs else ()
        if not new:
            writer.submit(job)
        elif sum(len(data) for _, data in new) <= INLINE_BYTES:
            job.blobs = self._blobs.prepare(new, kept=lambda digest: False)
            writer.submit(job)
        else:
            self._packers.submit(self._pack, writer, job, new)
        return await job.done

    def _pack(self, writer: Writer, job: Job, contents: tuple[tuple[Digest, bytes], ...]) -> None:
        """On a packer's thread: the contents first, durably, then the unit that names them."""
        try:
            job.blobs = self._blobs.prepare(contents, kept=self._is_kept)
        except Exception as error:  # noqa: BLE001  # whatever it is, it goes to who awaits the append
            self._loop.call_soon_threadsafe(_resolve, job, _refusal(writer, error))
        else:
            writer.submit(job)

    def _is_kept(self, digest: Digest) -> bool:
        return self._packers_lookup.execute(sql("has_blob"), (digest,)).fetchone() is not None

    def _hand_over(self, batch: list[tuple[Job, Outcome]]) -> None:
        """On the writer's thread."""
        try:
            self._loop.call_soon_threadsafe(self._deliver, batch)
        except RuntimeError:
            if not self._loop.is_closed():
                raise

    def _deliver(self, batch: list[tuple[Job, Outcome]]) -> None:
        """On the loop, after a commit: first the folds see every event, then the callers go on."""
        folds, streams = self._folds, self._streams
        trouble: WritesStopped | None = None
        for job, outcome in batch:
            if not isinstance(outcome, tuple):
                continue
            for blob in job.blobs:
                self._kept[blob.digest] = None
            for recorded in outcome:
                self._head = recorded.seq
                streams[recorded.stream] = recorded.stream_version
                try:
                    for fold in folds:
                        fold(recorded)
                except Exception as error:  # noqa: BLE001  # the event is committed; what can't follow it may not decide
                    trouble = trouble or self._fold_failed(recorded, error)
        self._trim()
        for job, outcome in batch:
            _resolve(job, trouble or outcome)

    def _fold_failed(self, recorded: Recorded, error: Exception) -> WritesStopped:
        message = f"a projection could not take event @{recorded.seq}: {error}"
        if self._writer is not None:
            self._writer.stop(message)
        stopped = WritesStopped(message, hint="The event is kept. Restart the daemon, and report this.")
        stopped.__cause__ = error
        return stopped

    def _trim(self) -> None:
        while len(self._streams) > KNOWN_STREAMS:
            del self._streams[next(iter(self._streams))]
        while len(self._kept) > KNOWN_BLOBS:
            del self._kept[next(iter(self._kept))]


def _resolve(job: Job, outcome: Outcome) -> None:
    if job.done.done():
        return  # its caller was cancelled
    if isinstance(outcome, tuple):
        job.done.set_result(outcome)
    else:
        job.done.set_exception(outcome)


def _refusal(writer: Writer, error: Exception) -> Exception:
    """What a content that could not be kept means for the append that needs it."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull("the disk that holds the journal is full; nothing was changed")
    if isinstance(error, OSError | sqlite3.Error):
        message = f"a content can't be written beside the journal: {error}"
        writer.stop(message)
        stopped = WritesStopped(message, hint="Mend the disk, then restart the daemon.")
        stopped.__cause__ = error
        return stopped
    return error
