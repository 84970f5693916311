from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from orchestrator.core.errors import (
    CallerError,
    ChangesOverlap,
    NothingToChange,
    ParameterInvalid,
    SearchAmbiguous,
    SearchNotFound,
)
from orchestrator.core.text.answer_space import render
from orchestrator.core.text.edits import Edit, splice
from orchestrator.core.text.encoding import Document, decode, encode, new_document
from orchestrator.core.text.locate import Replacement, find_exact, locate_changes, strip_line_numbers
from orchestrator.core.text.normalised import nearest
from tests.core.text.strategies import lf_text, quick


def changed(text: str, *changes: tuple[str, str] | tuple[str, str, int] | tuple[str, str, int, bool]) -> str:
    doc = decode(text.encode())
    assert doc is not None
    found = locate_changes(doc, [Replacement(*change) for change in changes], lenient=True)
    return encode(splice(doc, found.edits)).decode()


@pytest.mark.parametrize(("text", "changes", "after"), [
    pytest.param("a\nb\nc\n", [("b", "B")], "a\nB\nc\n", id="a line"),
    pytest.param("a\nb\nc\n", [("b\n", "")], "a\nc\n", id="a line removed"),
    pytest.param("a\nb\nc\n", [("b\n", "x")], "a\nxc\n", id="the next line joins"),
    pytest.param("a\nb\nc\n", [("\nb", "")], "a\nc\n", id="with the newline before it"),
    pytest.param("a\nb", [("\nb", "")], "a", id="the end goes with its newline"),
    pytest.param("a\nb", [("b", "")], "a\n", id="the unended line goes"),
    pytest.param("x = f(a, b)\n", [("a", "A"), ("b", "B")], "x = f(A, B)\n", id="two on one line"),
    pytest.param("ab\n", [("a", "x"), ("b", "y")], "xy\n", id="touching"),
    pytest.param("a\nb\nc\n", [("a\n", "x"), ("b\n", "")], "xc\n", id="a removal after an open end"),
    pytest.param("a\nb\nc\n", [("b\n", "B\n"), ("c", "C")], "a\nB\nC\n", id="neighbouring lines"),
    pytest.param("a\r\nb\r\nc\r\n", [("a\nb", "a\nx\nb")], "a\r\nx\r\nb\r\nc\r\n", id="crlf in the file"),
    pytest.param("a\nb\n", [("a\r\nb", "x\r\ny")], "x\ny\n", id="crlf in the search"),
    pytest.param("a\r\nb\nc\r", [("b", "x\ny")], "a\r\nx\ny\nc\r", id="mixed endings"),
    pytest.param("a\r\nb\nc\nd\n", [("a\nb\nc", "a\nc")], "a\r\nc\nd\n", id="context lines keep their endings"),
    pytest.param("xa xa\n", [("xa", "y", 2)], "y y\n", id="counted, on one line"),
    pytest.param("aaaa\n", [("aa", "b", 2)], "bb\n", id="counted without overlap"),
    pytest.param("a\nb\n", [("a\nb\n", "")], "", id="everything"),
    pytest.param("a\nb\n", [("     2\tb\n", "     2\tB\n")], "a\nB\n", id="line numbers on both"),
    pytest.param("a\nb\n", [("     1\ta\n     2\tb", "X")], "X\n", id="line numbers on the search"),
    pytest.param("     1\ta\n", [("     1\ta", "b")], "b\n", id="numbers that are in the file"),
    pytest.param("a\nb", [("b", "b\n")], "a\nb\n", id="only a newline"),
])  # fmt: skip
def test_locate_changes(text: str, changes: list[Any], after: str) -> None:
    assert changed(text, *changes) == after


def test_edits_touch_changed_lines_only() -> None:
    doc = new_document("a\nb\nc\nd\n")
    assert locate_changes(doc, [Replacement("a\nb\nc", "a\nB\nc")]).edits == [Edit(1, 1, ("B",))]
    assert locate_changes(doc, [Replacement("d", "D"), Replacement("a", "A")]).edits == [
        Edit(0, 1, ("A",)),
        Edit(3, 1, ("D",), True),
    ]
    one_line = new_document("f(a, b)\n\n")
    assert locate_changes(one_line, [Replacement("b", "B"), Replacement("a", "A")]).edits == [Edit(0, 1, ("f(A, B)",))]


