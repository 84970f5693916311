"""What was computed lately and can be computed again, by key, within a bound."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """The least recently used value goes when the costs of all are over `most_bytes`; the newest always stays."""

    def __init__(self, most_bytes: int) -> None:
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._most = most_bytes
        self.held_bytes = 0
        """What the values take, as far as their costs tell."""

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

    def put(self, key: K, value: V, cost: int) -> V:
        """Keep a value that takes so many bytes of memory."""
        self.held_bytes += cost - self._values.pop(key, (None, 0))[1]
        self._values[key] = value, cost
        while self.held_bytes > self._most and len(self._values) > 1:
            self.held_bytes -= self._values.popitem(last=False)[1][1]
        return value

    def clear(self) -> None:
        """Forget all of it."""
        self._values.clear()
        self.held_bytes = 0
