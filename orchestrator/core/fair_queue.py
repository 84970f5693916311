"""A queue that takes turns between its owners, whatever the number of entries each has."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Items of several owners: first in, first out for each owner; round robin between owners."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, deque[T]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, owner: str, item: T) -> None:
        """An owner that has nothing waiting comes last in the round."""
        self._waiting.setdefault(owner, deque()).append(item)

    def waits(self, owner: str) -> bool:
        """Whether an item of this owner waits."""
        return owner in self._waiting

    def take(self, may: Callable[[str], bool]) -> tuple[str, T] | None:
        """The next item, of the first owner in the round that `may` have one; that owner comes last from then on."""
        for owner, items in self._waiting.items():
            if may(owner):
                item = items.popleft()
                self._waiting.move_to_end(owner)
                if not items:
                    del self._waiting[owner]
                return owner, item
        return None

    def remove(self, owner: str, item: T) -> bool:
        """Remove an item; False if it does not wait any more."""
        items = self._waiting.get(owner)
        if items is None or item not in items:
            return False
        items.remove(item)
        if not items:
            del self._waiting[owner]
        return True
