"""A model as a reviewer, over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread

from orchestrator.core.policy.reviewers import ReviewerSettings
from orchestrator.ports.machine import Clock, Entropy
from orchestrator.ports.reviewers import (
    ReviewerBusy,
    ReviewerRefused,
    ReviewerTimeout,
    ReviewFailure,
    ReviewReply,
    ReviewReplyInvalid,
    ReviewRequest,
    ReviewUsage,
)
from orchestrator.review.answers import MOST_REASON_CHARS, model_name, reply_of
from orchestrator.review.api_key_masking import ApiKeyMasker
from orchestrator.review.api_keys import api_key
from orchestrator.review.budget import Budget, cost_microusd
from orchestrator.review.http import LOOKED_AT, HttpClient, Sleep, without
from orchestrator.review.prompt import Prompt, prompt_of
from orchestrator.review.providers import ModelResponse, RepairTurn, form_of
from orchestrator.review.redaction import RedactedRequest

TRIES = 2
"""The answer, and one repair that is told what was wrong."""

MOST_SAID = 20_000
"""Characters of a bad answer that are shown to the model again."""


class ModelReviewer:
    """Asks one model. Nothing that leaves here holds a secret that `core.text.redact` knows the form of."""

    def __init__(
        self,
        settings: ReviewerSettings,
        *,
        clock: Clock,
        entropy: Entropy,
        environment: Mapping[str, str],
        workspace: Path,
        sleep: Sleep = anyio.sleep,
    ) -> None:
        self._settings, self._clock, self._entropy = settings, clock, entropy
        self._environment, self._workspace = environment, workspace
        self._form = form_of(settings.form)
        self._caller = HttpClient(clock, retries=settings.max_retries, sleep=sleep)
        self._purse = Budget(settings, clock)
        self._places = anyio.CapacityLimiter(settings.max_concurrent)

    async def review(self, request: ReviewRequest) -> ReviewReply:
        """Ask, and ask once more where the answer can't be used. Raises ReviewFailure."""
        try:
            async with self._places:
                with anyio.fail_after(self._settings.timeout_s):
                    key = await to_thread.run_sync(api_key, self._settings, self._environment, self._workspace)
                    return await self._guarded(request, ApiKeyMasker(key))
        except TimeoutError as error:
            raise ReviewerTimeout(f"{self._settings.name} gave no answer in {self._settings.timeout_s:g} s") from error

    async def _guarded(self, request: ReviewRequest, guard: ApiKeyMasker) -> ReviewReply:
        """Whatever it says, its key is not in it."""
        try:
            return await self._ask(request, guard)
        except ReviewFailure as error:
            raise type(error)(guard.mask(error.message), hint=error.hint) from None

    async def _ask(self, request: ReviewRequest, guard: ApiKeyMasker) -> ReviewReply:
        began = self._clock.ticks_us()
        veiled = RedactedRequest(request)
        prompt = prompt_of(veiled.shown, self._entropy.bytes(12).hex(), schema_in_text=self._form.schema_in_text)
        usage = ReviewUsage(model=self._settings.model, prompt_hash=prompt.digest)
        turns: tuple[RepairTurn, ...] = ()
        while True:
            said, cost = await self._call(prompt, turns, guard, usage.cost_microusd)
            usage = self._counted(usage, said, cost, guard, began)
            try:
                if said.trouble:
                    raise ReviewReplyInvalid(said.trouble)
                answer = reply_of(said.content, veiled.shown, usage)
                if any(guard.appears_in(region.lines) for region in answer.regions):
                    raise ReviewReplyInvalid("a region holds the key that the service was called with")
                reply = veiled.restored(answer)
                reason = guard.mask(reply.reason)[:MOST_REASON_CHARS]
                return msgspec.structs.replace(reply, reason=veiled.clean(reason))
            except ReviewReplyInvalid as error:
                wrong = without(error.message, guard)
                turns = (*turns, RepairTurn(veiled.clean(guard.mask(said.text)[:MOST_SAID]), wrong))
                if len(turns) == TRIES:
                    raise ReviewReplyInvalid(
                        f"{self._settings.name} answered {TRIES} times, at last: {wrong}"
                    ) from error

    async def _call(
        self, prompt: Prompt, turns: tuple[RepairTurn, ...], guard: ApiKeyMasker, spent: int
    ) -> tuple[ModelResponse, int]:
        """What it says, and what that cost in millionths of a USD.

        A service that does not say what it took is taken at its most: the question, and `max_tokens`.
        """
        settings, form = self._settings, self._form
        body = form.body(prompt, settings.model, settings.max_tokens, turns)
        asked = prompt.tokens + sum(Prompt("", turn.said + turn.wrong, "").tokens for turn in turns)
        with self._purse.call(asked, spent) as slip:
            try:
                data = await self._caller.post(form.url(settings.url), form.headers(guard.key), body, guard=guard)
            except (ReviewerBusy, ReviewerRefused):
                slip.settle(0, 0)  # it says itself that it did nothing
                raise
            said = form.said(data)
            tokens_in, tokens_out = said.input_tokens or asked, said.output_tokens or settings.max_tokens
            cost = cost_microusd(settings, tokens_in, tokens_out)
            slip.settle(tokens_in + tokens_out, cost)
        return said, cost

    def _counted(
        self, usage: ReviewUsage, said: ModelResponse, cost: int, guard: ApiKeyMasker, began: int
    ) -> ReviewUsage:
        """With one more call on the bill; tokens as the service says them, the cost as the caps count it."""
        return ReviewUsage(
            model=model_name(guard.mask(said.model[:LOOKED_AT])) or usage.model,
            prompt_hash=usage.prompt_hash,
            input_tokens=usage.input_tokens + (said.input_tokens or 0),
            output_tokens=usage.output_tokens + (said.output_tokens or 0),
            cost_microusd=usage.cost_microusd + cost,
            took_ms=(self._clock.ticks_us() - began) // 1000,
        )
