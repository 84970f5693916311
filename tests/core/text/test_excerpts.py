"""Which lines an excerpt shows, and which say most of a text."""

from __future__ import annotations

import pytest

from orchestrator.core.content import LineRange
from orchestrator.core.text.excerpts import Budget, LeaveOut, gaps, order, outwards, taken
from orchestrator.core.text.overview import key_lines
from orchestrator.core.text.symbols import Outline, Symbol


@pytest.mark.parametrize(
    ("leave_out", "most", "shown", "left"),
    [
        pytest.param("end", 4, [(11, 14)], [(15, 20)], id="the end"),
        pytest.param("start", 4, [(17, 20)], [(11, 16)], id="the start"),
        pytest.param("middle", 4, [(11, 12), (19, 20)], [(13, 18)], id="the middle"),
        pytest.param("middle", 5, [(11, 13), (19, 20)], [(14, 18)], id="the middle, odd"),
        pytest.param("middle", 50, [(11, 20)], [], id="all fits"),
        pytest.param("end", 0, [(11, 11)], [(12, 20)], id="one line in any case"),
    ],
)
def test_what_is_left_out(
    leave_out: LeaveOut, most: int, shown: list[tuple[int, int]], left: list[tuple[int, int]]
) -> None:
    part = LineRange(11, 20)
    found = taken(order(part, leave_out), str, Budget.of(1000, 1000, most))
    assert [(it.start, it.end) for it in found] == shown
    assert [(it.start, it.end) for it in gaps(found, part)] == left


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        pytest.param(3, [3, 2, 4, 1, 5], id="in the middle"),
        pytest.param(1, [1, 2, 3, 4, 5], id="the first"),
        pytest.param(5, [5, 4, 3, 2, 1], id="the last"),
    ],
)
def test_around_a_line(line: int, lines: list[int]) -> None:
    assert list(outwards(line, 5)) == lines


@pytest.mark.parametrize(
    ("text", "head"),
    [
        pytest.param('"""One line."""\nimport a\n', (1, 1), id="docstring"),
        pytest.param('#!/bin/x\n\n"""Two\nlines."""\nimport a\n', (3, 4), id="docstring of two lines, below a shebang"),
        pytest.param("// a\n// b\nint x;\n", (1, 2), id="comments"),
        pytest.param("# Title\n\ntext\n", (1, 1), id="a heading"),
        pytest.param("first\nparagraph\n\nsecond\n", (1, 2), id="a paragraph"),
        pytest.param("\n\n", (1, 0), id="blank"),
    ],
)
def test_the_head(text: str, head: tuple[int, int]) -> None:
    found = key_lines(Outline("text", ()), text.splitlines()).head
    assert (found.start, found.end) == head


def test_outer_public_code_first() -> None:
    lines = ["@decorated", "class Big:", "    def inner(self):", "        pass", "def _private():", "    pass", "x = 1"]
    inner = Symbol("inner", "method", 3, 4)
    symbols = (Symbol("Big", "class", 1, 4, (inner,)), Symbol("_private", "function", 5, 6), Symbol("x", "key", 7, 7))
    found = key_lines(Outline("python", symbols), lines)
    assert [(one.name, one.at) for one in found.definitions] == [
        ("Big", 2),
        ("_private", 5),
        ("x", 7),
        ("Big.inner", 3),
    ]
    assert found.symbols == 4
