"""The one thread that writes: it drains what queued while the last commit was syncing into one transaction."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.core import errors as e
from orchestrator.core.events import chain
from orchestrator.core.events.base import Recorded
from orchestrator.core.events.codec import EventNotSerializable, tag_of
from orchestrator.core.ids import Digest, Seq
from orchestrator.core.projections.versions import DigestLearned, VersionRow, history
from orchestrator.core.system_errors import system_trouble
from orchestrator.journal.append_validation import AppendValidator, Row
from orchestrator.journal.blobs import Blobs, StoredBlob
from orchestrator.journal.database_file import BUSY_TIMEOUT_S, naming_trouble, sql, trouble_of
from orchestrator.journal.state_files import VERIFY, DiskReserve, OpenFiles
from orchestrator.journal.versions import add_versions
from orchestrator.ports.journal import AppendBatch, RequestSeen, StreamMoved
from orchestrator.ports.machine import Clock, Entropy, Step

Outcome = tuple[Recorded, ...] | Exception

NO_SPACE = "the disk that holds the journal is full"

DISK_FAILED = ("SQLITE_IOERR", "SQLITE_CORRUPT", "SQLITE_NOTADB")

MEND = "Reads go on. Mend the disk, then restart the daemon: it reads again what is there."

MOST_PER_COMMIT = 512
"""Units; a longer queue waits for the next commit."""


LOG_PATIENCE_MS = 1000
"""How long a truncation of the log waits for readers that hold an older state; other commits wait meanwhile."""


@dataclass(eq=False, kw_only=True)
class TransactionHook:
    """Work on the journal itself in the transaction of a unit; such a unit commits alone.

    `inside` runs when the unit's rows are in and nothing is committed; what it raises undoes all. `after` runs right
    after the commit.
    """

    inside: Callable[[sqlite3.Connection], object]
    after: Callable[[], bool] = lambda: True  # False: something of what was taken out is left
    name: str = ""  # of its steps, where its unit has no events
    scrubs: bool = False  # it takes out what must not stay in the write-ahead log either
    scrubbed: bool = True  # after the commit of one that `scrubs`: nothing of that is left in the journal's files


@dataclass(eq=False, slots=True)
class Job:
    """A unit on its way, who waits for it, and what happens along with it."""

    unit: AppendBatch
    done: asyncio.Future[tuple[Recorded, ...]]
    hook: TransactionHook | None = None
    blobs: tuple[StoredBlob, ...] = ()

    def resolve(self, outcome: Outcome) -> None:
        """Hand the outcome to who waits, unless that caller was cancelled. On the loop's thread."""
        if self.done.done():
            return
        if isinstance(outcome, tuple):
            self.done.set_result(outcome)
        else:
            self.done.set_exception(outcome)


