"""The one thread that writes: it drains what queued while the last commit was syncing into one transaction."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence

from orchestrator.core.errors import DiskFull, OrchestratorError, RequestIdReused, WorkspaceHeld, WritesStopped
from orchestrator.core.events import chain
from orchestrator.core.events.base import Recorded
from orchestrator.core.events.catalog import tag_of
from orchestrator.core.events.codec import encode
from orchestrator.core.ids import Seq
from orchestrator.core.projections.history import DigestLearned, VersionRow, history
from orchestrator.journal.blobs import StoredBlob
from orchestrator.journal.rows import version_values
from orchestrator.journal.schema import sql
from orchestrator.ports import ANY_VERSION, Clock, Entropy, NewEvent, Step, StreamMoved, Unit

Outcome = tuple[Recorded, ...] | Exception
Deliver = Callable[[list[tuple["Job", Outcome]]], None]

MOST_PER_COMMIT = 512


def _nobody(batch: list[tuple[Job, Outcome]]) -> None:
    raise RuntimeError("the writer was not started")


class Job:
    """A unit on its way, and who waits for it."""

    __slots__ = ("blobs", "done", "unit")

    def __init__(self, unit: Unit, blobs: tuple[StoredBlob, ...], done: asyncio.Future[tuple[Recorded, ...]]) -> None:
        self.unit, self.blobs, self.done = unit, blobs, done


class Writer:
    """Owns the write connection, the chain's end, and the versions of all streams."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        clock: Clock,
        entropy: Entropy,
        step: Step,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._db, self._clock, self._entropy, self._step = connection, clock, entropy, step
        self._loop = loop
        self._deliver: Deliver = _nobody
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        last = connection.execute(sql("last_event")).fetchone()
        self._head: int = last[0] if last else 0
        self._hash: bytes = last[1] if last else chain.GENESIS
        self.streams: dict[str, int] = dict(connection.execute(sql("streams")).fetchall())
        self._broken: str | None = None
        self._epoch = self._take_epoch()
        self._thread = threading.Thread(target=self._run, name="journal-writer", daemon=True)

    @property
    def head(self) -> int:
        return self._head

    def start(self, deliver: Deliver) -> None:
        """Begin to write; `deliver` is called on the event loop, once per commit, with the jobs in order."""
        self._deliver = deliver
        self._thread.start()

    def submit(self, job: Job) -> None:
        """Hand a job over; never blocks."""
        self._queue.put(job)

    def close(self) -> None:
        """Finish what is queued, fold the write-ahead log into the database, and close. Blocking."""
        self._queue.put(None)
        self._thread.join()
        try:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            self._db.close()

    # --- the thread -------------------------------------------------------------------

    def _run(self) -> None:
        ending = False
        while not ending:
            job = self._queue.get()
            jobs: list[Job] = []
            while job is not None:
                jobs.append(job)
                if len(jobs) >= MOST_PER_COMMIT:
                    break
                try:
                    job = self._queue.get_nowait()
                except queue.Empty:
                    break
            else:
                ending = True
            if jobs:
                outcomes = self._commit(jobs)
                self._loop.call_soon_threadsafe(self._deliver, list(zip(jobs, outcomes, strict=True)))

    def _commit(self, jobs: Sequence[Job]) -> list[Outcome]:
        """One transaction for all; a unit that does not fit is left out of it, the others stay."""
        if self._broken is not None:
            return [WritesStopped(self._broken) for _ in jobs]
        before = self._head, self._hash
        moved: dict[str, int] = {}
        outcomes: list[Outcome] = []
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._check_epoch()
            for job in jobs:
                outcomes.append(self._append(job, moved))
            self._step_each("txn_open", jobs)
            for stream in moved:
                self._db.execute(sql("set_stream"), (stream, self.streams[stream]))
            self._db.execute("COMMIT")
        except (sqlite3.Error, OrchestratorError) as error:
            self._undo(before, moved)
            failure = self._failure(error)
            return [failure for _ in jobs]
        self._step_each("txn_committed", jobs)
        return outcomes

    def _append(self, job: Job, moved: dict[str, int]) -> Outcome:
        """One unit, whole or not at all."""
        head, tip = self._head, self._hash
        touched: dict[str, int] = {}
        self._db.execute("SAVEPOINT unit")
        try:
            recorded = self._append_unit(job, touched)
        except (StreamMoved, RequestIdReused) as error:
            self._db.execute("ROLLBACK TO unit")
            self._db.execute("RELEASE unit")
            self._head, self._hash = head, tip
            self.streams.update(touched)
            return error
        self._db.execute("RELEASE unit")
        for stream, version in touched.items():
            moved.setdefault(stream, version)
        return recorded

    def _append_unit(self, job: Job, touched: dict[str, int]) -> tuple[Recorded, ...]:
        unit, origin = job.unit, job.unit.origin
        if origin.request_id is not None and origin.agent is not None:
            known = self._db.execute(sql("request"), (origin.agent, origin.request_id)).fetchone()
            if known is not None and known[0] != origin.request_digest:
                raise RequestIdReused(f"request_id {origin.request_id!r} was used before, with other parameters")
            digest = origin.request_digest or ""
            self._db.execute(sql("set_request"), (origin.agent, origin.request_id, digest, self._head + 1))
        for blob in job.blobs:
            self._db.execute(sql("add_blob"), (blob.digest, blob.size, blob.data))
        at = self._clock.now_ms()
        return tuple(self._append_event(new, unit, at, touched) for new in unit.events)

    def _append_event(self, new: NewEvent, unit: Unit, at: int, touched: dict[str, int]) -> Recorded:
        stream, origin = new.stream, unit.origin
        found = self.streams.get(stream, 0)
        if new.expected not in (ANY_VERSION, found):
            raise StreamMoved(stream, new.expected, found)
        touched.setdefault(stream, found)
        version = self.streams[stream] = found + 1
        seq, tag, payload = self._head + 1, tag_of(new.event), encode(new.event)
        salt = self._entropy.bytes(chain.SALT_BYTES)
        digest = chain.payload_hash(salt, payload)
        head = chain.header(seq=seq, at=at, stream=stream, stream_version=version, tag=tag, origin=origin)
        prev, self._hash = self._hash, chain.link(self._hash, head, digest)
        self._head = seq
        self._db.execute(
            sql("append_event"),
            (
                seq,
                at,
                stream,
                version,
                tag,
                origin.session,
                origin.agent,
                origin.owner,
                origin.request_id,
                origin.request_digest,
                origin.cause,
                origin.trace_id,
                origin.client_call_id,
                payload,
                salt,
                digest,
                prev,
                self._hash,
            ),
        )
        recorded = Recorded(
            seq=Seq(seq),
            at=at,
            stream=stream,
            stream_version=version,
            origin=origin,
            event=new.event,
            payload_hash=digest,
            prev_hash=prev,
            hash=self._hash,
        )
        for row in history(recorded):
            self._add_history(row)
        return recorded

    def _add_history(self, row: VersionRow | DigestLearned) -> None:
        if isinstance(row, VersionRow):
            self._db.execute(sql("add_version"), version_values(row))
        else:
            self._db.execute(sql("learn_digest"), (row.digest, row.size, row.path, row.version))

    # --- small things -------------------------------------------------------------------

    def _undo(self, before: tuple[int, bytes], moved: dict[str, int]) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        self._head, self._hash = before
        self.streams.update(moved)

    def _failure(self, error: sqlite3.Error | OrchestratorError) -> OrchestratorError:
        if isinstance(error, OrchestratorError):
            self._broken = error.message
            return error
        if getattr(error, "sqlite_errorname", "") == "SQLITE_FULL":
            return DiskFull("the disk that holds the journal is full; nothing was changed")
        self._broken = f"the journal can't be written: {error}"
        return WritesStopped(self._broken, hint="See the daemon's log, mend the disk, then restart the daemon.")

    def _take_epoch(self) -> str:
        """Every opening of the journal for writing gets a number; who holds an older one may not write."""
        row = self._db.execute(sql("get_meta"), ("epoch",)).fetchone()
        epoch = str(int(row[0]) + 1 if row else 1)
        self._db.execute(sql("set_meta"), ("epoch", epoch))
        return epoch

    def _check_epoch(self) -> None:
        row = self._db.execute(sql("get_meta"), ("epoch",)).fetchone()
        if row is None or row[0] != self._epoch:
            raise WorkspaceHeld(
                "another daemon has opened this journal for writing",
                hint="One daemon serves a workspace; end one of the two.",
            )

    def _step_each(self, name: str, jobs: Sequence[Job]) -> None:
        for tag in dict.fromkeys(tag_of(new.event) for job in jobs for new in job.unit.events):
            self._step(f"{name}:{tag}")
