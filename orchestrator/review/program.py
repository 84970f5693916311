"""A program as a reviewer: the request as JSON on its standard input, the answer as JSON on its output."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from functools import partial

import anyio
import msgspec
from anyio.abc import ByteReceiveStream, ByteSendStream, Process

from orchestrator import supervised_process
from orchestrator.core.errors import escaped
from orchestrator.core.policy.rules import ProgramSettings
from orchestrator.ports.machine import Clock
from orchestrator.ports.reviewers import (
    ReviewerRefused,
    ReviewerTimeout,
    ReviewerUnusable,
    ReviewReplyInvalid,
    ReviewRequest,
)
from orchestrator.review.checked import CheckedReviewer
from orchestrator.review.replies import MOST_ANSWER_BYTES, SCHEMA

KEPT_OF_ERRORS = 2000
"""Bytes of its last words on standard error."""

ENVIRONMENT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
"""What it is given of the daemon's own environment; what its `env` names, the daemon itself does not have."""


def program_reviewer(
    settings: ProgramSettings,
    *,
    clock: Clock,
    environment: Mapping[str, str],
    variables_fd: int | None,
    workspace: str,
) -> CheckedReviewer:
    """The reviewer that a program is. `variables_fd` has what its `env` names; None: there is nothing."""
    given = {name: environment[name] for name in ENVIRONMENT if name in environment}
    given["ORCHESTRATOR_WORKSPACE"] = workspace
    return CheckedReviewer(settings, partial(_ask, settings, given, variables_fd), clock=clock)


def question_of(request: ReviewRequest) -> bytes:
    """What a program reads."""
    return msgspec.json.encode({**msgspec.to_builtins(request), "answer_schema": SCHEMA})


async def _ask(
    settings: ProgramSettings,
    environment: Mapping[str, str],
    variables_fd: int | None,
    request: ReviewRequest,
    timeout_s: float,
) -> bytes:
    """Start the program for one request; what it starts ends with it. Raises ReviewFailure."""
    argv = settings.argv
    try:
        process = await supervised_process.start(
            argv,
            cwd="/",
            env=environment,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            variables=settings.env,
            variables_fd=variables_fd,
        )
    except OSError as error:
        raise ReviewerUnusable(f"{escaped(argv[0])} can't be started: {error.strerror}") from error
    said = _Output()
    try:
        with anyio.move_on_after(timeout_s) as scope:
            await said.listen(process, question_of(request))
            await process.wait()
    finally:
        with anyio.CancelScope(shield=True):
            await supervised_process.end(process)
    last = " ".join(said.errors.decode("utf-8", "replace").splitlines()).strip() or "nothing"
    if scope.cancelled_caught:
        raise ReviewerTimeout(f"it was not done in {settings.timeout_s:g} s; its standard error: {last}")
    if len(said.answer) > MOST_ANSWER_BYTES:
        raise ReviewReplyInvalid(f"it printed more than {MOST_ANSWER_BYTES >> 20} MB")
    if process.returncode != 0:
        raise ReviewerRefused(f"it ended with exit code {process.returncode}; its standard error: {last}")
    return bytes(said.answer)


class _Output:
    """What a process prints on its two outputs while it reads its question; both bounded."""

    def __init__(self) -> None:
        self.answer, self.errors = bytearray(), bytearray()

    async def listen(self, process: Process, question: bytes) -> None:
        """Until both outputs end, or it has printed too much."""
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_tell, process.stdin, question)
            tasks.start_soon(self._errors, process.stderr)
            async for piece in process.stdout:
                self.answer += piece
                if len(self.answer) > MOST_ANSWER_BYTES:
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
