"""What was computed lately and can be computed again, by key, within a bound."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """The least recently used value goes when the costs of all are over `most`; the newest always stays.

    A cost is what a value takes in bytes, or whatever is counted.
    """

    def __init__(self, most: int) -> None:
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._most = most
        self.held_bytes = 0
        """The costs of all; bytes where these are."""

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """The value, used now."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def put(self, key: K, value: V, cost: int = 1) -> V:
        """Keep a value."""
        self.held_bytes += cost - self._values.pop(key, (None, 0))[1]
        self._values[key] = value, cost
        while self.held_bytes > self._most and len(self._values) > 1:
            self.held_bytes -= self._values.popitem(last=False)[1][1]
        return value

    def clear(self) -> None:
        """Forget all of it."""
        self._values.clear()
        self.held_bytes = 0
