"""Reciprocal rank fusion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.rank_fusion import fused


@pytest.mark.parametrize(("rankings", "expected"), [
    pytest.param([], "", id="nothing"),
    pytest.param(["abc"], "abc", id="one ranking is itself"),
    pytest.param(["abc", "c"], "cab", id="in both is better than first in one"),
    pytest.param(["ab", "cd"], "acbd", id="in turns, the earlier ranking first"),
    pytest.param(["aab", ""], "ab", id="twice is once"),
])  # fmt: skip
def test_fused(rankings: list[str], expected: str) -> None:
    assert "".join(fused(*rankings)) == expected


@given(st.lists(st.lists(st.integers(0, 20), unique=True), max_size=3))
def test_it_holds_all_once_and_keeps_what_all_agree_on(rankings: list[list[int]]) -> None:
    found = fused(*rankings)
    assert sorted(found) == sorted({item for ranking in rankings for item in ranking})
    for first in found:
        for second in found:
            if rankings and all(
                first in ranking and second in ranking and ranking.index(first) < ranking.index(second)
                for ranking in rankings
            ):
                assert found.index(first) < found.index(second)
