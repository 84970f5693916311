"""The journal on SQLite: one writer thread, readers that only read."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Self

import msgspec
from anyio import CancelScope, to_thread

from orchestrator.core import errors as e
from orchestrator.core.events import chain
from orchestrator.core.events.base import Origin, Recorded
from orchestrator.core.events.chain import Checkpoint
from orchestrator.core.events.journal_maintenance import ContentRedacted, PayloadRedacted
from orchestrator.core.events.visibility import blanked
from orchestrator.core.ids import Seq, show
from orchestrator.journal.database_file import FILE_NAME, naming_trouble, open_reader, open_writer, sql
from orchestrator.journal.high_water_mark import HighWaterMark, HighWaterMarkFile
from orchestrator.journal.queries import INLINE_BYTES, JournalReader
from orchestrator.journal.segments import segments_of
from orchestrator.journal.signatures import KeyFile
from orchestrator.journal.snapshot_table import keep, sealed_row
from orchestrator.journal.startup_checks import check_before_writing, refuse_to_begin_anew
from orchestrator.journal.state_files import VERIFY, DiskReserve
from orchestrator.journal.writer import Job, Outcome, TransactionHook, Writer
from orchestrator.logs import logger
from orchestrator.ports.journal import (
    AppendBatch,
    NewContents,
    NewEvent,
    Redaction,
    RequestSeen,
    Snapshot,
    VerifyReport,
)
from orchestrator.ports.machine import Clock, Entropy, Step

PACKERS = 2
"""Threads that compress and publish contents."""

PAUSE_S = 0.002
"""After each slice of a verification, which takes 2 to 4 ms: so callers have the interpreter in between."""

STREAM = "journal"
"""Of what is done to the journal itself."""


class SqliteJournal(JournalReader):
    """See `ports.Journal`. Made by `open`."""

    def __init__(self, state_dir: Path, mark: HighWaterMarkFile | None = None) -> None:
        super().__init__(state_dir)
        self._mark = mark
        self._tip = chain.GENESIS
        self._writer: Writer | None = None
        self._folds: list[Callable[[Recorded], None]] = []
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
        reserve_bytes: int = 0,
    ) -> Self:
        """Open or create the journal of a state directory; `readonly`: never create, never append.

        `mark` is a file that remembers the last position of this journal; the journal must reach it.
        So many `reserve_bytes` of the disk are held back for the outcomes of changes.
        For writing, the schema and the chain from the last snapshot on are checked, in a time
        that does not grow with the journal; `checks` goes on from there. Raises JournalCorrupt,
        naming the place, JournalTooNew, JournalBehind, WorkspaceHeld, and ArchiveMissing where
        archived events are needed.
        """
        journal = cls(Path(state_dir), HighWaterMarkFile(mark) if mark is not None else None)
        try:
            reserve = DiskReserve(journal.state_dir, reserve_bytes)
            await journal._open(clock, entropy, step, reserve, readonly=readonly)
        except BaseException:
            await journal.close()
            raise
        return journal

    async def _open(self, clock: Clock, entropy: Entropy, step: Step, reserve: DiskReserve, *, readonly: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._entropy = entropy
        if not readonly:
            await to_thread.run_sync(refuse_to_begin_anew, self.state_dir, self._mark)
            make = partial(Writer, clock=clock, entropy=entropy, step=step, reserve=reserve)
            try:
                self._writer = await to_thread.run_sync(self._writer_on, make)
            except e.DiskFull:
                if not reserve.release():
                    raise
                self._writer = await to_thread.run_sync(self._writer_on, make)  # reads can be answered so
            self._pause_s = PAUSE_S
        elif not self._path.exists():
            raise e.JournalCorrupt(
                f"there is no {FILE_NAME} in {self.state_dir}", hint="Start the daemon on this workspace first."
            )
        self._lookup = open_reader(self._path)  # for lookups of microseconds on the loop's thread
        self._reads.callback(self._lookup.close)
        with naming_trouble(self._path):
            head, self._tip = self._lookup.execute(sql("last_event")).fetchone() or (0, chain.GENESIS)
            self.head = Seq(head)
            (self.id,) = self._lookup.execute(sql("journal_id")).fetchone()
            self.segments = segments_of(self._lookup)
        await self._open_readers()
        if self._writer is not None:
            await to_thread.run_sync(self._keep_mark, self.here)
            self._writer.start()

    def _writer_on(self, make: Callable[..., Writer]) -> Writer:
        """What a start looks at, and then the one that writes. Blocking; raises as `open`."""
        connection = open_writer(self._path)
        try:
            check_before_writing(connection, self._archive, self._blobs, self._mark)
            return make(connection, self._blobs, path=self._path, deliver=self._hand_over, committed=self._committed)
        except BaseException:
            connection.close()
            raise

    # --- opening and closing ------------------------------------------------------------

    @property
    def here(self) -> HighWaterMark:
        """The head as a mark."""
        return HighWaterMark(self.id, self.head, self._tip.hex())

    def _keep_mark(self, mark: HighWaterMark, *, closes: bool | None = None) -> None:
        """Keep the mark in a new file, or, where `closes` is given, advance the one in place.

        A start notices by it what was lost. A mark that can't be written is logged.
        """
        try:
            if self._mark is not None and closes is not None:
                self._mark.advance(mark, durably=closes)
            elif self._mark is not None:
                self._mark.write(mark)
        except OSError as error:
            logger("journal").error("the high-water mark can't be written", error=str(error))

    def _committed(self, head: int, tip: bytes, closes: bool) -> None:
        """On the writer's thread, before a commit is acknowledged."""
        self._keep_mark(HighWaterMark(self.id, head, tip.hex()), closes=closes)

    async def close(self) -> None:
        """Finish what is under way, then close; later appends are refused."""
        with CancelScope(shield=True):
            writer, self._writer = self._writer, None
            await to_thread.run_sync(self._packers.shutdown)
            await self._reads.aclose()
            if writer is not None:
                await to_thread.run_sync(writer.close)  # last, so that SQLite folds the log into the database
                if self.id:  # else the opening failed before it was read
                    await to_thread.run_sync(self._keep_mark, self.here)
            if self._mark is not None:
                self._mark.close()

    async def verify(self, checkpoint: Checkpoint | None = None) -> VerifyReport:
        """As in `JournalReader`. Raises WritesStopped where what lies in the state directory is not what is open."""
        if self._writer is not None:
            self._writer.check_in_place()
        return await super().verify(checkpoint)

    # --- appending ----------------------------------------------------------------------

    @property
    def trouble(self) -> str:
        return self._writer.trouble if self._writer is not None else ""

    def stream_version(self, stream: str) -> int:
        with self._looking_up():
            (found,) = self._lookup.execute(sql("stream_version"), (stream, self.head)).fetchone()
        return int(found)

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
        except e.JournalCorrupt as error:
            if self._writer is None:
                raise
            raise self._writer.stop_after(error.message, VERIFY) from error

    def subscribe(self, fold: Callable[[Recorded], None]) -> None:
        self._folds.append(fold)

    async def append(self, unit: AppendBatch, hook: TransactionHook | None = None) -> tuple[Recorded, ...]:
        writer = self._open_for_writing()
        # Nothing is awaited before the unit is on its way: whoever is cancelled from here on gives up
        # the answer, not the append.
        job = Job(unit, self._loop.create_future(), hook)
        new = self._not_kept(unit.blobs) if unit.blobs else ()
        if sum(len(data) for _, data in new) <= INLINE_BYTES:
            job.blobs = self._blobs.prepare(new)
            writer.submit(job)
        else:
            self._packers.submit(self._pack, writer, job, new)
        return await job.done

    def _pack(self, writer: Writer, job: Job, contents: NewContents) -> None:
        """On a packer's thread: the contents first, durably, then the unit that names them."""
        try:
            job.blobs = self._blobs.prepare(contents)
        except Exception as error:  # noqa: BLE001  # whatever it is, it goes to who awaits the append
            self._loop.call_soon_threadsafe(job.resolve, writer.refusal(error))
        else:
            writer.submit(job)

    def _open_for_writing(self) -> Writer:
        if self._writer is None:
            raise e.WritesStopped("the journal is not open for writing")
        return self._writer

    def _not_kept(self, contents: NewContents) -> NewContents:
        with self._looking_up():
            lookup, query = self._lookup, sql("has_blob")
            return tuple(content for content in contents if lookup.execute(query, content[:1]).fetchone() is None)

    def _hand_over(self, batch: list[tuple[Job, Outcome]]) -> None:
        """On the writer's thread."""
        try:
            self._loop.call_soon_threadsafe(self._deliver, batch)
        except RuntimeError:
            if not self._loop.is_closed():
                raise

    def _deliver(self, batch: list[tuple[Job, Outcome]]) -> None:
        """On the loop, after a commit: first the folds see every event, then the callers go on."""
        trouble: e.WritesStopped | None = None
        for recorded in (recorded for _, outcome in batch if isinstance(outcome, tuple) for recorded in outcome):
            self.head, self._tip = recorded.seq, recorded.hash
            try:
                for fold in self._folds:
                    fold(recorded)
            except Exception as error:  # noqa: BLE001  # the event is committed; what can't follow it may not decide
                trouble = trouble or self._fold_failed(recorded, error)
        for job, outcome in batch:
            job.resolve(trouble or outcome)

    def _fold_failed(self, recorded: Recorded, error: Exception) -> e.WritesStopped:
        message = f"a projection could not take event @{recorded.seq}: {error}"
        if self._writer is not None:
            self._writer.stop(message)
        stopped = e.WritesStopped(message, hint="The event is kept. Restart the daemon, and report this.")
        stopped.__cause__ = error
        return stopped

    # --- beside the events ----------------------------------------------------------------

    async def keep_snapshot(self, snapshot: Snapshot, data: bytes) -> None:
        row = await to_thread.run_sync(sealed_row, KeyFile(self.state_dir), self.id, snapshot, data)
        await self.append(AppendBatch((), Origin()), TransactionHook(inside=partial(keep, row), name="snapshot"))

    async def redact(self, event: PayloadRedacted, origin: Origin) -> Redaction:
        row = await self._one(self._points, sql("stored_payload"), (event.target,))
        if row is None:
            if self._holding(event.target) is not None:
                raise e.EventArchived(
                    f"event {show(event.target)} is archived, and archived events are not changed",
                    hint=f"Run `orchestrator journal unarchive {self.segments[-1].file}`, and so on until it is back; "
                    f"delete those files in {self._archive.folder}, which still hold the text; then redact again.",
                )
            raise e.VersionUnknown(f"the journal has no event {show(event.target)}")
        payload, old_salt = row
        rest, salt = blanked(payload, event.fields), self._entropy.bytes(chain.REDACTED_SALT_BYTES)
        event = msgspec.structs.replace(event, rest_hash=chain.payload_hash(salt, rest).hex())

        def replace(connection: sqlite3.Connection) -> None:
            # SQLite overwrites the free space itself (`secure_delete`); older pages go with the write-ahead log.
            if connection.execute(sql("redact_event"), (rest, salt, int(event.target), old_salt)).rowcount != 1:
                raise e.JournalChanged("the event was archived or redacted meanwhile")

        hook = TransactionHook(inside=replace, scrubs=True)
        try:
            (recorded,) = await self.append(AppendBatch((NewEvent(STREAM, event),), origin), hook)
        except e.JournalChanged:
            return await self.redact(event, origin)
        return Redaction(recorded=recorded, scrubbed=hook.scrubbed)

    async def forget(self, event: ContentRedacted, origin: Origin) -> Redaction:
        digest = event.digest
        hook = TransactionHook(
            inside=lambda connection: connection.execute(sql("forget_blob"), (digest,)),
            after=lambda: self._blobs.remove((digest,)),
            scrubs=True,
        )
        (recorded,) = await self.append(AppendBatch((NewEvent(STREAM, event),), origin), hook)
        return Redaction(recorded=recorded, scrubbed=hook.scrubbed)
