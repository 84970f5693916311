"""A reviewer out of a plugin, behind a fence: hidden secrets, a time limit, its faults and answers checked."""

from __future__ import annotations

from functools import partial
from typing import Final

import anyio
import msgspec

from orchestrator.core.errors import escaped
from orchestrator.core.policy.reviewers import ReviewerSettings
from orchestrator.extensions.detached_thread import DetachedFailure, DetachedThread
from orchestrator.extensions.manager import Extensions
from orchestrator.ports.reviewers import (
    FAILURES,
    Reviewer,
    ReviewerTimeout,
    ReviewFailure,
    ReviewReply,
    ReviewReplyInvalid,
    ReviewRequest,
)
from orchestrator.review.answers import MOST_REASON_CHARS, reply_of, usage_of
from orchestrator.review.redaction import RedactedRequest

MOST_ANSWER_BYTES: Final = 4 * 1024 * 1024
MOST_MESSAGE: Final = 2_000


class PluginReviewer:
    """What a plugin's reviewer can do is answer; whatever else comes out of it is a ReviewFailure.

    It runs in a loop and a thread of its own, so that one which blocks holds up nobody. What it
    answers is turned to bytes there, and what it raises to text: nothing of its own gets out.
    """

    def __init__(self, settings: ReviewerSettings, extensions: Extensions) -> None:
        self._settings, self._extensions = settings, extensions
        self._places = anyio.CapacityLimiter(settings.max_concurrent)

    async def review(self, request: ReviewRequest) -> ReviewReply:
        """Ask it. Raises ReviewFailure."""
        veiled = RedactedRequest(request)
        inner = await self._extensions.reviewer(self._settings.plugin)
        async with self._places:
            said = await self._asked(inner, veiled.shown)
        if isinstance(said, _Refusal):
            raise said.failure(veiled.clean(said.message))
        try:
            told = msgspec.json.decode(said, type=_Told)
            verdict = "edited" if told.verdict == "content" else told.verdict
            answer = {"verdict": verdict, "regions": told.regions, "reason": told.reason}
            reply = veiled.restored(reply_of(answer, veiled.shown, usage_of(told.usage)))
        except (msgspec.DecodeError, RecursionError) as error:
            raise self._invalid(escaped(str(error))) from error
        except ReviewReplyInvalid as error:
            raise self._invalid(error.message) from error
        return msgspec.structs.replace(reply, reason=veiled.clean(reply.reason[:MOST_REASON_CHARS]))

    async def _asked(self, inner: Reviewer, shown: ReviewRequest) -> bytes | _Refusal:
        name, plugin, timeout_s = self._settings.name, self._settings.plugin, self._settings.timeout_s
        try:
            said = await DetachedThread(partial(_answer, inner, shown), name=f"reviewer {name}").run(timeout_s)
        except TimeoutError as error:
            self._extensions.note(plugin, f"reviewer {name}: no answer in {timeout_s:g} s")
            raise ReviewerTimeout(f"{name} gave no answer in {timeout_s:g} s") from error
        except DetachedFailure as error:
            self._extensions.note(plugin, f"reviewer {name}: {error.fault.shown}", trace=error.fault.trace)
            raise ReviewFailure(f"{name} failed: {error.fault.kind}; the daemon's log has the trace") from error
        if isinstance(said, bytes) and len(said) > MOST_ANSWER_BYTES:
            raise self._invalid(f"the answer is larger than {MOST_ANSWER_BYTES >> 20} MB")
        if isinstance(said, _Unreadable):
            raise self._invalid(said.why)
        return said

    def _invalid(self, why: str) -> ReviewReplyInvalid:
        self._extensions.note(self._settings.plugin, f"reviewer {self._settings.name}: {why}"[:MOST_MESSAGE])
        return ReviewReplyInvalid(f"{self._settings.name}: {why}"[:MOST_MESSAGE])


class _Told(msgspec.Struct, frozen=True):
    """A ReviewReply, before anybody believes it."""

    verdict: str
    regions: list[object]
    reason: str
    usage: object


class _Refusal(msgspec.Struct, frozen=True):
    """A ReviewFailure that it raised: the nearest of our own kinds, and its message."""

    failure: type[ReviewFailure]
    message: str


class _Unreadable(msgspec.Struct, frozen=True):
    """An answer that is none."""

    why: str


def _answer(inner: Reviewer, shown: ReviewRequest) -> bytes | _Refusal | _Unreadable:
    """In the plugin's thread: as JSON, or what was wrong. Whatever it raises besides."""
    try:
        reply = anyio.run(inner.review, shown)
    except ReviewFailure as error:
        return _refusal(error)
    if type(reply) is not ReviewReply:
        return _Unreadable(f"the answer is a {escaped(type(reply).__name__)[:100]}")
    try:
        return msgspec.json.encode(reply)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return _Unreadable(f"the answer can't be read: {escaped(str(error))[:300]}")


def _refusal(error: ReviewFailure) -> _Refusal:
    kind = next(kind for kind in type(error).__mro__ if kind in FAILURES)
    message = error.message if type(error.message) is str else "(no message)"
    return _Refusal(kind, escaped(message[:MOST_MESSAGE])[:MOST_MESSAGE])
