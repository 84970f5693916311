"""Points in time as callers write them."""

from __future__ import annotations

import pytest

from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.ids import Seq, written
from orchestrator.core.positions import Timestamp, parse_timestamp


@pytest.mark.parametrize(
    ("raw", "moment"),
    [
        pytest.param("@42", Timestamp(seq=42), id="position"),  # type: ignore[arg-type]
        pytest.param("@start", Timestamp(seq=Seq(7)), id="the first scan's end"),
        pytest.param("@142", Timestamp(seq=142), id="position ahead, written as one"),  # type: ignore[arg-type]
        pytest.param("42", Timestamp(seq=42), id="number as text"),  # type: ignore[arg-type]
        pytest.param(42, Timestamp(seq=42), id="number"),  # type: ignore[arg-type]
        pytest.param("100", Timestamp(seq=100), id="the head"),  # type: ignore[arg-type]
        pytest.param("1970-01-02", Timestamp(at=86_400_000), id="a date is its first moment"),
        pytest.param("1970-01-01T00:00:01.5", Timestamp(at=1500), id="no zone is UTC"),
        pytest.param("1970-01-01T01:00:00+01:00", Timestamp(at=0), id="a zone"),
        pytest.param("1970-01-01T00:00:02Z", Timestamp(at=2000), id="Z"),
        pytest.param("1969-12-31T23:59:59Z", Timestamp(at=-1000), id="before"),
    ],
)
def test_a_moment_is_read(raw: str | int, moment: Timestamp) -> None:
    assert parse_timestamp(raw, parameter="since", head=100, start=Seq(7)) == moment


@pytest.mark.parametrize("raw", ["", "yesterday", "@", "@-1", "2026-02-30", "-5", "0001-01-01T00:00+23:59x"])
def test_what_is_no_moment_is_refused(raw: str) -> None:
    with pytest.raises(ParameterInvalid):
        parse_timestamp(raw, parameter="since", head=100, start=Seq(7))


@pytest.mark.parametrize("raw", [101, "101", "1700000000000", 20261121])
def test_a_bare_number_ahead_of_the_journal_was_meant_as_a_time(raw: str | int) -> None:
    with pytest.raises(ParameterInvalid) as refused:
        parse_timestamp(raw, parameter="since", head=100, start=Seq(7))
    assert "which ends at @100" in refused.value.message
    assert "A time is written as '2026-" in refused.value.hint


def test_a_moment_is_written_as_it_is_read() -> None:
    assert written(1500) == "1970-01-01T00:00:01.500Z"
    assert parse_timestamp(written(1_700_000_000_123), parameter="since", head=100, start=Seq(7)) == Timestamp(
        at=1_700_000_000_123
    )
