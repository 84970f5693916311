"""Passages: every line once, in order, symbols whole where they are short enough."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.text.chunks import JOINED_LINES, MOST_LINES, Chunk, chunks
from orchestrator.core.text.symbols import Outline, Symbol


def symbol(name: str, line: int, end: int, *children: Symbol) -> Symbol:
    return Symbol(name, "function", line, end, children)


def cut(lines: int, *symbols: Symbol, parsed: bool = True) -> list[tuple[int, int, str]]:
    return [tuple(chunk) for chunk in chunks(Outline("python", symbols, parsed=parsed), lines)]  # type: ignore[misc]


LONG = symbol("C", 5, 80, symbol("a", 8, 40), symbol("b", 42, 80))


@pytest.mark.parametrize(("found", "expected"), [
    pytest.param(cut(0), [], id="nothing"),
    pytest.param(cut(90), [(1, 40, ""), (41, 80, ""), (81, 90, "")], id="windows"),
    pytest.param(cut(30, symbol("f", 5, 14), symbol("g", 17, 30)), [(1, 4, ""), (5, 16, "f"), (17, 30, "g")],
                 id="symbols, and what is between goes with the one before"),
    pytest.param(cut(80, LONG), [(1, 4, ""), (5, 7, "C"), (8, 40, "C.a"), (41, 41, "C"), (42, 80, "C.b")],
                 id="of a long one what it holds"),
    pytest.param(cut(80, LONG, parsed=False), [(1, 40, ""), (41, 80, "")], id="no names of what was not parsed"),
    pytest.param(cut(3, *(symbol(f"k{n}", n, n) for n in (1, 2, 3))), [(1, 3, "k1")], id="short ones together"),
    pytest.param(cut(9, symbol("f", 1, 5), symbol("g", 5, 9)), [(1, 5, "f"), (6, 9, "")], id="on the same line"),
])  # fmt: skip
def test_passages(found: list[tuple[int, int, str]], expected: list[tuple[int, int, str]]) -> None:
    assert found == expected


def symbols_within(first: int, last: int, depth: int = 2) -> st.SearchStrategy[tuple[Symbol, ...]]:
    """Any places, in any order."""
    places = st.tuples(st.integers(first, last), st.integers(first, last + 5))
    if not depth:
        return st.just(())
    return st.lists(places, max_size=4).flatmap(
        lambda found: st.tuples(
            *(symbols_within(a, max(a, b), depth - 1).map(lambda inner, a=a, b=b: symbol("s", a, b, *inner))  # type: ignore[misc]
              for a, b in found)
        )
    )  # fmt: skip


@given(lines=st.integers(0, 150), data=st.data())
def test_every_line_is_in_one_passage(lines: int, data: st.DataObject) -> None:
    found = chunks(Outline("python", data.draw(symbols_within(1, max(lines, 1)))), lines)
    assert [line for chunk in found for line in range(chunk.start, chunk.end + 1)] == list(range(1, lines + 1))
    assert all(chunk.end - chunk.start < max(MOST_LINES, JOINED_LINES) for chunk in found)
    assert all(isinstance(chunk, Chunk) for chunk in found)
