"""How often somebody may call: so many at once, and so many in a second."""

from __future__ import annotations


class TokenBucket:
    """Holds `most` calls at first, and gets `per_s` anew each second."""

    def __init__(self, most: int, per_s: float) -> None:
        self._most, self._per_us = most, per_s / 1e6
        self._left, self._at_us = float(most), 0
        self.refusing = False
        """Whether the last call was one too many."""

    def take(self, now_us: int) -> float:
        """Take one call: 0.0, or the seconds until there is one."""
        self._left = min(self._most, self._left + (now_us - self._at_us) * self._per_us)
        self._at_us = now_us
        self.refusing = self._left < 1
        if self.refusing:
            return (1 - self._left) / self._per_us / 1e6
        self._left -= 1
        return 0.0
