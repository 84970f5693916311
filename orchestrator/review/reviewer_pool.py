"""The reviewers that a policy names, made at their first use, and again when their settings change.

A program gets the request as JSON on its standard input, and prints the answer. A person is not called.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial

import anyio
import msgspec
from anyio.abc import Process

from orchestrator import supervised_process
from orchestrator.core.errors import escaped
from orchestrator.core.events.conflicts import ReviewUsage
from orchestrator.core.policy.rules import HumanSettings, Policy, ProgramSettings, ReviewerSettings
from orchestrator.ports.machine import Clock
from orchestrator.ports.reviewers import (
    Reviewer,
    ReviewerRefused,
    ReviewerTimeout,
    ReviewerUnusable,
    ReviewReply,
    ReviewReplyInvalid,
    ReviewRequest,
)
from orchestrator.review.checked import CheckedReviewer
from orchestrator.review.replies import MOST_ANSWER_BYTES, SCHEMA


class Reviewers(Mapping[str, Reviewer]):
    """By name; follows the policy when that is loaded anew."""

    def __init__(self, policy: Callable[[], Policy], program: Callable[[ProgramSettings], Reviewer]) -> None:
        """`program` makes the reviewer that a program is."""
        self._policy, self._program = policy, program
        self._made: dict[str, tuple[ReviewerSettings, Reviewer]] = {}

    def __getitem__(self, name: str) -> Reviewer:
        settings = next((item for item in self._policy().reviewers if item.name == name), None)
        if settings is None:
            raise KeyError(name)
        made = self._made.get(name)
        if made is None or made[0] != settings:  # with other settings it counts its costs anew
            reviewer = HumanReviewer() if isinstance(settings, HumanSettings) else self._program(settings)
            made = self._made[name] = (settings, reviewer)
        return made[1]

    def __iter__(self) -> Iterator[str]:
        return iter([settings.name for settings in self._policy().reviewers])

    def __len__(self) -> int:
        return len(self._policy().reviewers)


class HumanReviewer:
    """Calls nobody: the conflict waits in the list until a person resolves it, or its time is up."""

    def asked(self, request: ReviewRequest) -> ReviewUsage:
        """A person is no model, and is sent nothing."""
        return ReviewUsage()

    async def review(self, request: ReviewRequest) -> ReviewReply:
        """Until cancelled: a person answers by `orchestrator conflicts resolve`, which ends the review."""
        await anyio.sleep_forever()
        raise AssertionError("slept for ever")


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
    return CheckedReviewer(settings, partial(_ask_program, settings, given, variables_fd), clock=clock)


def question_of(request: ReviewRequest) -> bytes:
    """What a program reads."""
    return msgspec.json.encode({**msgspec.to_builtins(request), "answer_schema": SCHEMA})


async def _ask_program(
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
    answer, errors = bytearray(), bytearray()
    try:
        with anyio.move_on_after(timeout_s) as scope:
            await _talk(process, question_of(request), answer, errors)
            await process.wait()
    finally:
        with anyio.CancelScope(shield=True):
            await supervised_process.end(process)
    last = " ".join(errors.decode("utf-8", "replace").splitlines()).strip() or "nothing"
    if scope.cancelled_caught:
        raise ReviewerTimeout(f"it was not done in {settings.timeout_s:g} s; its standard error: {last}")
    if len(answer) > MOST_ANSWER_BYTES:
        raise ReviewReplyInvalid(f"it printed more than {MOST_ANSWER_BYTES >> 20} MB")
    if process.returncode != 0:
        raise ReviewerRefused(f"it ended with exit code {process.returncode}; its standard error: {last}")
    return bytes(answer)


async def _talk(process: Process, question: bytes, answer: bytearray, errors: bytearray) -> None:
    """Ask, and read both outputs until they end or it has printed too much."""
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    assert stdin is not None
    assert stdout is not None
    assert stderr is not None

    async def ask() -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # it may answer before it has read all
            await stdin.send(question)
            await stdin.aclose()

    async def keep_last() -> None:
        async for piece in stderr:
            errors.extend(piece)
            del errors[:-KEPT_OF_ERRORS]

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        tasks.start_soon(keep_last)
        async for piece in stdout:
            answer.extend(piece)
            if len(answer) > MOST_ANSWER_BYTES:
                tasks.cancel_scope.cancel()
                await supervised_process.end(process)
                return
