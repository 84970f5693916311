"""A symbol's new content: its lines and no others, indented as the symbol was."""

from __future__ import annotations

import pytest

from orchestrator.core.errors import CallerError, ParameterInvalid, SymbolAmbiguous, SymbolNotFound
from orchestrator.core.text.edits import splice
from orchestrator.core.text.encoding import decode, encode
from orchestrator.core.text.locate_symbol import SymbolChange, locate_symbol
from orchestrator.core.text.symbols import Outline, Symbol

TEXT = """\
class A:
    # starts
    @property
    def start(self):
        return 1

    def stop(self):
        return 2


class B:
    def stop(self):
        return 3
"""
OUTLINE = Outline(
    "python",
    (
        Symbol("A", "class", 1, 8, (Symbol("start", "method", 2, 5), Symbol("stop", "method", 7, 8))),
        Symbol("B", "class", 11, 13, (Symbol("stop", "method", 12, 13),)),
    ),
)


def replaced(change: SymbolChange, text: str = TEXT, outline: Outline = OUTLINE) -> str:
    document = decode(text.encode())
    assert document is not None
    return encode(splice(document, locate_symbol(document, outline, change))).decode()


START = "    # starts\n    @property\n    def start(self):\n        return 1\n"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(SymbolChange("A.start", "def start(self):\n    return 9\n"),
                     TEXT.replace(START, "    def start(self):\n        return 9\n"), id="indented to its place"),
        pytest.param(SymbolChange("start", "    def start(self):\n        return 9\n"),
                     TEXT.replace(START, "    def start(self):\n        return 9\n"), id="by its last name, indented"),
        pytest.param(SymbolChange("A.start", "        def start(self):\n            return 9"),
                     TEXT.replace(START, "    def start(self):\n        return 9\n"), id="indented too far"),
        pytest.param(SymbolChange("A.start", "\n\ndef start(self):\n\n    return 9\n\n"),
                     TEXT.replace(START, "    def start(self):\n\n        return 9\n"),
                     id="blank lines around go, inside stay blank"),
        pytest.param(SymbolChange("A.start", ""), TEXT.replace(START, ""), id="removed"),
        pytest.param(SymbolChange("B", "class B:\n    pass\n"), TEXT[: TEXT.index("class B")] + "class B:\n    pass\n",
                     id="the last"),
    ],
)  # fmt: skip
def test_a_symbol_is_replaced(change: SymbolChange, expected: str) -> None:
    assert replaced(change) == expected


def test_other_lines_keep_their_endings() -> None:
    crlf = TEXT.replace("\n", "\r\n")
    assert replaced(SymbolChange("B.stop", "def stop(self): ..."), crlf) == (
        TEXT[: TEXT.index("class B")] + "class B:\n    def stop(self): ...\n"
    ).replace("\n", "\r\n")
    bare = TEXT.removesuffix("\n")
    assert not replaced(SymbolChange("B.stop", "def stop(self): ...\n"), bare).endswith("\n")


def test_the_comma_after_a_key_stays() -> None:
    text = '{\n  "a": 1,\n  "b": 2\n}\n'
    outline = Outline("json", (Symbol("a", "key", 2, 2, tail=","), Symbol("b", "key", 3, 3)))
    assert replaced(SymbolChange("a", '"a": [1]'), text, outline) == text.replace("1,", "[1],")
    assert replaced(SymbolChange("a", '"a": [1],'), text, outline) == text.replace("1,", "[1],")
    assert replaced(SymbolChange("b", '"b": [1]'), text, outline) == text.replace("2", "[1]")


@pytest.mark.parametrize(
    ("outline", "name", "error"),
    [
        pytest.param(OUTLINE, "A.begin", SymbolNotFound, id="no such name"),
        pytest.param(OUTLINE, "top", SymbolNotFound, id="part of a name is none"),
        pytest.param(OUTLINE, "stop", SymbolAmbiguous, id="one of each class"),
        pytest.param(Outline("text", OUTLINE.symbols, parsed=False), "A", SymbolNotFound, id="not parsed"),
        pytest.param(None, "A", SymbolNotFound, id="no text"),
        pytest.param(
            Outline("c", (Symbol("A", "struct", 1, 1, alone=False),)), "A", ParameterInvalid, id="shared lines"
        ),
    ],
)
def test_refusals(outline: Outline | None, name: str, error: type[CallerError]) -> None:
    document = decode(TEXT.encode())
    assert document is not None
    with pytest.raises(error):
        locate_symbol(document, outline, SymbolChange(name, "x"))


def test_a_refusal_says_what_is_there() -> None:
    with pytest.raises(SymbolNotFound) as missing:
        replaced(SymbolChange("A.strat", "x"))
    assert missing.value.details["nearest"][0] | {"score": 0} == {
        "name": "A.start",
        "line": 2,
        "end_line": 5,
        "score": 0,
    }
    assert "A.start" in missing.value.message
    with pytest.raises(SymbolNotFound) as nothing:
        replaced(SymbolChange("zzz", "x"))
    assert "nearest" not in nothing.value.hint.lower()
    with pytest.raises(SymbolAmbiguous) as several:
        replaced(SymbolChange("stop", "x"))
    assert several.value.details["lines"] == [7, 12]
    assert several.value.details["symbols"] == ["A.stop", "B.stop"]


def test_a_type_goes_before_its_implementation() -> None:
    outline = Outline("rust", (Symbol("A", "struct", 1, 1), Symbol("A", "impl", 2, 3, (Symbol("f", "method", 3, 3),))))
    text = "struct A;\nimpl A {\n    fn f() {} }\n"
    assert replaced(SymbolChange("A", "struct A(u8);"), text, outline).startswith("struct A(u8);\nimpl A {\n")


def test_content_takes_the_files_tabs() -> None:
    text, spans = "func a() int {\n\treturn 1\n}\n\nfunc b() int {\n\treturn 2\n}\n", ((1, 3), (5, 7))
    outline = Outline("go", tuple(Symbol(name, "function", *span) for name, span in zip("ab", spans, strict=True)))
    made = replaced(SymbolChange("a", "func a() int {\n    if x {\n        return 3\n    }\n}\n"), text, outline)
    assert made.startswith("func a() int {\n\tif x {\n\t\treturn 3\n\t}\n}\n\n")
