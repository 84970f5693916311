"""The journal on SQLite: one writer thread, readers that only read."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Self

from anyio import CancelScope, to_thread

from orchestrator.core.checkpoint import Checkpoint
from orchestrator.core.errors import DiskFull, JournalBehind, JournalCorrupt, WritesStopped
from orchestrator.core.events import chain
from orchestrator.core.events.base import Recorded
from orchestrator.core.ids import Digest, Seq
from orchestrator.journal.append_results import refusal, resolve
from orchestrator.journal.disk_reserve import DiskReserve
from orchestrator.journal.high_water_mark import EVERY, HighWaterMark, HighWaterMarkFile, require_at_least
from orchestrator.journal.open_files import VERIFY
from orchestrator.journal.queries import INLINE_BYTES
from orchestrator.journal.rebuild_tables import rebuild_versions
from orchestrator.journal.redaction import Redacting
from orchestrator.journal.schema import FILE_NAME, FULL, naming_trouble, open_reader, open_writer, sql
from orchestrator.journal.segments import Segment, segments_of
from orchestrator.journal.snapshots import Snapshots
from orchestrator.journal.startup_checks import refuse_to_begin_anew, sweep
from orchestrator.journal.tail import check_tail
from orchestrator.journal.writer import Writer
from orchestrator.journal.writer_jobs import Job, MaintenanceTask, Outcome, TransactionHook
from orchestrator.logs import logger
from orchestrator.ports.journal import RequestSeen, Unit, VerifyReport
from orchestrator.ports.machine import Clock, Entropy, Step

KNOWN_BLOBS = 20_000
KNOWN_STREAMS = 50_000
PACKERS = 2
"""Threads that compress and publish contents."""


class SqliteJournal(Redacting, Snapshots):
    """See `ports.Journal`. Made by `open`."""

    def __init__(self, state_dir: Path, mark: HighWaterMarkFile | None = None) -> None:
        super().__init__(state_dir)
        self._mark = mark
        self._marked, self._tip = 0, chain.GENESIS
        self._writer: Writer | None = None
        self._folds: list[Callable[[Recorded], None]] = []
        self._streams: dict[str, int] = {}
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
        mark: Path | None = None,
        ballast_bytes: int = 0,
    ) -> Self:
        """Open or create the journal of a state directory; `readonly`: never create, never append.

        `mark` is a file that remembers how far this journal came; it must have come that far.
        So many `ballast_bytes` of the disk are held back for the outcomes of changes.
        For writing, the schema and the chain from the last snapshot on are checked, in a time
        that does not grow with the journal; `checks` goes on from there. Raises JournalCorrupt,
        naming the place, JournalTooNew, JournalBehind, WorkspaceHeld, and ArchiveMissing where
        archived events are needed.
        """
        journal = cls(Path(state_dir), HighWaterMarkFile(mark) if mark is not None else None)
        try:
            ballast = DiskReserve(journal._state_dir, ballast_bytes)
            await journal._open(clock, entropy, step, ballast, readonly=readonly)
        except BaseException:
            await journal.close()
            raise
        return journal

    async def _open(self, clock: Clock, entropy: Entropy, step: Step, ballast: DiskReserve, *, readonly: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._entropy = entropy
        if not readonly:
            await to_thread.run_sync(refuse_to_begin_anew, self._state_dir, self._mark)
            open_it = partial(self._writer_on, clock=clock, entropy=entropy, step=step, ballast=ballast)
            try:
                writer = await to_thread.run_sync(open_it)
            except DiskFull:
                if not ballast.release():
                    raise
                writer = await to_thread.run_sync(partial(open_it, short=True))  # reads can be answered so
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
        with naming_trouble(self._path):
            last = self._lookup.execute(sql("last_event")).fetchone() or (0, chain.GENESIS)
            self._head, self._tip = last
            (self._id,) = self._lookup.execute(sql("journal_id")).fetchone()
            self._segments = segments_of(self._lookup)
        await self._open_readers()
        if self._writer is not None:
            self._writer.start()
            await to_thread.run_sync(self._set_mark, self.here)

    def _writer_on(
        self, *, clock: Clock, entropy: Entropy, step: Step, ballast: DiskReserve, short: bool = False
    ) -> Writer:
        """What a start looks at, and then the one that writes. Blocking; raises as `open`."""
        connection = open_writer(self._path)
        try:
            check_tail(connection)
            if self._mark is not None:
                self._mark.check(connection, self._archive)
            rebuild_versions(connection, self._archive)
            sweep(connection, self._blobs)
            return Writer(
                connection,
                self._blobs,
                clock=clock,
                entropy=entropy,
                step=step,
                deliver=self._hand_over,
                ballast=ballast,
                short=short,
                path=self._path,
                committed=self._advance_mark,
            )
        except BaseException:
            connection.close()
            raise

    # --- for its keeper -----------------------------------------------------------------

    @property
    def state_dir(self) -> Path:
        return self._state_dir

    def is_at(self, mark: HighWaterMark) -> bool:
        """Whether the journal came as far as a mark, by the same events. Blocking."""
        try:
            require_at_least(mark, self._lookup, self._archive)
        except JournalBehind:
            return False
        return True

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The files that are read for the events that they hold."""
        return self._segments

    @segments.setter
    def segments(self, segments: tuple[Segment, ...]) -> None:
        self._segments = segments

    def drop_known(self, digests: Iterable[Digest]) -> None:
        """These contents are kept no more."""
        for digest in digests:
            self._kept.pop(digest, None)

    # --- opening and closing ------------------------------------------------------------

    @property
    def here(self) -> HighWaterMark:
        """The head as a mark."""
        return HighWaterMark(self._id, self._head, self._tip.hex())

    def _set_mark(self, mark: HighWaterMark) -> None:
        if self._mark is None:
            return
        try:
            self._mark.write(mark)
        except OSError as error:
            logger("journal").error("the mark can't be written; an old backup may go unnoticed", error=str(error))

    def _advance_mark(self, head: int, tip: bytes, *, closes: bool) -> None:
        """On the writer's thread, before a commit is acknowledged: what is lost of it later is noticed by a start."""
        if self._mark is None:
            return
        try:
            self._mark.advance(HighWaterMark(self._id, head, tip.hex()), durably=closes)
        except OSError as error:
            logger("journal").error("the mark can't be written; lost events may go unnoticed", error=str(error))

    async def _on_writer(self, name: str, work: Callable[[sqlite3.Connection], None]) -> None:
        writer = self._open_for_writing()
        task = MaintenanceTask(name, work)
        writer.submit(task)
        try:
            await asyncio.wrap_future(task.done)
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorname", "") in FULL:
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
                if self._id:  # else the opening failed before it was read
                    await to_thread.run_sync(self._set_mark, self.here)

    async def verify(self, checkpoint: Checkpoint | None = None) -> VerifyReport:
        """As in `Reading`. Raises WritesStopped where what lies in the state directory is not what is open."""
        if self._writer is not None:
            self._writer.check_in_place()
        return await super().verify(checkpoint)

    # --- appending ----------------------------------------------------------------------

    @property
    def trouble(self) -> str:
        return self._writer.trouble if self._writer is not None else ""

    def stream_version(self, stream: str) -> int:
        found = self._streams.get(stream)
        if found is None:
            with self._looking_up():
                row = self._lookup.execute(sql("stream_version"), (stream, self._head)).fetchone()
            found = self._streams[stream] = row[0] if row else 0
            self._trim()
        return found

    async def request(self, agent: str, request_id: str) -> RequestSeen | None:
        # At once, on the loop's thread: every change asks this, and the way to another thread takes ten times as long.
        with self._looking_up():
            row = self._lookup.execute(sql("request"), (agent, request_id)).fetchone()
        return RequestSeen(row[0], Seq(row[1])) if row else None

    @contextmanager
    def _looking_up(self) -> Iterator[None]:
        """For a unit to come: a journal that can't be read takes no more. Raises WritesStopped."""
        try:
            with naming_trouble(self._path):
                yield
        except JournalCorrupt as error:
            if self._writer is None:
                raise
            raise self._writer.stop_after(error.message, VERIFY) from error

    def subscribe(self, fold: Callable[[Recorded], None]) -> None:
        self._folds.append(fold)

    async def append(self, unit: Unit, along: TransactionHook | None = None) -> tuple[Recorded, ...]:
        writer = self._open_for_writing()
        # Nothing is awaited before the unit is on its way: whoever is cancelled from here on gives up
        # the answer, not the append.
        job = Job(unit, (), self._loop.create_future(), along=along)
        new = tuple(blob for blob in unit.blobs if not self._known(blob[0])) if unit.blobs else ()
        if not new:
            writer.submit(job)
        elif sum(len(data) for _, data in new) <= INLINE_BYTES:
            job.blobs = self._blobs.prepare(new, kept=lambda digest: False)
            writer.submit(job)
        else:
            packing = self._packers.submit(self._pack, writer, job, new, wait=bool(self._forgetting))
            self._packing.add(packing)
            packing.add_done_callback(self._packing.discard)
        return await job.done

    def _pack(
        self, writer: Writer, job: Job, contents: tuple[tuple[Digest, bytes], ...], *, wait: bool = False
    ) -> None:
        """On a packer's thread: the contents first, durably, then the unit that names them.

        `wait`: not while one is being forgotten, whose file would look as if it were kept.
        """
        if wait:
            self._remembered.wait()
        try:
            job.blobs = self._blobs.prepare(contents, kept=self._is_kept)
        except Exception as error:  # noqa: BLE001  # whatever it is, it goes to who awaits the append
            self._loop.call_soon_threadsafe(resolve, job, refusal(writer, error))
        else:
            writer.submit(job)

    def _open_for_writing(self) -> Writer:
        if self._writer is None:
            raise WritesStopped("the journal is not open for writing")
        return self._writer

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
                self._head, self._tip = recorded.seq, recorded.hash
                streams[recorded.stream] = recorded.stream_version
                try:
                    for fold in folds:
                        fold(recorded)
                except Exception as error:  # noqa: BLE001  # the event is committed; what can't follow it may not decide
                    trouble = trouble or self._fold_failed(recorded, error)
        self._trim()
        if self._mark is not None and self._head >= self._marked + EVERY and self._writer is not None:
            self._marked = self._head
            self._packers.submit(self._set_mark, self.here)
        for job, outcome in batch:
            resolve(job, trouble or outcome)

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
