"""The grammars: what each finds, and what becomes of texts that are broken or whose grammar is missing."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.lines import split
from orchestrator.core.text.symbols import LANGUAGES, Outline, Symbol, language_of
from orchestrator.workspace import local_parser
from orchestrator.workspace.local_parser import WHEELS, outlined
from tests.workspace.sources import EXPECTED, IMPORTS, SOURCES


def outline(language: str, text: str) -> Outline:
    found = outlined(language, text.encode(), 30.0)
    assert found is not None
    return found


def rows(found: Outline) -> list[str]:
    return [f"{symbol.kind} {name} {symbol.line}-{symbol.end_line}" for name, symbol in found.walk()]


def test_there_is_a_source_for_every_language() -> None:
    assert set(SOURCES) == set(EXPECTED) == set(WHEELS) == set(LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_a_source_defines(language: str) -> None:
    found = outline(language, SOURCES[language])
    assert rows(found) == [line.strip() for line in EXPECTED[language].strip().splitlines()]
    assert (found.language, found.errors, found.parsed) == (language, 0, True)


@pytest.mark.parametrize("language", IMPORTS)
def test_what_a_source_imports(language: str) -> None:
    source, expected = IMPORTS[language]
    found = outline(language, source).imports
    assert [f"{one.line} {one.source} {' '.join(one.names)}".strip() for one in found] == expected


@pytest.mark.parametrize("language", LANGUAGES)
def test_line_endings_and_a_mark_change_nothing(language: str) -> None:
    plain = outline(language, SOURCES[language])
    assert outline(language, "\ufeff" + SOURCES[language].replace("\n", "\r\n")) == plain
    assert outline(language, SOURCES[language].replace("\n", "\r")) == plain


@pytest.mark.parametrize(
    ("language", "text", "kept"),
    [
        pytest.param("python", "def one():\n    return (\n\ndef two():\n    pass\n", "two", id="python, open bracket"),
        pytest.param("javascript", "function one() { a = ; }\nfunction two() {}\n", "two", id="javascript, no value"),
        pytest.param("rust", "fn one() { let = 3; }\nfn two() {}\n", "two", id="rust, no name"),
        pytest.param("json", '{"one": , "two": 2}\n', "two", id="json, no value"),
        pytest.param("go", "package a\nfunc one() { x := }\nfunc two() {}\n", "two", id="go, no value"),
    ],
)
def test_a_broken_source_is_outlined_and_its_errors_counted(language: str, text: str, kept: str) -> None:
    found = outline(language, text)
    assert found.parsed
    assert found.errors > 0
    assert kept in [name for name, _ in found.walk()]


def test_a_missing_token_is_an_error() -> None:
    assert outline("c", "int f(void) { return 1 }\n").errors == 1


def test_what_shares_its_lines_says_so() -> None:
    by_name = dict(outline("javascript", "class A { f() {} }\nlet b = {\n  g: () => 1,\n};\n").walk())
    assert not by_name["A.f"].alone
    assert by_name["A"].alone
    assert (by_name["b.g"].alone, by_name["b.g"].tail) == (True, ",")


def test_a_missing_wheel_leaves_an_outline_by_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(local_parser.WHEELS, "python", local_parser._Wheel("tree_sitter_not_there"))
    local_parser.load.cache_clear()
    found = outline("python", "class A:\n    def f(self):\n        pass\n")
    local_parser.load.cache_clear()
    assert (found.language, found.parsed) == ("text", False)
    assert rows(found) == ["class A 1-3", "method A.f 2-3"]


def test_what_is_no_text_has_no_outline() -> None:
    assert outlined("python", b"def f():\0", 5.0) is None


@pytest.mark.parametrize(
    ("path", "language"),
    [
        pytest.param("src/a.py", "python", id="by suffix"),
        pytest.param("SRC/A.PY", "python", id="in capitals"),
        pytest.param("Gemfile", None, id="a whole name"),
        pytest.param(".py", None, id="a name that is all suffix"),
        pytest.param("py", None, id="no suffix"),
        pytest.param("a.py/notes.txt", None, id="a folder's suffix"),
    ],
)
def test_the_name_says_the_language(path: str, language: str | None) -> None:
    assert language_of(WorkspacePath(path)) == language


PIECES = st.sampled_from(
    ["def f():\n", "class A:\n", "  ", "\n", "{", "}", "(", "x = 1\n", "# c\n", "function g() {\n", "@d\n", '"a": ',
     "1", ",", "é", "\r\n", "\t", "'", "/*", "*/", "<div id=\"a\">", "[t]\n", "impl A {", "fn f() {}\n"]
)  # fmt: skip


def check(symbols: Iterable[Symbol], first: int, last: int) -> None:
    """Each within its holder's lines, in order, none empty."""
    before = first
    for symbol in symbols:
        assert before <= symbol.line <= symbol.end_line <= last
        check(symbol.children, symbol.line, symbol.end_line)
        before = symbol.line


@settings(deadline=None)
@given(st.sampled_from(LANGUAGES), st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=60))
def test_symbols_of_any_text_nest_and_lie_within_it(language: str, text: str) -> None:
    found = outlined(language, text.encode(errors="replace"), 30.0)
    if found is not None:
        check(found.symbols, 1, len(split(text)[0]))
