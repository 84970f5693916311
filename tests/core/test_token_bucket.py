"""So many calls at once, and so many in a second."""

from __future__ import annotations

import pytest

from orchestrator.core.token_bucket import TokenBucket

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("at", "waits"),
    [
        pytest.param([0, 0, 0], [0, 0, 0], id="all at once"),
        pytest.param([0, 0, 0, 0], [0, 0, 0, 0.5], id="one too many"),
        pytest.param([0, 0, 0, SECOND // 2], [0, 0, 0, 0], id="one later"),
        pytest.param([0, 0, 0, SECOND // 4, SECOND // 2], [0, 0, 0, 0.25, 0], id="a refused one takes nothing"),
        pytest.param([0, 0, 0, 9 * SECOND, *[9 * SECOND] * 3], [0, 0, 0, 0, 0, 0, 0.5], id="no more than at first"),
    ],
)
def test_calls(at: list[int], waits: list[float]) -> None:
    bucket = TokenBucket(3, 2.0)
    assert [bucket.take(SECOND + now) for now in at] == waits
