"""What the daemon remembers of contents, and can compute again: said by `status`, dropped by `cache clear`."""

from __future__ import annotations

from typing import Protocol

from orchestrator.api import administration as a
from orchestrator.api import parameters as p
from orchestrator.engine.caller import Call, Caller


class Clearable(Protocol):
    """One cache. `clear` may be called while others use it: they compute anew. None of it blocks for long."""

    @property
    def held_bytes(self) -> int:
        """About what its values take."""

    def __len__(self) -> int:
        """How many values it has."""

    def clear(self) -> None:
        """Forget all of them."""


class Caches:
    """All caches of what contents say, by name."""

    def __init__(self) -> None:
        self._caches: dict[str, list[Clearable]] = {}

    def add(self, name: str, *caches: Clearable) -> None:
        """Take caches in, under a name that several may share."""
        self._caches.setdefault(name, []).extend(caches)

    def lines(self) -> tuple[a.CacheLine, ...]:
        """What is held now, without the caches that hold nothing."""
        lines = (
            a.CacheLine(name=name, entries=sum(map(len, caches)), bytes=sum(one.held_bytes for one in caches))
            for name, caches in self._caches.items()
        )
        return tuple(line for line in lines if line.entries)

    async def cache_clear(self, caller: Caller, call: Call, params: p.Params) -> a.ClearedCaches:
        """Drop all of it, and say what it was."""
        held = self.lines()
        for caches in self._caches.values():
            for cache in caches:
                cache.clear()
        return a.ClearedCaches(caches=held)
