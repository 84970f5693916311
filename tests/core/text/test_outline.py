"""Outlines as values: how definitions nest, what a text shows without a grammar, what two outlines say together."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.content import LineHunk
from orchestrator.core.text.diff import diff
from orchestrator.core.text.lines import split
from orchestrator.core.text.outline import COMPILED_CHARS, DEEPEST, Definition, compiles, nested, plain_outline
from orchestrator.core.text.symbols import Outline, Symbol, new_errors, touched

INDENTED = st.lists(
    st.tuples(
        st.integers(0, 4), st.sampled_from(["def f():", "class A", "x = 1", "}", "end", "# head", "", "[a]", "--"])
    ),
    max_size=40,
).map(lambda lines: "".join(f"{'  ' * depth}{text}\n" for depth, text in lines))


def check(symbols: Iterable[Symbol], first: int, last: int) -> None:
    """Each within its holder's lines, in order, none empty."""
    before = first
    for symbol in symbols:
        assert before <= symbol.line <= symbol.end_line <= last
        check(symbol.children, symbol.line, symbol.end_line)
        before = symbol.line


@given(st.text() | INDENTED)
def test_symbols_of_any_text_nest_and_lie_within_it(text: str) -> None:
    lines = split(text)[0]
    check(plain_outline(lines).symbols, 1, len(lines))


@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(1, 40), st.integers(-2, 3)).map(
            lambda d: Definition(d[0], d[0] + d[1], "f", "function", d[0] // 4 + 1 + d[2], (d[0] + d[1] - 1) // 4 + 1)
        )
    )
)
def test_definitions_in_any_order_nest(definitions: list[Definition]) -> None:
    check(nested(definitions, 20), 1, 20)


def test_definitions_nest_only_so_deep() -> None:
    deep = nested((Definition(n, 1000 - n, f"f{n}", "function", 1, 1) for n in range(200)), 1)
    depth = 0
    while deep:
        deep, depth = deep[0].children, depth + 1
    assert depth == DEEPEST


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        pytest.param("fun main() {\n  go()\n}\nval x = 1\n", ["function main 1-3"], id="a brace closes it"),
        pytest.param("local function f()\n  a()\nend\n", ["function f 1-3"], id="so does end"),
        pytest.param("class A\n  def f\n    x\n\n  def g\n    y\nz\n",
                     ["class A 1-6", "method A.f 2-3", "method A.g 5-6"], id="blank lines between are nobody's"),
        pytest.param("# A\n\nx\n\n## B\n\ny\n\n# C\n", ["heading A 1-7", "heading A.B 5-7", "heading C 9-9"],
                     id="headings"),
        pytest.param("[one]\na=1\n[two]\nb=2\n", ["heading one 1-2", "heading two 3-4"], id="sections"),
        pytest.param("start:\n  a\n  b\nother\n", ["block start: 1-3"], id="indented under a line"),
        pytest.param("x\ny\n", [], id="nothing to tell"),
        pytest.param("", [], id="empty"),
    ],
)  # fmt: skip
def test_what_a_text_shows_without_a_grammar(text: str, rows: list[str]) -> None:
    found = plain_outline(split(text)[0])
    assert [f"{s.kind} {name} {s.line}-{s.end_line}" for name, s in found.walk()] == rows
    assert not found.parsed


def parsed(errors: int, *, known: bool = True) -> Outline:
    return Outline("python", (), errors, known)


@pytest.mark.parametrize(
    ("before", "other", "after", "broken"),
    [
        pytest.param(parsed(0), parsed(0), parsed(1), True, id="both parsed, the result does not"),
        pytest.param(parsed(0), parsed(0), parsed(0), False, id="all parse"),
        pytest.param(parsed(1), parsed(0), parsed(1), False, id="the file was broken before"),
        pytest.param(parsed(0), parsed(1), parsed(1), False, id="the proposal is broken"),
        pytest.param(parsed(0, known=False), parsed(0), parsed(1), False, id="a side was not parsed"),
        pytest.param(parsed(0), parsed(0), parsed(1, known=False), False, id="the result was not parsed"),
    ],
)
def test_new_errors(before: Outline, other: Outline, after: Outline, broken: bool) -> None:
    assert new_errors(before, other, after) is broken


@pytest.mark.parametrize(("before", "after", "broken"), [
    pytest.param("def f():\n    b()\n", "def f():\n    if a:\n    b()\n", True, id="an empty block"),
    pytest.param("def f():\n    b()\n", "def f():\n    b()\n        c()\n", True, id="a line too deep"),
    pytest.param("def f():\n    return 1\n", "def f():\n    b()\nreturn 1\n", True, id="a line out of its function"),
    pytest.param("print 1\nif a:\n    b()\n", "print 1\nif a:\nb()\n", False, id="another Python, before"),
    pytest.param("a = 1\n", f"a = {'-' * 200_000}1\n", False, id="too deep to say"),
    pytest.param("a = 1\n", "a = 1\nif b:\nc()\n" + "#\n" * COMPILED_CHARS, False, id="too large to say"),
    pytest.param("\ufeff# coding: latin-1\na = '\\d'\n", "\ufeffif a:\nb()\n", True,
                 id="a byte order mark, an odd escape"),
    pytest.param("a = 1\n", "a = '\\d'\nb = 1 is 1\n", False, id="what the compiler warns of"),
])  # fmt: skip
def test_new_errors_of_python(before: str, after: str, broken: bool) -> None:
    """Which its grammar does not see."""
    sides = [Outline("python", (), compiles=compiles(text.encode())) for text in (before, after)]
    assert new_errors(sides[0], sides[0], sides[1]) is broken


CODE = Outline(
    "python",
    (
        Symbol("f", "function", 2, 4),
        Symbol("A", "class", 6, 14, (Symbol("g", "method", 8, 10), Symbol("h", "method", 12, 13))),
        Symbol("LIMIT", "constant", 16, 16),
    ),
)


@pytest.mark.parametrize(
    ("first", "count", "names"),
    [
        pytest.param(3, 1, {"f"}, id="in a function"),
        pytest.param(9, 1, {"A.g"}, id="in a method, not its class"),
        pytest.param(7, 1, {"A"}, id="in a class, above its methods"),
        pytest.param(11, 1, {"A"}, id="between its methods"),
        pytest.param(10, 3, {"A.g", "A", "A.h"}, id="over two methods and what is between"),
        pytest.param(14, 1, {"A"}, id="after its methods"),
        pytest.param(3, 8, {"f", "A", "A.g"}, id="over two symbols"),
        pytest.param(1, 1, set(), id="outside of all"),
        pytest.param(16, 1, set(), id="a constant is no code"),
        pytest.param(3, 0, {"f"}, id="lines went inside a function"),
        pytest.param(2, 0, set(), id="lines went right above it"),
        pytest.param(11, 0, {"A"}, id="lines went between two methods"),
        pytest.param(9, 0, {"A.g"}, id="lines went inside a method"),
        pytest.param(15, 0, set(), id="lines went between two symbols"),
    ],
)
def test_what_hunks_touch(first: int, count: int, names: set[str]) -> None:
    assert touched(CODE, [LineHunk(first - 1, 1, first - 1, count)]) == names


def test_a_diff_of_equal_texts_touches_nothing() -> None:
    assert touched(CODE, diff(["a"] * 20, ["a"] * 20)) == set()
