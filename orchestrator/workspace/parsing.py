"""The parser: outlines by content, made by a process apart, which is replaced when it dies."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import OrderedDict
from functools import partial
from pathlib import Path

import anyio
import anyio.abc
import msgspec
from anyio import to_thread

from orchestrator.core.ids import Digest, WorkspacePath
from orchestrator.core.text.encoding import decode
from orchestrator.core.text.outline.languages import language_of
from orchestrator.core.text.outline.plain import plain_outline
from orchestrator.core.text.symbols import Outline
from orchestrator.logs import logger

LIMIT_S = 4.0
"""For one text. 20,000 lines of Python take 0.4 s."""

MOST_PARSED_BYTES = 8 * 1024 * 1024
"""Larger texts are outlined by indentation and headings: a tree takes twenty times its text."""

CACHE_BYTES = 16 * 1024 * 1024
"""Of outlines as the worker wrote them; in memory they take about four times as much."""

OFF_LOOP_BYTES = 64 * 1024
"""Larger texts are outlined without a grammar in a thread."""

_GRACE_S = 5.0
_LENGTH_BYTES = 4  # as in `workspace.outlining`, which is not imported here: no grammar comes into the daemon
_TAKEN_BYTES = 1


class WorkerDied(Exception):
    """It ended before it had answered."""


class WorkerGone(WorkerDied):
    """It ended before it had begun: another one may fare better."""


class LocalParser:
    """Outlines texts in one worker process, one after another; it starts with the first."""

    def __init__(self, *, limit_s: float = LIMIT_S, cache_bytes: int = CACHE_BYTES) -> None:
        self._limit_s, self._most = limit_s, cache_bytes
        self._cache: OrderedDict[tuple[str, Digest], tuple[Outline | None, int]] = OrderedDict()
        self._held = 0
        self._worker: Worker | None = None
        self._turn = anyio.Lock()
        self._log = logger("parser")

    @property
    def worker_pid(self) -> int | None:
        """The process that parses, while there is one."""
        return self._worker.pid if self._worker is not None else None

    async def outline(self, path: WorkspacePath, digest: Digest, data: bytes) -> Outline | None:
        """See `ports.parsing.Parser`."""
        language = language_of(path)
        if language is None or len(data) > MOST_PARSED_BYTES:
            return await _plain(data)
        async with self._turn:
            known = self._cache.get((language, digest))
            if known is None:
                known = await self._made(language, data)
                self._keep((language, digest), known)
            else:
                self._cache.move_to_end((language, digest))
            return known[0]

    async def aclose(self) -> None:
        """End the worker."""
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.end()

    async def _made(self, language: str, data: bytes) -> tuple[Outline | None, int]:
        """The outline and its size."""
        job = msgspec.msgpack.encode((language, data, self._limit_s))
        try:
            try:
                said = await self._ask(job)
            except WorkerGone:
                await self.aclose()
                said = await self._ask(job)
        except (WorkerDied, TimeoutError, OSError) as error:
            self._log.warning("a text is outlined without its grammar", language=language, error=repr(error))
            await self.aclose()
            return await _plain(data), len(data) // 8
        except BaseException:  # cancelled between question and answer: the next would get this one's
            with anyio.CancelScope(shield=True):
                await self.aclose()
            raise
        return msgspec.msgpack.decode(said, type=Outline | None), len(said)

    async def _ask(self, job: bytes) -> bytes:
        """Raises WorkerDied, TimeoutError, OSError."""
        if self._worker is None:
            self._worker = await Worker.start()
        with anyio.fail_after(self._limit_s + _GRACE_S):
            return await self._worker.ask(job)

    def _keep(self, key: tuple[str, Digest], made: tuple[Outline | None, int]) -> None:
        self._cache[key] = made
        self._held += made[1]
        while self._held > self._most and len(self._cache) > 1:
            self._held -= self._cache.popitem(last=False)[1][1]


class Worker:
    """The process of `workspace.outlining`, and the pipes to it."""

    def __init__(self, process: anyio.abc.Process) -> None:
        self._process = process
        self.pid = process.pid

    @staticmethod
    async def start() -> Worker:
        """Raises OSError."""
        # -P: what lies in the present folder, which agents may write, is not imported; but our own code is.
        ours = (str(Path(__file__).parents[2]), *os.environ.get("PYTHONPATH", "").split(os.pathsep))
        process = await anyio.open_process(
            (sys.executable, "-P", "-m", "orchestrator.workspace.outlining"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, ours))},
            start_new_session=True,
        )
        return Worker(process)

    async def ask(self, job: bytes) -> bytes:
        """Raises WorkerDied, and of that WorkerGone where it never saw the job."""
        if self._process.stdin is None:
            raise WorkerGone("it has no pipe")
        taken = False
        try:
            # Whole, whoever goes away meanwhile: what is left unsent would break the pipe of a process that is killed.
            with anyio.move_on_after(_GRACE_S, shield=True) as sending:
                await self._process.stdin.send(len(job).to_bytes(_LENGTH_BYTES) + job)
            if sending.cancelled_caught:
                raise WorkerGone("it takes no job")
            await self._receive(_TAKEN_BYTES)
            taken = True
            return await self._receive(int.from_bytes(await self._receive(_LENGTH_BYTES)))
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


async def _plain(data: bytes) -> Outline | None:
    if len(data) > OFF_LOOP_BYTES:
        return await to_thread.run_sync(partial(_outlined_plainly, data))
    return _outlined_plainly(data)


def _outlined_plainly(data: bytes) -> Outline | None:
    document = decode(data)
    return plain_outline(document.lines) if document is not None else None
