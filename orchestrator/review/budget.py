"""What a reviewer has spent, and whether it may spend more."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.core.policy.reviewers import ReviewerSettings
from orchestrator.ports.machine import Clock
from orchestrator.ports.reviewers import OverBudget

HOUR_US = 3_600_000_000


def cost_microusd(settings: ReviewerSettings, input_tokens: int, output_tokens: int) -> int:
    """Millionths of a USD: a price for a million tokens is that of one token in these."""
    cost = input_tokens * settings.usd_per_mtok_input + output_tokens * settings.usd_per_mtok_output
    return round(cost)


class Reservation:
    """One call: first what it may cost at most, then what it did cost."""

    def __init__(self, at_us: int, tokens: int, microusd: int) -> None:
        self.at_us, self.tokens, self.microusd = at_us, tokens, microusd

    def settle(self, tokens: int, microusd: int) -> None:
        self.tokens, self.microusd = tokens, microusd


class Budget:
    """The last hour of one reviewer, and the review that is under way. Begins anew with the daemon."""

    def __init__(self, settings: ReviewerSettings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._slips: deque[Reservation] = deque()

    @contextmanager
    def call(self, asked: int, spent_microusd: int) -> Iterator[Reservation]:
        """Reserve one call of `asked` tokens, in a review that has cost so much already. Raises OverBudget.

        What is not settled stays reserved at its most: a call that was cut off may have been billed.
        """
        settings = self._settings
        if asked > settings.max_input_tokens:
            raise OverBudget(
                f"the question has about {asked} tokens, {settings.name} takes {settings.max_input_tokens} "
                "(max_input_tokens)"
            )
        most = cost_microusd(settings, asked, settings.max_tokens)
        if settings.max_cost_usd and spent_microusd + most > settings.max_cost_usd * 1e6:
            raise OverBudget(
                f"it may cost {(spent_microusd + most) / 1e6:.4f} USD, more than {settings.max_cost_usd} "
                f"(max_cost_usd of {settings.name})"
            )
        slip = Reservation(self._clock.ticks_us(), asked + settings.max_tokens, most)
        self._check_hour(slip)
        self._slips.append(slip)
        yield slip

    def _check_hour(self, slip: Reservation) -> None:
        settings = self._settings
        while self._slips and self._slips[0].at_us <= slip.at_us - HOUR_US:
            self._slips.popleft()
        tokens = sum(item.tokens for item in self._slips) + slip.tokens
        microusd = sum(item.microusd for item in self._slips) + slip.microusd
        if settings.max_tokens_per_hour and tokens > settings.max_tokens_per_hour:
            raise OverBudget(
                f"{tokens} tokens within an hour are more than {settings.max_tokens_per_hour} "
                f"(max_tokens_per_hour of {settings.name})"
            )
        if settings.max_cost_usd_per_hour and microusd > settings.max_cost_usd_per_hour * 1e6:
            raise OverBudget(
                f"{microusd / 1e6:.4f} USD within an hour are more than {settings.max_cost_usd_per_hour} "
                f"(max_cost_usd_per_hour of {settings.name})"
            )
