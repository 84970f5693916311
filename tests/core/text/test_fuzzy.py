from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.text import fuzzy
from orchestrator.core.text.fuzzy import FuzzyPattern, folded, pieces
from orchestrator.core.text.search import search
from tests.core.text.strategies import quick


def fewest(wanted: str, text: str) -> int:
    """By the textbook's table: edits between a text and whatever part of another is most like it."""
    row = [0] * (len(text) + 1)
    for number, char in enumerate(wanted, 1):
        above, row = row, [number]
        for at, other in enumerate(text):
            row.append(min(above[at] + (char != other), above[at + 1] + 1, row[at] + 1))
    return min(row)


@pytest.mark.parametrize(("text", "edits", "line", "spans", "score"), [
    pytest.param("connection refused", 2, "x conection refused by y", [(2, 19)], 0.944, id="one left out"),
    pytest.param("connection refused", 2, "Xconnnection refussed", [(1, 21)], 0.889, id="two added"),
    pytest.param("connection refused", 2, "connectoin refused", [(0, 18)], 0.889, id="two exchanged"),
    pytest.param("connection refused", 2, "connection refused", [(0, 18)], 1.0, id="as it is"),
    pytest.param("connection refused", 2, "cnnection refuse d now", [(0, 17)], 0.889, id="at both ends"),
    pytest.param("connection refused", 2, "conexion refuzed", [], None, id="too many"),
    pytest.param("Größe", 1, "die Grösse und die größe", [(19, 24)], 0.8, id="the nearest alone where they overlap"),
    pytest.param("abcabc", 1, "abcabc abxabc", [(0, 6), (7, 13)], 1.0, id="twice"),
])  # fmt: skip
def test_a_passage(text: str, edits: int, line: str, spans: list[tuple[int, int]], score: float | None) -> None:
    found = search(["-", line, "-"], FuzzyPattern(text, max_edits=edits), context_lines=0)
    assert [(hit.line, list(hit.submatches), hit.score) for hit in found.hits] == ([(2, spans, score)] if spans else [])
    assert not found.partial


def test_a_passage_of_several_lines() -> None:
    lines = ["def f(a):", "    retrun a.valu", "", "x"]
    found = search(lines, FuzzyPattern("def f(a):\n    return a.value\n", max_edits=3), context_lines=1)
    (hit,) = found.hits
    assert (hit.line, hit.rows, hit.text, hit.after) == (1, 2, "def f(a):\n    retrun a.valu", ("",))
    joined = search(["def f(a): return a"], FuzzyPattern("def f(a):\nreturn a", max_edits=1))
    assert [(hit.line, hit.score) for hit in joined.hits] == [(1, 0.944)]


@quick
@given(st.lists(st.text("aab ", max_size=9), max_size=6), st.text("aab ", min_size=4, max_size=9), st.integers(0, 3))
def test_nothing_is_missed(lines: list[str], text: str, edits: int) -> None:
    """Every line with a passage like it, and of it the fewest edits."""
    expected = [(at, fewest(text, line)) for at, line in enumerate(lines, 1) if fewest(text, line) <= edits]
    found = search(lines, FuzzyPattern(text, max_edits=edits), max_hits=99)
    assert [(hit.line, round((1 - hit.score) * len(text))) for hit in found.hits] == expected
    for hit in found.hits:
        for start, end in hit.submatches:
            assert fewest(text, hit.text[start:end]) <= edits


@quick
@given(st.text("ab\n", max_size=14), st.text("ab\n", min_size=4, max_size=9), st.integers(0, 3))
def test_nothing_is_missed_over_lines(whole: str, text: str, edits: int) -> None:
    text, lines = text.strip("\n"), whole.split("\n")
    if "\n" not in text or pieces(text, edits + 1) is None:
        return
    found = search(lines, FuzzyPattern(text, max_edits=edits), max_hits=99)
    assert bool(found.total) == (fewest(text, whole) <= edits)
    best = max((hit.score for hit in found.hits), default=None)
    assert best is None or round((1 - best) * len(text)) == fewest(text, whole)


@quick
@given(st.text("AaÉéΣσςİß", max_size=8))
def test_small_letters_are_as_many(text: str) -> None:
    assert len(folded(text)) == len(text)
    assert "".join(map(folded, text)) == folded(text)


@pytest.mark.parametrize(("text", "edits"), [
    pytest.param("ab", 2, id="as many edits as characters"),
    pytest.param("\n\n", None, id="line ends alone"),
    pytest.param("a\nb", 2, id="line ends are no characters"),
])  # fmt: skip
def test_what_would_fit_everything_is_refused(text: str, edits: int | None) -> None:
    with pytest.raises(ParameterInvalid):
        FuzzyPattern(text, max_edits=edits)


@pytest.mark.parametrize(("text", "edits"), [("ab", 0), ("abc", 1), ("abcde", 1), ("abcdef", 2), ("a" * 90, 2)])
def test_edits_by_default(text: str, edits: int) -> None:
    assert FuzzyPattern(text).max_edits == edits


def test_of_too_many_places_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzy, "MOST_PLACES", 5)
    found = search(["abcabd", *["abc"] * 20], FuzzyPattern("abcabc", max_edits=1), max_hits=99)
    assert (found.partial, [hit.line for hit in found.hits]) == (True, [1])
    assert not search(["abcabd"], FuzzyPattern("abcabc", max_edits=1)).partial