@pytest.mark.parametrize(("text", "changes", "error", "details"), [
    pytest.param("a\n", [], ParameterInvalid, {"parameter": "changes"}, id="no change"),
    pytest.param("a\n", [("", "b")], ParameterInvalid, {"parameter": "search"}, id="empty search"),
    pytest.param("a\n", [("a", "b", 0)], ParameterInvalid, {"parameter": "expected_count"}, id="count 0"),
    pytest.param("a\n", [("a", "b"), ("a", "a")], NothingToChange, {"change": 1}, id="search is replace"),
    pytest.param("ab\n", [("a\r\n", "a\n")], NothingToChange, {"change": 0}, id="equal but for the endings"),
    pytest.param("a\nb\n", [("a", "b"), ("zzz", "y")], SearchNotFound, {"change": 1, "nearest": []}, id="absent"),
    pytest.param(
        "x\na\nx\n",
        [("x", "y")],
        SearchAmbiguous,
        {"change": 0, "count": 2, "expected_count": 1, "lines": [1, 3]},
        id="twice",
    ),
    pytest.param(
        "x\n}\n}\n}\n",
        [("}\n}\n", "")],
        SearchAmbiguous,
        {"change": 0, "count": 2, "expected_count": 1, "lines": [2, 3]},
        id="overlapping places are two",
    ),
    pytest.param(
        "x x\n",
        [("x", "y", 3)],
        SearchAmbiguous,
        {"change": 0, "count": 2, "expected_count": 3, "lines": [1, 1]},
        id="fewer than demanded",
    ),
    pytest.param("a\nbcd\n", [("cd", "x"), ("bc", "y")], ChangesOverlap, {"changes": [0, 1], "line": 2}, id="overlap"),
    pytest.param("ab\n", [("a", "b"), ("b\n", "\n"), ("ab\n", "x\n")], ChangesOverlap, None, id="one inside another"),
    pytest.param(
        "a\nb\nif c == d:\n",
        [("b\n", "x"), ("if  c == d:\n", "if c == e:\n", 1, True)],
        ChangesOverlap,
        {"changes": [0, 1], "line": 3},
        id="a misquoted line that joins another",
    ),
    pytest.param("ab\n", [("a", "ab"), ("b", "")], NothingToChange, {}, id="together nothing"),
])  # fmt: skip
def test_refusals(text: str, changes: list[Any], error: type[CallerError], details: dict[str, object] | None) -> None:
    with pytest.raises(error) as caught:
        changed(text, *changes)
    assert details is None or caught.value.details == details


@quick
@given(
    lf_text, st.data(), st.sampled_from(["", "x", "x\n", "\n", "ab\nx", "\n\n", "a"]), st.sampled_from(["\n", "\r\n"])
)
def test_equals_str_replace(text: str, draw: st.DataObject, new: str, end: str) -> None:
    assume(text)
    start = draw.draw(st.integers(0, len(text) - 1))
    search = text[start : draw.draw(st.integers(start + 1, len(text)))]
    after = text.replace(search, new)
    assume(after != text and search != new)
    count = 1 if len(find_exact(text, search)) == 1 else text.count(search)
    assume(count > 1 or len(find_exact(text, search)) == 1)
    doc = decode(text.replace("\n", end).encode())
    assert doc is not None
    result = splice(doc, locate_changes(doc, [Replacement(search, new, count)]).edits)
    assert result.text == after
    if "\n" in text:
        assert encode(result) == after.replace("\n", end).encode()