class Writer:
    """Owns the write connection and the chain's end.

    `committed` is called on the writer's thread after each commit, with the chain's new end and whether a unit
    closes something; then `deliver` with the transaction's jobs and outcomes, in order. A unit that does not fit
    (StreamMoved, RequestIdReused, an event that can't be stored) is found out before anything of it is written,
    so the others of its transaction stay. `step` is called with `txn_open:<tag>` for each kind of event in
    a transaction when its rows are in and it is not committed, and with `txn_committed:<tag>` after the commit.

    On a full disk the units that close something get the room of the `reserve`. Until that can be allocated
    again, which each later unit tries first, nothing else is written.
    """

    def __init__(  # noqa: PLR0913  # made once, from what the journal has open
        self,
        connection: sqlite3.Connection,
        blobs: Blobs,
        *,
        clock: Clock,
        entropy: Entropy,
        step: Step,
        deliver: Callable[[list[tuple[Job, Outcome]]], None],
        reserve: DiskReserve,
        path: Path,
        committed: Callable[[int, bytes, bool], None],
    ) -> None:
        self._db, self._blobs, self._step = connection, blobs, step
        self._deliver, self._committed = deliver, committed
        self._reserve, self._full = reserve, reserve.released
        self._owed: list[Job] = []
        if not reserve.released:
            reserve.allocate()  # a disk without that room is served all the same, until it is full
        self._log_holds_redacted = False
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._broken: str | None = None
        self._mend = MEND
        with naming_trouble("the journal"):
            connection.execute("BEGIN IMMEDIATE")
            (self._epoch,) = connection.execute(sql("next_epoch")).fetchone()
            connection.execute("COMMIT")
            last = connection.execute(sql("last_event")).fetchone()
        self._files = OpenFiles(path)
        head, tip = last or (0, chain.GENESIS)
        self._validator = AppendValidator(
            clock=clock, entropy=entropy, version_of=self._version_of, claim_of=self._claim_of, head=head, tip=tip
        )
        self._thread = threading.Thread(target=self._run, name="journal-writer", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    @property
    def trouble(self) -> str:
        """Why nothing can be written, as the last attempt found; empty when it can."""
        if self._broken is not None:
            return self._broken
        return NO_SPACE if self._full or self._owed else ""

    def submit(self, job: Job) -> None:
        """Hand a job over; never blocks."""
        self._queue.put(job)

    def stop(self, why: str, mend: str = MEND) -> None:
        """Refuse every later job."""
        if self._broken is None:
            self._broken, self._mend = why, mend

    def check_in_place(self) -> None:
        """Raises WritesStopped, for good, where the state directory is not the one that was opened."""
        problem = self._files.problem()
        if problem is not None:
            self.stop(*problem)
            raise self._stopped()

    def stop_after(self, why: str, mend: str = MEND) -> e.WritesStopped:
        """Refuse every later job after an error of the files; where these were cut or replaced, that is the reason."""
        try:
            self.check_in_place()
        except e.WritesStopped as misplaced:
            return misplaced
        self.stop(why, mend)
        return self._stopped()

    def refusal(self, error: Exception) -> Exception:
        """What an error means for the append that met it; one of the system comes of a content that lies in a file.

        On any thread. Unless the system only lacks something for now, all writing stops.
        """
        if not isinstance(error, OSError):
            return error
        trouble = system_trouble(error, "a content can't be kept beside the journal; nothing was changed")
        if trouble is None:
            trouble = self.stop_after(f"a content can't be written beside the journal: {error}")
        trouble.__cause__ = error
        return trouble

    def close(self) -> None:
        """Finish what is queued, fold the write-ahead log into the database, and close. Blocking."""
        if self._thread.ident is not None:
            self._queue.put(None)
            self._thread.join()
        if self._broken is None:
            self._has_room()
        self._db.close()  # SQLite's last connection checkpoints and removes the log
        self._files.close()

    # --- the thread -------------------------------------------------------------------

    def _run(self) -> None:
        waiting, job = self._queue, self._queue.get()
        while job is not None:
            jobs = [job]
            while not waiting.empty() and len(jobs) < MOST_PER_COMMIT and (job := waiting.get()) is not None:
                jobs.append(job)  # nobody else takes from the queue, so `get` did not block
            self._deliver(list(zip(jobs, self._outcomes(jobs), strict=True)))
            job = waiting.get() if job is not None else None

    def _outcomes(self, jobs: Sequence[Job]) -> list[Outcome]:
        if self._broken is not None:
            return [self._stopped() for _ in jobs]
        if len(jobs) > 1 and any(job.hook for job in jobs):
            return [outcome for job in jobs for outcome in self._outcomes((job,))]
        try:
            if not self._has_room():
                raise e.DiskFull(f"{NO_SPACE}; nothing was changed")
            outcomes = self._commit(jobs)
            self._full = False
        except e.DiskFull as error:
            self._full = self._full or any(job.unit.events for job in jobs)
            outcomes = self._closed_at_least(jobs, error)
        except e.OrchestratorError as error:
            return [error for _ in jobs]
        except Exception as error:  # noqa: BLE001  # one unit that SQLite can't take must not fail the rest
            if len(jobs) == 1:
                return [self.refusal(error)]
            return [outcome for job in jobs for outcome in self._outcomes((job,))]
        self._step_each("txn_committed", jobs, outcomes)
        hook = jobs[0].hook if isinstance(outcomes[0], tuple) else None
        gone = hook is None or hook.after()
        if hook is not None and hook.scrubs:
            self._log_holds_redacted = not self._truncate_log(LOG_PATIENCE_MS)
            hook.scrubbed = gone and not self._log_holds_redacted
        elif self._log_holds_redacted:
            self._log_holds_redacted = not self._truncate_log(0)
        return outcomes

    def _truncate_log(self, patience_ms: int) -> bool:
        """Fold the log into the database and cut it to nothing; False while somebody reads an older state."""
        try:
            self._db.execute(f"PRAGMA busy_timeout = {patience_ms}")
            (busy, _, _) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._db.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT_S * 1000)}")
        except sqlite3.OperationalError:
            return False  # the disk; the next commit meets the same trouble and says so
        return not busy

    def _closed_at_least(self, jobs: Sequence[Job], error: e.DiskFull) -> list[Outcome]:
        """What of them closes something is written in the reserve's room; what does not fit even there is owed."""
        closing = [job for job in jobs if job.unit.closes]
        done: dict[Job, Outcome] = {}
        if closing:
            self._reserve.release()
            try:
                done = dict(zip(closing, self._commit(closing), strict=True))
            except e.DiskFull:
                self._owed += closing
            except Exception as other:  # noqa: BLE001  # as above: whatever it is, it goes to who waits
                done = dict.fromkeys(closing, self.refusal(other))
        return [done.get(job, error) for job in jobs]

    def _has_room(self) -> bool:
        """Whether all is as it should be: nothing is owed, and the reserve is held. Tries to make it so."""
        if self._owed:
            try:
                outcomes = self._commit(self._owed)
            except e.DiskFull:
                return False
            except Exception as error:  # noqa: BLE001  # an outcome that was owed can't be written: all writing stops
                self.stop(f"the outcome of a change can't be written: {error}")
                return False
            written, self._owed = self._owed, []
            self._step_each("txn_committed", written, outcomes)
            self._deliver(list(zip(written, outcomes, strict=True)))
        return not self._reserve.released or self._reserve.allocate()

    def _commit(self, jobs: Sequence[Job]) -> list[Outcome]:
        """One transaction for all. Raises DiskFull, WritesStopped, WorkspaceHeld; then none of them happened."""
        outcomes: list[Outcome] = []
        rows: list[Row] = []
        blobs: list[StoredBlob] = []
        versions: list[VersionRow | DigestLearned] = []
        try:
            self._begin()
            for job in jobs:
                outcomes.append(self._validated(job, rows, blobs, versions))
            self._write(rows, blobs, versions)
            for job, outcome in zip(jobs, outcomes, strict=True):
                if job.hook is not None and isinstance(outcome, tuple):
                    job.hook.inside(self._db)
            self._step_each("txn_open", jobs, outcomes)
            self.check_in_place()  # what the next start will read, or nothing
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            self._undo()
            raise self._failure(error, jobs) from error
        except BaseException:
            self._undo()
            raise
        self._validator.keep()
        self._committed(self._validator.head, self._validator.tip, any(job.unit.closes for job in jobs))
        return outcomes

    def _validated(
        self, job: Job, rows: list[Row], blobs: list[StoredBlob], versions: list[VersionRow | DigestLearned]
    ) -> Outcome:
        try:
            recorded, new_rows = self._validator.validate(job.unit)
        except (StreamMoved, e.RequestIdReused, EventNotSerializable, TypeError, ValueError) as error:
            return error
        rows += new_rows
        # Since it was prepared, a content that was kept may have been collected, or its file removed.
        ready = {blob.digest for blob in job.blobs if self._blobs.is_there(blob)}
        lacking = [blob for blob in job.unit.blobs if blob[0] not in ready and not self._is_kept(blob[0])]
        blobs += (*job.blobs, *self._blobs.prepare(lacking))
        for event in recorded:
            versions += history(event)
        return recorded

    def _write(self, rows: list[Row], blobs: list[StoredBlob], versions: list[VersionRow | DigestLearned]) -> None:
        """Whole batches: each statement is one turn with the interpreter lock."""
        self._db.executemany(sql("append_event"), rows)
        if self._validator.claims:
            self._db.executemany(
                sql("set_request"), [(*key, seen.digest, seen.seq) for key, seen in self._validator.claims.items()]
            )
        if blobs:
            self._db.executemany(sql("add_blob"), [(blob.digest, blob.size, blob.data) for blob in blobs])
        if versions:
            add_versions(self._db, versions)

    # --- small things -------------------------------------------------------------------

    def _undo(self) -> None:
        self._validator.drop()
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error as error:
            self.stop(f"the journal can't be written: {error}")

    def _failure(self, error: sqlite3.Error, jobs: Sequence[Job]) -> e.OrchestratorError | sqlite3.Error:
        """What a failed transaction means for its callers, and for all later ones."""
        if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError | sqlite3.InterfaceError):
            return error  # a value that doesn't fit the schema: a defect of the unit, not of the disk
        trouble, name = trouble_of(error, "the journal"), getattr(error, "sqlite_errorname", "")
        if isinstance(trouble, e.DiskFull):
            return e.DiskFull(f"{NO_SPACE}; nothing was changed")
        if not isinstance(trouble, e.JournalCorrupt | e.StateDirectoryUnusable):
            return trouble  # the next unit may fare better
        if not name.startswith(DISK_FAILED) and not any(job.unit.events for job in jobs):
            return e.JournalCorrupt(f"the journal can't be written: {error}")  # a snapshot: the events go on without it
        damaged = isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError)
        return self.stop_after(f"the journal can't be written: {error}", VERIFY if damaged else MEND)

    def _stopped(self) -> e.WritesStopped:
        return e.WritesStopped(self._broken or "", hint=self._mend)

    def _begin(self) -> None:
        """Open a transaction, unless another daemon did since. Raises WritesStopped, WorkspaceHeld."""
        self._db.execute("BEGIN IMMEDIATE")
        row = self._db.execute(sql("epoch")).fetchone()
        if row is None:
            self.stop("the journal lacks its epoch: somebody has altered it")
            raise self._stopped()
        if row != (self._epoch,):
            raise e.WorkspaceHeld(
                "another daemon has opened this journal for writing",
                hint="One daemon serves a workspace; end one of the two.",
            )

    def _is_kept(self, digest: Digest) -> bool:
        return self._db.execute(sql("has_blob"), (digest,)).fetchone() is not None

    def _version_of(self, stream: str) -> int:
        row = self._db.execute(sql("stream_version"), (stream, self._validator.head)).fetchone()
        return int(row[0]) if row else 0

    def _claim_of(self, agent: str, request_id: str) -> RequestSeen | None:
        row = self._db.execute(sql("request"), (agent, request_id)).fetchone()
        return RequestSeen(row[0], Seq(row[1])) if row else None

    def _step_each(self, name: str, jobs: Sequence[Job], outcomes: Sequence[Outcome]) -> None:
        appended = (recorded.event for outcome in outcomes if isinstance(outcome, tuple) for recorded in outcome)
        hooks = (job.hook.name for job in jobs if job.hook is not None and not job.unit.events)
        for tag in dict.fromkeys((*map(tag_of, appended), *hooks)):
            self._step(f"{name}:{tag}")
