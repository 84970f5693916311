"""A program as a reviewer: it sees no secret, and nothing that it answers is taken unchecked."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import anyio
import msgspec

from orchestrator.core.errors import escaped
from orchestrator.core.events.conflicts import ReviewUsage
from orchestrator.core.policy.rules import ProgramSettings
from orchestrator.ports.machine import Clock
from orchestrator.ports.reviewers import (
    OverBudget,
    Repair,
    ReviewerTimeout,
    ReviewFailure,
    ReviewLimits,
    ReviewReply,
    ReviewReplyInvalid,
    ReviewRequest,
)
from orchestrator.review.redaction import RedactedRequest
from orchestrator.review.replies import json_object, reply_of, usage_of

TRIES: Final = 2
"""The answer, and one repair for which the reviewer learns what was wrong."""

MOST_ANSWER: Final = 20_000
"""Characters of a bad answer that are shown to the reviewer again, and of a reason."""

MOST_MESSAGE: Final = 2_400

Ask = Callable[[ReviewRequest, float], Awaitable[bytes]]
"""Sends a redacted request, and gives the answer as JSON within so many seconds. Raises ReviewFailure."""


class CheckedReviewer:
    """One reviewer of a policy that is asked."""

    def __init__(self, settings: ProgramSettings, ask: Ask, *, clock: Clock) -> None:
        self._settings, self._ask, self._clock = settings, ask, clock
        self._budget = Budget(settings, clock)
        self._places = anyio.CapacityLimiter(settings.max_concurrent)

    def asked(self, request: ReviewRequest) -> ReviewUsage:
        """The model that policy names, and the hash of the redacted request."""
        return self._asked(RedactedRequest(request))

    def _asked(self, redacted: RedactedRequest) -> ReviewUsage:
        hashed = hashlib.sha256(msgspec.json.encode(redacted.shown)).hexdigest()
        return ReviewUsage(model=self._settings.model, prompt_hash=hashed)

    async def review(self, request: ReviewRequest) -> ReviewReply:
        """Ask, and ask once more where the answer can't be used. Raises ReviewFailure, with no secret in it."""
        redacted = RedactedRequest(request)
        reservation = Reservation(self._asked(redacted))
        try:
            async with self._places:
                self._budget.reserve(reservation)
                return await self._reply(redacted, reservation)
        except ReviewFailure as error:
            message = escaped(redacted.clean(error.message))[:MOST_MESSAGE]
            failure = type(error)(f"{self._settings.name}: {message}", hint=error.hint)
            failure.usage = reservation.usage
            raise failure from error

    async def _reply(self, redacted: RedactedRequest, reservation: Reservation) -> ReviewReply:
        began, usage = self._clock.ticks_us(), reservation.usage
        most = reservation.tokens, reservation.microusd
        repair: Repair | None = None
        while True:
            limits = self._budget.left(usage)
            shown = msgspec.structs.replace(redacted.shown, limits=limits, repair=repair)
            left_s = self._settings.timeout_s - (self._clock.ticks_us() - began) / 1e6
            if left_s <= 0:
                raise ReviewerTimeout(f"no answer in {self._settings.timeout_s:g} s")
            reservation.tokens, reservation.microusd = most
            given = json_object(await self._ask(shown, left_s))
            if "usage" in given:
                usage = _sum(usage, usage_of(given.pop("usage")))
                reservation.tokens, reservation.microusd = usage.input_tokens + usage.output_tokens, usage.cost_microusd
            usage = reservation.usage = msgspec.structs.replace(usage, took_ms=(self._clock.ticks_us() - began) // 1000)
            try:
                reply = redacted.restored(reply_of(given, redacted.shown, usage))
            except ReviewReplyInvalid as error:
                text = _answer_text(given)
                if repair is not None:
                    raise ReviewReplyInvalid(f"it answered {TRIES} times, at last: {error.message}") from error
                if not text:
                    raise
                repair = Repair(answer=redacted.clean(text), problem=redacted.clean(error.message)[:MOST_MESSAGE])
            else:
                return msgspec.structs.replace(reply, reason=redacted.clean(reply.reason[:MOST_ANSWER]))


def _answer_text(given: Mapping[str, Any]) -> str:
    """The answer that is to be repaired; empty where there is none."""
    if given.get("verdict") != "failed":
        return msgspec.json.encode(given).decode()[:MOST_ANSWER]
    text = given.get("said")
    return text[:MOST_ANSWER] if isinstance(text, str) else ""


def _sum(one: ReviewUsage, other: ReviewUsage) -> ReviewUsage:
    return ReviewUsage(
        model=other.model or one.model,
        prompt_hash=other.prompt_hash or one.prompt_hash,
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        cost_microusd=one.cost_microusd + other.cost_microusd,
    )


HOUR_US = 3_600_000_000


class Reservation(msgspec.Struct):
    """One review: what it may take at most, until it says what it took."""

    usage: ReviewUsage  # so far, with what it was asked
    at_us: int = 0
    tokens: int = 0
    microusd: int = 0


class Budget:
    """The last hour of one reviewer. It begins anew with the daemon."""

    def __init__(self, settings: ProgramSettings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._hour: deque[Reservation] = deque()

    def reserve(self, new: Reservation) -> None:
        """Reserve a review. Raises OverBudget.

        What is not counted stays reserved at its most: a call that was cut off may have been billed.
        """
        settings = self._settings
        new.at_us, new.tokens = self._clock.ticks_us(), settings.max_tokens
        new.microusd = round(settings.max_cost_usd * 1e6)
        while self._hour and self._hour[0].at_us <= new.at_us - HOUR_US:
            self._hour.popleft()
        tokens = sum(item.tokens for item in self._hour) + new.tokens
        usd = (sum(item.microusd for item in self._hour) + new.microusd) / 1e6
        if settings.max_tokens_per_hour and tokens > settings.max_tokens_per_hour:
            raise OverBudget(
                f"{tokens} tokens within an hour are more than {settings.max_tokens_per_hour} (max_tokens_per_hour)"
            )
        if settings.max_cost_usd_per_hour and usd > settings.max_cost_usd_per_hour:
            raise OverBudget(
                f"{usd:.4f} USD within an hour are more than {settings.max_cost_usd_per_hour} (max_cost_usd_per_hour)"
            )
        self._hour.append(new)

    def left(self, usage: ReviewUsage) -> ReviewLimits:
        """What a review may still take. Raises OverBudget."""
        settings = self._settings
        tokens = settings.max_tokens - usage.input_tokens - usage.output_tokens
        usd = settings.max_cost_usd - usage.cost_microusd / 1e6
        if settings.max_tokens and tokens <= 0:
            raise OverBudget(f"it took {settings.max_tokens - tokens} tokens (max_tokens: {settings.max_tokens})")
        if settings.max_cost_usd and usd <= 0:
            raise OverBudget(f"it cost {settings.max_cost_usd - usd:.4f} USD (max_cost_usd: {settings.max_cost_usd})")
        return ReviewLimits(
            max_tokens=tokens if settings.max_tokens else None, max_cost_usd=usd if settings.max_cost_usd else None
        )
