from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.text.answer_space import MIN_LINE, PER_TOKEN, estimate_tokens, fit, narrowed, render, weight
from tests.core.text.strategies import plain_lines, quick


@pytest.mark.parametrize(("lines", "first", "numbers", "text", "cut"), [
    pytest.param([], 1, True, "", (), id="nothing"),
    pytest.param(["a", ""], 9, True, "     9\ta\n    10\t\n", (), id="numbered"),
    pytest.param(["a", ""], 9, False, "a\n\n", (), id="plain"),
    pytest.param(["a"], 1_234_567, True, "1234567\ta\n", (), id="more digits than columns"),
    pytest.param(["abcdef", "abcde"], 1, False, "abcde … [1 characters left out]\nabcde\n", (1,), id="cut"),
])  # fmt: skip
def test_render(lines: list[str], first: int, numbers: bool, text: str, cut: tuple[int, ...]) -> None:
    assert render(lines, first, numbers=numbers, max_line=5) == (text, cut)


@pytest.mark.parametrize(("start", "end", "max_tokens", "last"), [
    pytest.param(1, 9, 1_000, 5, id="all"),
    pytest.param(2, 3, 1_000, 3, id="asked for less"),
    pytest.param(1, 5, 9, 3, id="three of 12 characters"),
    pytest.param(4, 5, 0, 4, id="at least one"),
    pytest.param(6, 9, 1_000, 5, id="beyond the end"),
])  # fmt: skip
def test_fit(start: int, end: int, max_tokens: int, last: int) -> None:
    assert fit(["word"] * 5, start, end, max_tokens) == last


def test_a_long_line_costs_what_is_shown_of_it() -> None:
    assert fit(["x" * 10**6, "y"], 1, 2, 300) == 2


@quick
@given(plain_lines, st.integers(0, 40), st.booleans())
def test_what_fits_is_within_the_budget(lines: list[str], max_tokens: int, numbers: bool) -> None:
    last = fit(lines, 1, len(lines), max_tokens, numbers=numbers)
    shown = render(lines[:last], 1, numbers=numbers)[0]
    assert estimate_tokens(shown) <= max_tokens or last == 1
    if last < len(lines):
        assert estimate_tokens(render(lines[: last + 1], 1, numbers=numbers)[0] + "12345678") > max_tokens


@quick
@given(st.text(min_size=1, max_size=300), st.integers(0, 200), st.integers(MIN_LINE, 250))
def test_of_a_narrowed_line_as_much_is_shown_as_fits(line: str, max_tokens: int, widest: int) -> None:
    def shown(most: int) -> str:
        return render([line], 1, max_line=most)[0]

    most = narrowed(shown, max_tokens, widest)
    assert MIN_LINE <= most <= widest
    assert estimate_tokens(shown(most)) <= max_tokens or most == MIN_LINE
    assert most == widest or weight(shown(most + 2)) > max_tokens * PER_TOKEN


@pytest.mark.parametrize(("text", "tokens"), [
    pytest.param("", 0, id="empty"),
    pytest.param("abcd", 1, id="four letters"),
    pytest.param("abcde", 2, id="rounded up"),
    pytest.param("漢字", 2, id="Chinese"),
    pytest.param("éééééééé", 5, id="accents"),
    pytest.param("\ud800", 1, id="a lone surrogate"),
])  # fmt: skip
def test_estimate(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@quick
@given(st.text(), st.text())
def test_weights_add_up(one: str, other: str) -> None:
    assert weight(one + other) == weight(one) + weight(other)
    assert estimate_tokens(one) == -(-weight(one) // PER_TOKEN)
