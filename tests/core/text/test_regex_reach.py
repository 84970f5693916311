"""How many line ends a match may go over: never fewer than it does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.core.errors import ParameterInvalid
from orchestrator.core.text.regex import RegexPattern, compiled


@pytest.mark.parametrize(("pattern", "breaks"), [
    ("one.*two", 0),
    (r"one.*\n.*two$", 1),
    (r"(?:a\n){3}b\n?", 4),
    (r"(?:[^x]\n){2,5}", 10),
    (r"a\s+b", None),
    (r"a[^x]*b", None),
    (r"a[^x\n]*\nb", 1),
    (r"(?s:a.*b)", None),
    (r"(?s)a.b", 1),
    (r"(?P<s>.*)\n", 1),
    (r"\Qa\n\E*\n", 1),
    (r"(\n)+", None),
    (r"\W\D\S\x0a\x{a}\012", 5),
    (r"(?:\n{900})(?:\n{900})", None),
    ("a{,\n", 1),
    (r"[]\n]*", None),
    (r"[[:space:]]{2}|[[:^space:]]*", 2),
])  # fmt: skip
def test_of_a_pattern(pattern: str, breaks: int | None) -> None:
    assert RegexPattern(pattern, multiline=True).most_breaks == breaks


def test_within_a_line_there_is_none() -> None:
    assert RegexPattern(r"a\s*b").most_breaks == 0


ATOMS = st.sampled_from(["a", r"\n", ".", r"\s", "[^a]", r"\W", "^", "$", "(?s:.)", "[a\n]"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.tuples(
        st.lists(inner, min_size=1, max_size=3),
        st.sampled_from(["", "|"]),
        st.sampled_from(["", "*", "+?", "{2}", "{1,3}", "?"]),
    ).map(lambda parts: f"(?:{parts[1].join(parts[0])}){parts[2]}"),
    max_leaves=6,
)


@settings(max_examples=300)
@given(pattern=PATTERNS, lines=st.lists(st.sampled_from(["", "a", "ab", " b"]), max_size=12))
def test_no_match_goes_over_more(pattern: str, lines: list[str]) -> None:
    try:
        matcher = RegexPattern(pattern, multiline=True)
    except ParameterInvalid:
        return
    found = compiled(pattern, case_sensitive=True, multiline=True).finditer("\n".join(lines) + "\n")
    if matcher.most_breaks is not None:
        assert max((match[0].count("\n") for match in found), default=0) <= matcher.most_breaks
