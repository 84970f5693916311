"""The changed characters of a line."""

from __future__ import annotations

import pytest

from orchestrator.core.text.inline_changes import MOST_CHARACTERS, inline_changes


def marked(text: str, spans: tuple[tuple[int, int], ...]) -> str:
    for start, end in reversed(spans):
        text = f"{text[:start]}[{text[start:end]}]{text[end:]}"
    return text


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        pytest.param("return foo(bar)", "return foo(baz)", ("return foo(ba[r])", "return foo(ba[z])"), id="replaced"),
        pytest.param("x = 1", "x = 10", ("x = 1", "x = 1[0]"), id="added"),
        pytest.param("a, b, c", "a, c", ("a,[ b,] c", "a, c"), id="removed"),
        pytest.param("same", "same", ("same", "same"), id="equal"),
        pytest.param("größe = 1", "größe = 2", ("größe = [1]", "größe = [2]"), id="not ASCII"),
    ],
)
def test_what_changed_is_marked(old: str, new: str, shown: tuple[str, str]) -> None:
    spans = inline_changes(old, new)
    assert spans is not None
    assert (marked(old, spans[0]), marked(new, spans[1])) == shown


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("import os", "def main():", id="different lines"),
        pytest.param("x" * (MOST_CHARACTERS + 1), "x" * MOST_CHARACTERS, id="too long"),
    ],
)
def test_nothing_is_marked_where_it_would_not_help(old: str, new: str) -> None:
    assert inline_changes(old, new) is None
