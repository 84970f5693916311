"""At most two worker processes for costly work on texts: jobs in, answers out."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
import anyio.abc
import msgspec
from anyio import to_thread

from orchestrator.core.errors import TextTooCostly
from orchestrator.core.fair_queue import FairQueue
from orchestrator.logs import logger
from orchestrator.ports.workers import LIMIT_S, OWNER

T = TypeVar("T")

WORKERS = 2

OF_ONE = 1
"""Workers of one owner, so that nobody else's work waits for all that one has."""

LARGE_BYTES = 256 * 1024
"""Larger jobs and answers are packed in a thread."""

_GRACE_S = 5.0
_LENGTH_BYTES = 8  # as in `workspace.working`, which is not imported here: no grammar comes into the daemon
_TAKEN_BYTES = 1


class WorkerDied(Exception):
    """It ended before it had answered."""


class WorkerGone(WorkerDied):
    """It ended before it had begun: another one may fare better."""


class _Packer(pickle.Pickler):
    """Comes back to the interpreter at each struct, so that other threads have their turn."""

    def reducer_override(self, packed: object) -> Any:
        return NotImplemented  # as it is packed anyway


def _packed(work: Callable[[], object]) -> bytes:
    pieces = io.BytesIO()
    _Packer(pieces, -1).dump(work)
    return pieces.getvalue()


class WorkerPool:
    """Starts a worker when there is work and none is free, and another one in place of one that ended."""

    def __init__(self) -> None:
        self._free: list[Worker] = []
        self._busy_of: Counter[str] = Counter()
        self._queue: FairQueue[anyio.Event] = FairQueue()
        self._log = logger("workers")

    @property
    def free_pids(self) -> list[int]:
        """The processes that wait for work."""
        return [worker.pid for worker in self._free]

    async def ask(self, kind: bytes, job: bytes, limit_s: float) -> bytes:
        """The answer to a job. Raises WorkerDied, TimeoutError, OSError; the worker is gone then."""
        owner = OWNER.get()
        await self._begin(owner)
        worker: Worker | None = None
        try:
            while True:
                fresh = not self._free
                worker = await Worker.start() if fresh else self._free.pop()
                try:
                    with anyio.fail_after(limit_s + _GRACE_S):
                        said, spent = await worker.ask(kind, job, limit_s)
                    break
                except WorkerGone:
                    await worker.end()
                    if fresh:
                        raise
            if not spent:
                self._free.append(worker)
                worker = None
            return said
        finally:
            if worker is not None:  # it died, or still works for who is gone, or has grown
                with anyio.CancelScope(shield=True):
                    await worker.end()
            self._end(owner)

    async def run(self, work: Callable[[], T], *, limit_s: float = LIMIT_S) -> T:
        """See `ports.effort.Effort`."""
        job = await to_thread.run_sync(_packed, work)
        try:
            said = await self.ask(b"c", job, limit_s)
        except (WorkerDied, TimeoutError, OSError, pickle.PickleError) as error:
            self._log.warning("the text worker did not finish", error=repr(error), limit_s=limit_s)
            raise TextTooCostly(limit_s) from error
        if len(said) > LARGE_BYTES:
            ok, value = await to_thread.run_sync(pickle.loads, said)
        else:
            ok, value = pickle.loads(said)
        if not ok:
            raise value
        return cast("T", value)

    async def aclose(self) -> None:
        """End the workers."""
        while self._free:
            await self._free.pop().end()

    async def _begin(self, owner: str) -> None:
        if not self._queue.waits(owner) and self._may(owner):
            self._busy_of[owner] += 1
            return
        granted = anyio.Event()
        self._queue.put(owner, granted)
        try:
            await granted.wait()
        except BaseException:  # cancelled
            if not self._queue.remove(owner, granted):
                self._end(owner)
            raise

    def _end(self, owner: str) -> None:
        self._busy_of[owner] -= 1
        while (following := self._queue.take(self._may)) is not None:
            self._busy_of[following[0]] += 1
            following[1].set()
        self._busy_of += Counter()  # drops those at zero

    def _may(self, owner: str) -> bool:
        return self._busy_of[owner] < OF_ONE and self._busy_of.total() < WORKERS


class Worker:
    """The process of `workspace.working`, and the pipes to it."""

    def __init__(self, process: anyio.abc.Process) -> None:
        self._process = process
        self.pid = process.pid

    @staticmethod
    async def start() -> Worker:
        """Raises OSError."""
        # -P: what lies in the present folder, which agents may write, is not imported; but our own code is.
        ours = (str(Path(__file__).parents[2]), *os.environ.get("PYTHONPATH", "").split(os.pathsep))
        process = await anyio.open_process(
            (sys.executable, "-P", "-m", "orchestrator.workspace.worker_process"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, ours))},
            start_new_session=True,
        )
        return Worker(process)

    async def ask(self, kind: bytes, job: bytes, limit_s: float) -> tuple[bytes, bool]:
        """The answer, and whether the worker has grown so much that it ends with it.

        Raises WorkerDied, and of that WorkerGone where it never saw the job.
        """
        if self._process.stdin is None:
            raise WorkerGone("it has no pipe")
        taken = False
        head = kind + msgspec.json.encode(limit_s).rjust(_LENGTH_BYTES) + len(job).to_bytes(_LENGTH_BYTES)
        try:
            # Whole, whoever goes away meanwhile: what is left unsent would break the pipe of a process that is killed.
            with anyio.move_on_after(_GRACE_S, shield=True) as sending:
                await self._process.stdin.send(head)
                await self._process.stdin.send(job)
            if sending.cancelled_caught:
                raise WorkerGone("it takes no job")
            await self._receive(_TAKEN_BYTES)
            taken = True
            spent = bool(int.from_bytes(await self._receive(_TAKEN_BYTES)))
            return await self._receive(int.from_bytes(await self._receive(_LENGTH_BYTES))), spent
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise (WorkerDied if taken else WorkerGone)(f"process {self.pid} ended") from error

    async def _receive(self, count: int) -> bytes:
        answers = self._process.stdout
        if answers is None:
            raise WorkerGone("it has no pipe")
        pieces = bytearray()
        while len(pieces) < count:
            pieces += await answers.receive(count - len(pieces))
        return bytes(pieces)

    async def end(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.aclose()
