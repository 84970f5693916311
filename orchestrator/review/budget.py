"""What a reviewer has taken, and whether it may take more. Counted in the daemon, so it holds for all processes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.core.events.conflicts import ReviewUsage
from orchestrator.core.policy.rules import AskedSettings
from orchestrator.ports.machine import Clock
from orchestrator.ports.reviewers import OverBudget, ReviewLimits

HOUR_US = 3_600_000_000


class Reservation:
    """One review: what it may take at most, until it says what it took."""

    def __init__(self, at_us: int, most_tokens: int, most_microusd: int) -> None:
        self.at_us, self._most = at_us, (most_tokens, most_microusd)
        self.tokens, self.microusd = self._most

    def count(self, usage: ReviewUsage | None) -> None:
        """Count what was taken; None: not known, so the most."""
        self.tokens, self.microusd = (
            (usage.input_tokens + usage.output_tokens, usage.cost_microusd) if usage else self._most
        )


class Budget:
    """The last hour of one reviewer. It begins anew with the daemon."""

    def __init__(self, settings: AskedSettings, clock: Clock) -> None:
        self._settings, self._clock = settings, clock
        self._hour: deque[Reservation] = deque()

    @contextmanager
    def reserved(self) -> Iterator[Reservation]:
        """Reserve a review. Raises OverBudget.

        What is not counted stays reserved at its most: a call that was cut off may have been billed.
        """
        settings = self._settings
        new = Reservation(self._clock.ticks_us(), settings.max_tokens, round(settings.max_cost_usd * 1e6))
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
        yield new

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
