"""The clock and the randomness of this machine."""

from __future__ import annotations

import secrets
import time


class SystemClock:
    """Wall time, and how much of it passed."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def ticks_us(self) -> int:
        return time.monotonic_ns() // 1_000


class SystemEntropy:
    """The kernel's randomness."""

    def bytes(self, count: int) -> bytes:
        return secrets.token_bytes(count)
