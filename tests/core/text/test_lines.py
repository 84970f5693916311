from __future__ import annotations

import pytest
from hypothesis import given

from orchestrator.core.text.lines import join, plain, split
from tests.core.text.strategies import file_bytes, quick


@pytest.mark.parametrize(("text", "lines", "ends"), [
    pytest.param("", [], [], id="empty"),
    pytest.param("a\nb", ["a", "b"], ["\n", ""], id="no final newline"),
    pytest.param("a\n", ["a"], ["\n"], id="final newline"),
    pytest.param("\n", [""], ["\n"], id="one empty line"),
    pytest.param("a\r\nb\rc\n", ["a", "b", "c"], ["\r\n", "\r", "\n"], id="mixed"),
    pytest.param("\r\r\n", ["", ""], ["\r", "\r\n"], id="carriage return, then both"),
    pytest.param("\r", [""], ["\r"], id="carriage return alone"),
    pytest.param("a\x0b\x0c\x1c\x85\u2028b", ["a\x0b\x0c\x1c\x85\u2028b"], [""], id="what splitlines would cut"),
])  # fmt: skip
def test_split(text: str, lines: list[str], ends: list[str]) -> None:
    assert split(text) == (lines, ends)


@quick
@given(file_bytes)
def test_join_is_the_inverse(data: bytes) -> None:
    text = data.decode("latin-1")
    lines, ends = split(text)
    assert join(lines, ends) == text
    assert all(ends[:-1])
    assert plain(text) == "".join(line + ("\n" if end else "") for line, end in zip(lines, ends, strict=True))
