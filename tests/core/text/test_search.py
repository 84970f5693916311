from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.text.encoding import decode
from orchestrator.core.text.search import Found, Match, Pattern, search
from tests.core.text.strategies import file_bytes, plain_lines, quick


@pytest.mark.parametrize(("line", "text", "case_sensitive", "word", "spans"), [
    pytest.param("a.b axb", "a.b", True, False, [(0, 3)], id="no expression"),
    pytest.param("Ab ab", "ab", True, False, [(3, 5)], id="case"),
    pytest.param("Ab ab", "aB", False, False, [(0, 2), (3, 5)], id="no case"),
    pytest.param("ÉTÉ", "été", False, False, [(0, 3)], id="no case, accents"),
    pytest.param("ΣΟΦΟΣ σοφος", "σοφος", False, False, [(0, 5), (6, 11)], id="no case, final sigma"),
    pytest.param("ẞ SS", "ß", False, False, [(0, 1)], id="no case, sharp s is one character"),
    pytest.param("\u212aelvin", "kelvin", False, False, [(0, 6)], id="no case, the Kelvin sign"),
    pytest.param("t\u0131tle T\u0130TLE title TITLE", "title", False, False, [(12, 17), (18, 23)], id="no case, dots"),
    pytest.param("I\u0131i\u0130", "\u0130", False, False, [(3, 4)], id="no case, a dotted capital"),
    pytest.param("cat concat cat_ cät.cat", "cat", True, True, [(0, 3), (20, 23)], id="word"),
    pytest.param("(x) xx", "(x)", True, True, [(0, 3)], id="word of no letters at its ends"),
    pytest.param("aaaa", "aa", True, False, [(0, 2), (2, 4)], id="without overlap"),
    pytest.param("🙂a", "a", True, False, [(1, 2)], id="positions are characters"),
    pytest.param("b", "a", True, False, [], id="absent"),
])  # fmt: skip
def test_pattern(line: str, text: str, case_sensitive: bool, word: bool, spans: list[tuple[int, int]]) -> None:
    pattern = Pattern(text, case_sensitive=case_sensitive, word=word)
    found = search(["-", line, "-"], pattern, context_lines=0)
    assert found == Found((Match(2, line, tuple(spans), (), ()),) if spans else (), int(bool(spans)), 3)
    assert pattern.maybe(line.encode()) or not spans


def test_context_counts_and_invert() -> None:
    lines = ["x1", "x2", "b", "x3"]
    found = search(lines, Pattern("x"), context_lines=1, max_hits=2)
    assert found.total == 3
    assert found.hits == (Match(1, "x1", ((0, 1),), (), ("x2",)), Match(2, "x2", ((0, 1),), ("x1",), ("b",)))
    assert search(lines, Pattern("x"), invert=True) == Found((Match(3, "b", (), ("x1", "x2"), ("x3",)),), 1, 4)
    assert search([], Pattern("x")) == search([], Pattern("x"), invert=True) == Found((), 0, 0)


@pytest.mark.parametrize("text", ["", "a\nb", "a\r"])
def test_pattern_refuses(text: str) -> None:
    with pytest.raises(ParameterInvalid):
        Pattern(text)


@quick
@given(plain_lines, st.sampled_from(["a", "b", "ab", "é", "}"]), st.booleans(), st.booleans())
def test_finds_what_lines_hold(lines: list[str], text: str, case_sensitive: bool, invert: bool) -> None:
    pattern = Pattern(text, case_sensitive=case_sensitive)
    found = search(lines, pattern, invert=invert, max_hits=99)
    expected = [at for at, line in enumerate(lines, 1) if bool(pattern.expression.search(line)) != invert]
    assert [hit.line for hit in found.hits] == expected
    assert found.total == len(expected)
    assert search(lines, pattern, invert=invert, max_hits=0).total == len(expected)
    for hit in found.hits:
        assert lines[hit.line - 1] == hit.text
        assert list(hit.submatches) == [match.span() for match in pattern.expression.finditer(hit.text)]


@quick
@given(file_bytes, st.sampled_from(["a", "b", "C", "é", "€", "K", "s", "\u212a", "ſ"]), st.booleans())
def test_maybe_misses_nothing(data: bytes, text: str, case_sensitive: bool) -> None:
    doc = decode(data)
    pattern = Pattern(text, case_sensitive=case_sensitive)
    if doc is not None and search(doc.lines, pattern).total:
        assert pattern.maybe(data)
