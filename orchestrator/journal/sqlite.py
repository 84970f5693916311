"""The journal on SQLite: one writer thread, readers that only read."""

from __future__ import annotations

import asyncio
import errno
import os
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Self

import msgspec
from anyio import CancelScope, to_thread

from orchestrator.core.errors import DiskFull, JournalCorrupt, VersionUnknown, WritesStopped
from orchestrator.core.events import chain
from orchestrator.core.events.base import Origin, Recorded
from orchestrator.core.events.keeping import ContentRedacted, PayloadRedacted
from orchestrator.core.ids import Digest, Seq, show
from orchestrator.core.redaction import blanked
from orchestrator.journal.reading import INLINE_BYTES, Reading
from orchestrator.journal.schema import FILE_NAME, naming_trouble, open_reader, open_writer, sql
from orchestrator.journal.scrubbing import finish_forgetting
from orchestrator.journal.verify import check_pages, check_tail
from orchestrator.journal.writer import Job, Outcome, Writer
from orchestrator.ports import Clock, Entropy, NewEvent, Redaction, RequestSeen, Step, Unit

KNOWN_BLOBS = 20_000
KNOWN_STREAMS = 50_000
REDACTIONS = "journal"
"""The stream of what is done to the journal itself."""

PACKERS = 2
"""Threads that compress and publish contents."""


class SqliteJournal(Reading):
    """See `ports.Journal`. Made by `open`."""

    def __init__(self, state_dir: Path) -> None:
        super().__init__(state_dir)
        self._writer: Writer | None = None
        self._folds: list[Callable[[Recorded], None]] = []
        self._streams: dict[str, int] = {}
        self._kept: dict[Digest, None] = {}
        self._forgetting: set[Digest] = set()
        self._remembered = threading.Event()
        self._remembered.set()
        self._packing: set[Future[None]] = set()
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

        For writing, SQLite's pages, the schema and the chain of the last 1,000 events are
        checked; `verify` checks all. Raises JournalCorrupt,
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
        self._entropy = entropy
        if not readonly:
            await to_thread.run_sync(self._refuse_to_begin_anew)
            connection = await to_thread.run_sync(open_writer, self._path)
            try:
                await to_thread.run_sync(check_pages, connection)
                await to_thread.run_sync(check_tail, connection)
                await to_thread.run_sync(self._blobs.sweep)
                await to_thread.run_sync(finish_forgetting, connection, self._blobs)
                writer = Writer(
                    connection, self._blobs, clock=clock, entropy=entropy, step=step, deliver=self._hand_over
                )
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
        (self._id,) = self._lookup.execute(sql("journal_id")).fetchone()
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

    async def request(self, agent: str, request_id: str) -> RequestSeen | None:
        # At once, on the loop's thread: every change asks this, and the way to another thread takes ten times as long.
        with naming_trouble(self._path):
            row = self._lookup.execute(sql("request"), (agent, request_id)).fetchone()
        return RequestSeen(row[0], Seq(row[1])) if row else None

    def subscribe(self, fold: Callable[[Recorded], None]) -> None:
        self._folds.append(fold)

    async def append(self, unit: Unit) -> tuple[Recorded, ...]:
        writer = self._open_for_writing()
        # Nothing is awaited before the unit is on its way: whoever is cancelled from here on gives up
        # the answer, not the append.
        job = Job(unit, (), self._loop.create_future())
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

    def _known(self, digest: Digest) -> bool:
        return digest in self._kept and digest not in self._forgetting

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
            self._loop.call_soon_threadsafe(_resolve, job, _refusal(writer, error))
        else:
            writer.submit(job)

    async def redact(self, event: PayloadRedacted, origin: Origin) -> Redaction:
        writer = self._open_for_writing()
        row = await self._one(self._points, sql("stored_payload"), (event.target,))
        if row is None:
            raise VersionUnknown(f"the journal has no event {show(event.target)}")
        payload, old_salt = row
        rest, salt = blanked(payload, event.fields), self._entropy.bytes(chain.REDACTED_SALT_BYTES)
        event = msgspec.structs.replace(event, rest_hash=chain.payload_hash(salt, rest).hex())
        job = Job(
            Unit((NewEvent(REDACTIONS, event),), origin),
            (),
            self._loop.create_future(),
            redacts=(rest, salt, int(event.target), old_salt),
        )
        writer.submit(job)
        (recorded,) = await job.done
        return Redaction(recorded=recorded, scrubbed=job.scrubbed)

    async def forget(self, event: ContentRedacted, origin: Origin) -> Redaction:
        writer = self._open_for_writing()
        job = Job(Unit((NewEvent(REDACTIONS, event),), origin), (), self._loop.create_future(), forgets=event.digest)
        self._forgetting.add(event.digest)
        self._remembered.clear()
        try:
            with CancelScope(shield=True):
                await to_thread.run_sync(wait, tuple(self._packing))  # those that may have met it as kept
                writer.submit(job)
                (recorded,) = await job.done
        finally:
            self._kept.pop(event.digest, None)
            self._forgetting.discard(event.digest)
            if not self._forgetting:
                self._remembered.set()
        return Redaction(recorded=recorded, scrubbed=job.scrubbed)

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
