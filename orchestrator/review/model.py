"""A model as a reviewer, over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread

from orchestrator.core.policy.reviewers import ReviewerSettings
from orchestrator.ports.machine import Clock, Entropy
from orchestrator.ports.reviewing import (
    ReplyInvalid,
    ReviewerBusy,
    ReviewerRefused,
    ReviewerTooSlow,
    ReviewReply,
    ReviewRequest,
    ReviewUsage,
)
from orchestrator.review.answers import reply_of
from orchestrator.review.calling import Caller, Sleep, without
from orchestrator.review.forms import Said, Turn, form_of
from orchestrator.review.keys import api_key
from orchestrator.review.prompt import Prompt, prompt_of
from orchestrator.review.spending import Purse, cost_microusd
from orchestrator.review.veiling import VeiledRequest

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
        self._caller = Caller(clock, retries=settings.max_retries, sleep=sleep)
        self._purse = Purse(settings, clock)
        self._places = anyio.CapacityLimiter(settings.max_concurrent)

    async def review(self, request: ReviewRequest) -> ReviewReply:
        """Ask, and ask once more where the answer can't be used. Raises ReviewFailure."""
        try:
            async with self._places:
                with anyio.fail_after(self._settings.timeout_s):
                    return await self._ask(request)
        except TimeoutError as error:
            raise ReviewerTooSlow(f"{self._settings.name} gave no answer in {self._settings.timeout_s:g} s") from error

    async def _ask(self, request: ReviewRequest) -> ReviewReply:
        began = self._clock.ticks_us()
        key = await to_thread.run_sync(api_key, self._settings, self._environment, self._workspace)
        veiled = VeiledRequest(request)
        prompt = prompt_of(veiled.shown, self._entropy.bytes(12).hex(), schema_in_text=self._form.schema_in_text)
        usage = ReviewUsage(model=self._settings.model, prompt_hash=prompt.digest)
        turns: tuple[Turn, ...] = ()
        while True:
            said = await self._call(prompt, turns, key, usage.cost_microusd)
            usage = self._counted(usage, said, began)
            try:
                if said.trouble:
                    raise ReplyInvalid(said.trouble)
                reply = veiled.unveiled(reply_of(said.content, veiled.shown, usage))
                return msgspec.structs.replace(reply, reason=veiled.clean(reply.reason))
            except ReplyInvalid as error:
                wrong = without(error.message, key)
                turns = (*turns, Turn(veiled.clean(said.text[:MOST_SAID]), wrong))
                if len(turns) == TRIES:
                    raise ReplyInvalid(f"{self._settings.name} answered {TRIES} times, at last: {wrong}") from error

    async def _call(self, prompt: Prompt, turns: tuple[Turn, ...], key: str, spent: int) -> Said:
        settings, form = self._settings, self._form
        body = form.body(prompt, settings.model, settings.max_tokens, turns)
        asked = prompt.tokens + sum(Prompt("", turn.said + turn.wrong, "").tokens for turn in turns)
        with self._purse.call(asked, spent) as slip:
            try:
                data = await self._caller.post(form.url(settings.url), form.headers(key), body, secret=key)
            except (ReviewerBusy, ReviewerRefused):
                slip.settle(0, 0)  # it says itself that it did nothing
                raise
            said = form.said(data)
            tokens_in, tokens_out = max(0, said.input_tokens), max(0, said.output_tokens)
            slip.settle(tokens_in + tokens_out, cost_microusd(settings, tokens_in, tokens_out))
        return msgspec.structs.replace(said, input_tokens=tokens_in, output_tokens=tokens_out)

    def _counted(self, usage: ReviewUsage, said: Said, began: int) -> ReviewUsage:
        """With one more call on the bill."""
        tokens_in, tokens_out = said.input_tokens, said.output_tokens
        return ReviewUsage(
            model=said.model[:200] or usage.model,
            prompt_hash=usage.prompt_hash,
            input_tokens=usage.input_tokens + tokens_in,
            output_tokens=usage.output_tokens + tokens_out,
            cost_microusd=usage.cost_microusd + cost_microusd(self._settings, tokens_in, tokens_out),
            took_ms=(self._clock.ticks_us() - began) // 1000,
        )
