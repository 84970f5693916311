"""A bounded cache against a list of what was used, in its order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.bounded_cache import BoundedCache

KEYS = st.integers(0, 5)


@given(st.lists(st.one_of(KEYS, st.tuples(KEYS, st.integers(0, 40)))), st.integers(0, 100))
def test_the_least_recently_used_goes(steps: list[int | tuple[int, int]], most: int) -> None:
    cache: BoundedCache[int, str] = BoundedCache(most)
    used: list[tuple[int, int]] = []  # keys with their costs, the newest last
    for step in steps:
        key = step if isinstance(step, int) else step[0]
        known = next((one for one in used if one[0] == key), None)
        if isinstance(step, int):
            assert cache.get(key) == (f"value {key}" if known else None)
            used = [*(one for one in used if one[0] != key), *([known] if known else [])]
        else:
            cache.put(key, f"value {key}", step[1])
            used = [*(one for one in used if one[0] != key), step]
            while sum(cost for _, cost in used) > most and len(used) > 1:
                used.pop(0)
        assert (len(cache), cache.held_bytes) == (len(used), sum(cost for _, cost in used))
        assert all((number in cache) == any(one[0] == number for one in used) for number in range(6))
    cache.clear()
    assert (len(cache), cache.held_bytes, cache.get(0)) == (0, 0, None)
