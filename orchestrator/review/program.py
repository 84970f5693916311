"""A program as a reviewer: the request as JSON on its standard input, the answer as JSON on its output."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

import anyio
import msgspec
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from orchestrator import supervised_process
from orchestrator.core.errors import escaped
from orchestrator.core.policy.reviewers import ReviewerSettings
from orchestrator.ports.machine import Clock
from orchestrator.ports.reviewers import (
    ReviewerRefused,
    ReviewerTimeout,
    ReviewerUnusable,
    ReviewReply,
    ReviewReplyInvalid,
    ReviewRequest,
    ReviewUsage,
)
from orchestrator.review.answers import MOST_REASON_CHARS, SCHEMA, json_in, reply_of, usage_of
from orchestrator.review.http import NO_KEY, without
from orchestrator.review.redaction import RedactedRequest

MOST_ANSWER_BYTES = 4 * 1024 * 1024
KEPT_OF_ERRORS = 2000
"""Bytes of its last words on standard error."""

ENVIRONMENT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
"""What it is given of the daemon's own besides the names in `env`; no token, no key."""


class ProgramReviewer:
    """Starts one program for each review; what it starts ends with it."""

    def __init__(self, settings: ReviewerSettings, *, clock: Clock, environment: Mapping[str, str]) -> None:
        self._settings, self._clock = settings, clock
        names = (*ENVIRONMENT, *settings.env)
        self._environment = {name: environment[name] for name in names if name in environment}
        self._places = anyio.CapacityLimiter(settings.max_concurrent)

    async def review(self, request: ReviewRequest) -> ReviewReply:
        """Run it. Raises ReviewFailure."""
        async with self._places:
            began = self._clock.ticks_us()
            veiled = RedactedRequest(request)
            shown = msgspec.to_builtins(veiled.shown)
            for region in shown["regions"]:
                del region["keys"]  # what the veil goes by; it is empty in what is shown
            question = msgspec.json.encode({**shown, "answer_schema": SCHEMA})
            answer = await self._run(question)
            usage = ReviewUsage(took_ms=(self._clock.ticks_us() - began) // 1000)
            try:
                said = json_in(answer.decode("utf-8"))
            except UnicodeDecodeError as error:
                raise ReviewReplyInvalid(f"what {self._settings.name} said is not UTF-8") from error
            said, usage = _with_usage(said, usage)
            reply = veiled.restored(reply_of(said, veiled.shown, usage))
            return msgspec.structs.replace(reply, reason=veiled.clean(reply.reason[:MOST_REASON_CHARS]))

    async def _run(self, question: bytes) -> bytes:
        name, argv = self._settings.name, self._settings.argv
        try:
            process = await supervised_process.start(
                argv, cwd="/", env=self._environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as error:
            raise ReviewerUnusable(f"{name}: {escaped(argv[0])} can't be started: {error.strerror}") from error
        said = _Said()
        try:
            with anyio.move_on_after(self._settings.timeout_s) as scope:
                await said.listen(process, question)
                await process.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await supervised_process.end(process)
        last = without(bytes(said.errors).decode("utf-8", "replace"), NO_KEY) or "nothing"
        if scope.cancelled_caught:
            raise ReviewerTimeout(f"{name} was not done in {self._settings.timeout_s:g} s; it said: {last}")
        if said.too_much:
            raise ReviewReplyInvalid(f"{name} said more than {MOST_ANSWER_BYTES >> 20} MB")
        if process.returncode != 0:
            raise ReviewerRefused(f"{name} ended with exit code {process.returncode}; it said: {last}")
        return bytes(said.answer)


class _Said:
    """What a process says on its two outputs while it is told its question; both bounded."""

    def __init__(self) -> None:
        self.answer, self.errors, self.too_much = bytearray(), bytearray(), False

    async def listen(self, process: Process, question: bytes) -> None:
        """Until both outputs end, or it has said too much."""
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_tell, process.stdin, question)
            tasks.start_soon(self._errors, process.stderr)
            async for piece in process.stdout:
                self.answer += piece
                if len(self.answer) > MOST_ANSWER_BYTES:
                    self.too_much = True
                    tasks.cancel_scope.cancel()
                    await supervised_process.end(process)
                    return

    async def _errors(self, stderr: ByteReceiveStream) -> None:
        async for piece in stderr:
            self.errors += piece
            del self.errors[:-KEPT_OF_ERRORS]


async def _tell(stdin: ByteSendStream, question: bytes) -> None:
    """It may answer without having read all of it."""
    try:
        await stdin.send(question)
        await stdin.aclose()
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        return


def _with_usage(said: object, usage: ReviewUsage) -> tuple[object, ReviewUsage]:
    """A program may say what its own model took: `usage`, beside the answer."""
    if not isinstance(said, dict) or "usage" not in said:
        return said, usage
    rest = {key: value for key, value in said.items() if key != "usage"}
    told = usage_of(said["usage"])
    return rest, msgspec.structs.replace(told, took_ms=usage.took_ms)
