"""How long a service may ask us to wait, whatever it writes there."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.review.http import FAR_OFF_S, HttpClient
from tests.review.test_model import NOW_MS, FixedClock

CALLER = HttpClient(FixedClock(), retries=0)
DATES = st.builds(
    "{}, {} {} {} {}:{}:{} {}".format,
    st.sampled_from(("Mon", "Xyz", "")),
    *(st.integers(-1, 10**12) for _ in range(1)),
    st.sampled_from(("Jan", "Feb", "Dec", "0")),
    *(st.integers(-1, 10**12) for _ in range(4)),
    st.sampled_from(("GMT", "+9999", "-0000", "+99999999999", "")),
)


@given(st.one_of(st.text(), DATES, st.integers().map(str), st.integers(10**300, 10**400).map(str)))
@example("Mon, 01 Jan 99999999999 00:00:00 GMT")
@example("Mon, 01 Jan 0001 00:00:00 +2359")
def test_it_is_a_bounded_number_or_nothing(value: str) -> None:
    asked = CALLER._retry_after(value)
    assert asked is None or 0 <= asked <= 10**12


@pytest.mark.parametrize(("value", "asked"), [
    pytest.param("7", 7.0, id="seconds"),
    pytest.param("9" * 300, 999_999_999.0, id="many digits"),
    pytest.param("Mon, 01 Jan 99999999999 00:00:00 GMT", FAR_OFF_S, id="no year of any calendar"),
    pytest.param("Fri, 15 Jan 2027 08:00:05 GMT", 5.0, id="a date"),
    pytest.param("soon", None, id="a word"),
    pytest.param("-5", None, id="negative"),
])  # fmt: skip
def test_values(value: str, asked: float | None) -> None:
    assert NOW_MS == 1_800_000_000_000
    assert CALLER._retry_after(value) == asked
