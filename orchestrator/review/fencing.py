"""A reviewer out of a plugin, behind a fence: hidden secrets, a time limit, its faults and answers checked."""

from __future__ import annotations

from functools import partial

import anyio
import msgspec

from orchestrator.core.errors import escaped
from orchestrator.core.policy.reviewers import ReviewerSettings
from orchestrator.extensions.aside import Aside
from orchestrator.extensions.manager import Extensions
from orchestrator.logs import logger
from orchestrator.ports.reviewing import (
    ReplyInvalid,
    ReviewerTooSlow,
    ReviewFailure,
    ReviewReply,
    ReviewRequest,
)
from orchestrator.review.answers import reply_of
from orchestrator.review.veiling import VeiledRequest

_VERDICTS = {"content": "edited"}


class FencedReviewer:
    """What a plugin's reviewer can do is answer; whatever else comes out of it is a ReviewFailure.

    It runs in a loop and a thread of its own, so that one which blocks holds up nobody.
    """

    def __init__(self, settings: ReviewerSettings, extensions: Extensions) -> None:
        self._settings, self._extensions = settings, extensions
        self._places = anyio.CapacityLimiter(settings.max_concurrent)
        self._log = logger("plugins")

    async def review(self, request: ReviewRequest) -> ReviewReply:
        """Ask it. Raises ReviewFailure."""
        name = self._settings.name
        veiled = VeiledRequest(request)
        inner = await self._extensions.reviewer(self._settings.plugin)
        async with self._places:
            try:
                reply = await Aside(partial(anyio.run, inner.review, veiled.shown), name=f"reviewer {name}").run(
                    self._settings.timeout_s
                )
            except ReviewFailure:
                raise
            except TimeoutError as error:
                raise ReviewerTooSlow(f"{name} gave no answer in {self._settings.timeout_s:g} s") from error
            except (Exception, SystemExit) as error:  # the fence around a plugin
                self._log.exception("a plugin's reviewer failed", reviewer=name, plugin=self._settings.plugin)
                raise ReviewFailure(f"{name} failed: {type(error).__name__}; the daemon's log has the trace") from error
        if not isinstance(reply, ReviewReply):
            raise ReplyInvalid(f"{name} answered with a {escaped(type(reply).__name__)}")
        said = msgspec.to_builtins(reply)
        answer = {
            "verdict": _VERDICTS.get(said["verdict"], said["verdict"]),
            "regions": said["regions"],
            "reason": said["reason"],
        }
        checked = veiled.unveiled(reply_of(answer, veiled.shown, reply.usage))
        return msgspec.structs.replace(checked, reason=veiled.clean(checked.reason))
