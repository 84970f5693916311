"""The clock and the randomness of this machine."""

from __future__ import annotations

import ctypes
import secrets
import sys
import time


def give_memory_back() -> None:
    """Hand what the C library has free to the system: the peak of a start stays with it otherwise."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
        if trim is not None:
            trim(0)


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
