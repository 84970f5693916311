"""Expressions against Python's own, on texts so small that all that can go wrong happens."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.text.regex import RegexPattern

EXPRESSIONS = ("a", "ab|b", "a\nb", "a|b\n?a", "b\n+", "a[^b]*b", "b$", "^a", "(?s)a.*b", "a*")


def rows_of_matches(text: str, expression: str) -> set[int]:
    """The lines over which Python's matches go, 0-based; a line break belongs to the line that it ends."""
    ends = [found.end() for found in re.finditer("\n", text)]
    spans = [(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]
    found = [match.span() for match in re.finditer(expression, text, re.MULTILINE) if match.start() < len(text)]
    return {
        row
        for row, (begin, end) in enumerate(spans)
        for first, last in found
        if first < end and max(last, first + 1) > begin
    }


@pytest.mark.parametrize("expression", EXPRESSIONS)
@given(lines=st.lists(st.text("ab", max_size=3), min_size=1, max_size=6))
def test_the_lines_of_all_matches_are_found(expression: str, lines: list[str]) -> None:
    spots = list(RegexPattern(expression, multiline=True).spots(lines))
    found = {row for spot in spots for row in range(spot.line, spot.line + spot.rows)}
    assert found == rows_of_matches("\n".join(lines) + "\n", expression)
    assert all(one.line + one.rows <= other.line for one, other in pairwise(spots))


@pytest.mark.parametrize("expression", [one for one in EXPRESSIONS if "\n" not in one and "(?s)" not in one])
@given(lines=st.lists(st.text("ab", max_size=3), min_size=1, max_size=6))
def test_each_line_is_looked_at_by_itself(expression: str, lines: list[str]) -> None:
    found = [(spot.line, spot.rows) for spot in RegexPattern(expression).spots(lines)]
    assert found == [(row, 1) for row, line in enumerate(lines) if re.search(expression, line)]


def test_a_match_goes_on_where_another_one_ends() -> None:
    (spot,) = RegexPattern("foo|start\nmid\nend", multiline=True).spots(["foo start", "mid", "end", "else"])
    assert (spot.line, spot.rows, spot.spans) == (0, 3, ((0, 3), (4, 17)))


def test_matches_that_share_a_line_are_one_hit_with_a_submatch_each() -> None:
    """As the parameter `multiline` says; ripgrep counts the submatches."""
    (spot,) = RegexPattern("tail\npad", multiline=True).spots(["x1 tail", "pad 2 tail", "pad 3 tail", "pad 4"])
    assert (spot.line, spot.rows, len(spot.spans)) == (0, 4, 3)
