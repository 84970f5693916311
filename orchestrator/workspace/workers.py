"""A few worker processes for costly work on texts: jobs in, answers out."""

from __future__ import annotations

import errno
import io
import os
import pickle
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
import anyio.abc
from anyio import to_thread
from anyio.streams.buffered import BufferedByteReceiveStream

from orchestrator.core.errors import TextTooCostly
from orchestrator.core.system_errors import OUT_OF_DESCRIPTORS
from orchestrator.logs import logger
from orchestrator.ports.machine import LIMIT_S, OWNER
from orchestrator.workspace.turns import Turns
from orchestrator.workspace.worker_process import ANSWER, JOB

T = TypeVar("T")

WORKERS = 2
"""For work of one length, the short and the long: so an outline waits for no merge or search, whoever's that is."""

SHORT_S = 5.0
"""Work with no more time than this is short."""

MOST_FREE = 2
"""Workers that are kept for later work."""

OFF_LOOP_BYTES = 64 * 1024
"""Larger answers are unpacked in a thread."""

_GRACE_S = 30.0
"""For a worker to start and take a job, and beyond a job's processor time: a busy machine shares its processors out."""


class WorkerDied(Exception):
    """It ended before it had answered."""


class _Packer(pickle.Pickler):
    """Comes back to the interpreter at each struct, so that other threads have their turn."""

    def reducer_override(self, packed: object) -> Any:
        return NotImplemented  # as it is packed anyway


def _packed(work: Callable[[], object]) -> bytes:
    pieces = io.BytesIO()
    _Packer(pieces, -1).dump(work)
    return pieces.getvalue()


UNNAMED = -1
"""What uvloop has for an errno where there is no descriptor left for a pipe."""


class WorkerPool:
    """See `ports.Workers`. Starts a worker when there is work and none is free, and replaces one that ended."""

    def __init__(self) -> None:
        self._free: list[Worker] = []
        self._short, self._long = Turns(WORKERS), Turns(WORKERS)
        self._log = logger("workers")

    @property
    def free_pids(self) -> list[int]:
        """The processes that are idle."""
        return [worker.pid for worker in self._free if not worker.ended]

    async def run(self, work: Callable[[], T], *, limit_s: float = LIMIT_S) -> T:
        owner, job = OWNER.get(), await to_thread.run_sync(_packed, work)
        try:
            async with (self._short if limit_s <= SHORT_S else self._long).taken(owner):
                answer = await self._answer(job, limit_s)
            unpacked = partial(pickle.loads, answer)
            ok, value = await to_thread.run_sync(unpacked) if len(answer) > OFF_LOOP_BYTES else unpacked()
        except (WorkerDied, TimeoutError, OSError, pickle.PickleError) as error:
            if isinstance(error, OSError) and error.errno in OUT_OF_DESCRIPTORS:
                raise
            self._log.warning("the text worker did not finish", error=repr(error), limit_s=limit_s)
            raise TextTooCostly(limit_s) from error
        if not ok:
            raise value
        return cast("T", value)

    async def _answer(self, job: bytes, limit_s: float) -> bytes:
        """Raises WorkerDied, TimeoutError, OSError; the worker is gone then."""
        while self._free and self._free[-1].ended:
            await self._free.pop().end()
        worker = self._free.pop() if self._free else await Worker.start()
        spent = True
        try:
            with anyio.fail_after(limit_s + _GRACE_S):
                answer, spent = await worker.ask(job, limit_s)
            return answer
        finally:
            if not spent and len(self._free) < MOST_FREE:
                self._free.append(worker)
            else:  # it died, works for a cancelled call, has grown, or is one too many
                with anyio.CancelScope(shield=True):
                    await worker.end()

    async def aclose(self) -> None:
        """End the workers."""
        while self._free:
            await self._free.pop().end()


class Worker:
    """A process of `worker_process`, and the pipes to it."""

    def __init__(self, process: anyio.abc.Process) -> None:
        if process.stdin is None or process.stdout is None:
            raise WorkerDied("it has no pipes")
        # A job that was sent is in the pipe as a whole: what waited here would be an error once the process is killed.
        cast("Any", process.stdin)._stream.transport.set_write_buffer_limits(high=0)  # anyio has no word for it
        self._process, self.pid = process, process.pid
        self._jobs, self._answers = process.stdin, BufferedByteReceiveStream(process.stdout)

    @classmethod
    async def start(cls) -> Worker:
        """Raises OSError."""
        # Nothing is imported from the current folder, nor below it: agents may write there. Our own code still is.
        ours = (str(Path(__file__).parents[2]), *os.environ.get("PYTHONPATH", "").split(os.pathsep))
        try:
            process = await anyio.open_process(
                (sys.executable, "-P", "-m", "orchestrator.workspace.worker_process"),
                stderr=None,
                cwd="/",
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, ours))},
                start_new_session=True,
            )
        except OSError as error:
            if error.errno == UNNAMED:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE)) from error
            raise
        return cls(process)

    async def ask(self, job: bytes, limit_s: float) -> tuple[bytes, bool]:
        """The answer, and whether the worker has grown so much that it ends after it. Raises WorkerDied."""
        try:
            # A cancelled caller does not interrupt this: half a job would break the pipe of a killed process.
            with anyio.move_on_after(_GRACE_S, shield=True) as sending:
                await self._jobs.send(JOB.pack(limit_s, len(job)))
                await self._jobs.send(job)
            if sending.cancelled_caught:
                raise WorkerDied("it takes no job")
            spent, count = ANSWER.unpack(await self._answers.receive_exactly(ANSWER.size))
            return await self._answers.receive_exactly(count), spent
        except (anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise WorkerDied(f"process {self.pid} ended") from error

    @property
    def ended(self) -> bool:
        return self._process.returncode is not None

    async def end(self) -> None:
        if not self.ended:
            self._process.kill()
        await self._process.aclose()
