"""A reviewer out of a plugin: asked in a thread of its own, so that one which blocks holds up nobody."""

from __future__ import annotations

from functools import partial

import anyio
import msgspec

from orchestrator.core.errors import escaped
from orchestrator.core.policy.rules import PluginSettings
from orchestrator.extensions.detached_thread import DetachedFailure, run_detached
from orchestrator.extensions.manager import Extensions
from orchestrator.ports.machine import Clock
from orchestrator.ports.reviewers import (
    FAILURES,
    Reviewer,
    ReviewerTimeout,
    ReviewFailure,
    ReviewReply,
    ReviewReplyInvalid,
    ReviewRequest,
)
from orchestrator.review.checked import CheckedReviewer
from orchestrator.review.replies import MOST_ANSWER_BYTES


def plugin_reviewer(settings: PluginSettings, extensions: Extensions, *, clock: Clock) -> CheckedReviewer:
    """The reviewer that a plugin makes; `status` shows its failures."""
    note = partial(extensions.note, settings.plugin)
    return CheckedReviewer(settings, partial(_ask, settings, extensions), clock=clock, note=note)


async def _ask(settings: PluginSettings, extensions: Extensions, request: ReviewRequest, timeout_s: float) -> bytes:
    """The answer of a plugin's reviewer, as programs print it. Raises ReviewFailure, whatever comes out of it."""
    name, plugin = settings.name, settings.plugin
    inner = await extensions.reviewer(plugin)
    try:
        said = await run_detached(partial(_answer, inner, request), name=f"reviewer {name}", timeout_s=timeout_s)
    except TimeoutError as error:
        extensions.note(plugin, f"reviewer {name}: no answer in {settings.timeout_s:g} s")
        raise ReviewerTimeout(f"no answer in {settings.timeout_s:g} s") from error
    except DetachedFailure as error:
        extensions.note(plugin, f"reviewer {name}: {error}", trace=error.trace)
        raise ReviewFailure(f"it failed: {error.kind}; the daemon's log has the trace") from error
    if isinstance(said, str):
        raise ReviewReplyInvalid(said)
    if len(said) > MOST_ANSWER_BYTES:
        raise ReviewReplyInvalid(f"the answer is larger than {MOST_ANSWER_BYTES >> 20} MB")
    return said


def _answer(inner: Reviewer, request: ReviewRequest) -> bytes | str:
    """In the plugin's thread: the answer as JSON, or why it is none. Nothing of the plugin's own gets out."""
    try:
        reply: object = anyio.run(inner.review, request)
    except ReviewFailure as error:
        code = next(code for kind in type(error).__mro__ for code, known in FAILURES.items() if kind is known)
        reason = error.message if type(error.message) is str else "(no message)"
        return msgspec.json.encode({"verdict": "failed", "code": code, "reason": escaped(reason[:2000])})
    if type(reply) is not ReviewReply:
        return f"the answer is a {escaped(type(reply).__name__)[:100]}"
    try:
        return msgspec.json.encode(reply)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return f"the answer can't be read: {escaped(str(error))[:300]}"