@quick
@given(lf_text, st.lists(st.sampled_from(["", "x", "x\n", "\n"]), min_size=4, max_size=4), st.data())
def test_a_batch_is_one_replacement(text: str, news: list[str], draw: st.DataObject) -> None:
    """Unique marks in the text are replaced all at once, whatever lies between them."""
    marks = ["<1>", "<2>\n", "\n<3>", "<4>"]
    at = sorted(draw.draw(st.integers(0, len(text))) for _ in marks)
    whole, after = "", ""
    for mark, new, start, end in zip(marks, news, at, [*at[1:], len(text)], strict=True):
        whole, after = whole + mark + text[start:end], after + new + text[start:end]
    whole, after = text[: at[0]] + whole, text[: at[0]] + after
    changes = [Replacement(mark, new) for mark, new in zip(marks, news, strict=True)]
    doc = new_document(whole)
    assert splice(doc, locate_changes(doc, changes[::-1]).edits).text == after


@pytest.mark.parametrize(("text", "bare"), [
    pytest.param("     9\ta\n    10\tb", "a\nb", id="two lines"),
    pytest.param("     9\ta\n", "a\n", id="final newline"),
    pytest.param("9\ta\n    10\tb", "a\nb", id="first blanks lost"),
    pytest.param("     9\ta\n\n", None, id="a line without"),
    pytest.param("    10\ta\n     9\tb", None, id="not ascending"),
    pytest.param("a", None, id="none"),
    pytest.param("", None, id="empty"),
])  # fmt: skip
def test_strip_line_numbers(text: str, bare: str | None) -> None:
    assert strip_line_numbers(text) == bare


@quick
@given(lf_text, st.integers(1, 999_998))
def test_numbers_are_stripped_as_they_are_rendered(text: str, first: int) -> None:
    doc = new_document(text)
    assume(doc.lines)
    assert strip_line_numbers(render(doc.lines, first)[0]) == "".join(f"{line}\n" for line in doc.lines)


def test_nearest_are_shown() -> None:
    doc = new_document("def load(path):\n    return read(path)\n\ndef store(path, data):\n    write(path, data)\n")
    with pytest.raises(SearchNotFound) as caught:
        locate_changes(doc, [Replacement("def store(path, text):\n    write(path, text)\n", "")])
    assert [(near["line"], near["end_line"]) for near in caught.value.details["nearest"]] == [(4, 5), (1, 2)]
    assert caught.value.details["nearest"][0]["score"] > 0.8


@pytest.mark.parametrize(("lines", "passage", "places"), [
    pytest.param(["aaaa", "bbbb", "aaab"], ["aaaa"], [1, 3], id="best first"),
    pytest.param(["x y z", "x y z", "x y z", "x y z"], ["x y z!"], [1, 2, 3], id="the upper first, three at most"),
    pytest.param(["", "  "], ["", " "], [], id="blank passage"),
    pytest.param([], ["a"], [], id="empty text"),
    pytest.param(["abcdef"], ["zzz", "abcdef"], [1], id="begins before the text"),
])  # fmt: skip
def test_nearest(lines: list[str], passage: list[str], places: list[int]) -> None:
    assert [near["line"] for near in nearest(lines, passage)] == places


def test_an_empty_document() -> None:
    with pytest.raises(SearchNotFound):
        locate_changes(Document((), ()), [Replacement("a", "b")])


def test_the_work_grows_with_the_places_of_a_long_line_and_no_faster() -> None:
    """A look back to the line's begin at each of so many places takes hours."""
    line = "y" * 500_000
    (passage,) = locate_changes(new_document(f"{line}\n"), (Replacement("y", "z", len(line)),)).passages
    assert passage.edits[0].lines == ("z" * len(line),)


def test_a_refusal_names_the_first_places_only() -> None:
    """Line numbers for each of a hundred thousand places cost an agent its whole context."""
    with pytest.raises(SearchAmbiguous, match="occurs 100000 times") as refused:
        locate_changes(new_document("x = 1\n" * 100_000), (Replacement("x = 1", "y"),))
    assert refused.value.details["count"] == 100_000
    assert refused.value.details["lines"] == list(range(1, 21))
    assert "19, 20 …" in refused.value.message


def test_what_overlaps_itself_is_not_said_to_be_there_twice() -> None:
    with pytest.raises(SearchAmbiguous, match="overlaps itself") as refused:
        locate_changes(new_document("aaa\n"), (Replacement("aa", "b"),))
    assert "expected_count" not in refused.value.hint
