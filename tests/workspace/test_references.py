"""Where names are used, by each language's grammar and scopes."""

from __future__ import annotations

import pytest

from orchestrator.core.text.references import MEANT, Sought
from orchestrator.workspace.local_parser import references_in

PYTHON = """\
from tools import total
import total.parts
LIMIT = total(1)  # total
def f(total):
    return total + obj.total
def g():
    return total("total") + f"{total}"
def h():
    total = 1
    return [total for x in y]
class C:
    total = 2
    def total(self):
        return total
def k():
    global total
    total = 3
def m():
    def total(): ...
    return total()
call(total=1)
"""


def roles(language: str, text: str, sought: Sought) -> list[str]:
    answer = references_in(language, text.encode(), sought, 30.0)
    assert answer is not None
    return [f"{one.line}:{one.start} {one.role}" for one in answer.found]


def test_python() -> None:
    assert roles("python", PYTHON, Sought("total")) == [
        "1:18 import",
        "2:7 import",
        "3:8 use",
        "3:20 comment",
        "4:6 elsewhere",
        "5:11 elsewhere",
        "5:23 member",
        "7:11 use",
        "7:18 string",
        "7:31 use",
        "9:4 elsewhere",
        "10:12 elsewhere",
        "12:4 use",
        "13:8 definition",
        "14:15 use",
        "16:11 use",
        "17:4 use",
        "19:8 definition",
        "20:11 use",
        "21:5 member",
    ]


def test_a_local_definition_is_looked_for_in_its_scope() -> None:
    found = roles("python", PYTHON, Sought("total", line=19))
    assert [one for one in found if one.rpartition(" ")[2] in ("definition", "use")] == ["19:8 definition", "20:11 use"]


def test_what_is_defined_elsewhere_comes_by_an_import() -> None:
    text = "def total(): ...\ntotal()\nobj.total()\n"
    assert roles("python", text, Sought("total", foreign=True, imported=False)) == [
        "1:4 elsewhere",
        "2:0 elsewhere",
        "3:4 member",
    ]
    assert roles("python", text, Sought("total", foreign=True)) == ["1:4 definition", "2:0 use", "3:4 member"]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        pytest.param(
            "javascript",
            'import {x} from "./x";\nfunction f(x) { return x; }\nconst g = x => x;\nlet y = `${x} x`;\no.x = x;\n'
            "{ let x = 1; x; }\n// x\n",
            ["1:8 import", "1:19 string", "2:11 elsewhere", "2:23 elsewhere", "3:10 elsewhere", "3:15 elsewhere",
             "4:11 use", "4:14 string", "5:2 member", "5:6 use", "6:6 elsewhere", "6:13 elsewhere", "7:3 comment"],
            id="javascript",
        ),
        pytest.param(
            "typescript",
            "export function x(): void {}\nfunction f(x?: number) { return x }\nx();\n",
            ["1:16 definition", "2:11 elsewhere", "2:32 elsewhere", "3:0 use"],
            id="typescript",
        ),
        pytest.param(
            "go",
            "package a\nfunc x() {}\nfunc f(x int) int { return x }\n"
            "func g() { for x := range y { x() }; x(); o.x() }\n",
            ["2:5 definition", "3:7 elsewhere", "3:27 elsewhere", "4:15 elsewhere", "4:30 elsewhere", "4:37 use",
             "4:44 member"],
            id="go",
        ),
        pytest.param(
            "rust",
            'fn x() {}\nfn f(x: i32) -> i32 { x }\nfn g() { let x = 1; x; }\nfn h() { x(); m::x(); "x"; }\n',
            ["1:3 definition", "2:5 elsewhere", "2:22 elsewhere", "3:13 elsewhere", "3:20 elsewhere", "4:9 use",
             "4:17 member", "4:23 string"],
            id="rust",
        ),
        pytest.param(
            "java",
            "class A {\n int x() { return 1; }\n int f(int x) { return x; }\n int g() { return x() + this.x(); }\n}\n",
            ["2:5 definition", "3:11 elsewhere", "3:23 elsewhere", "4:18 use", "4:29 member"],
            id="java",
        ),
        pytest.param(
            "c",
            "int x(void) { return 1; }\nint f(int x) { return x; }\n"
            "int g(void) { int *x = 0; return *x; }\nint h(void) { return x(); }\n",
            ["1:4 definition", "2:10 elsewhere", "2:22 elsewhere", "3:19 elsewhere", "3:34 elsewhere", "4:21 use"],
            id="c",
        ),
        pytest.param(
            "cpp",
            "int x() { return 1; }\nint f(int& x) { return x; }\nint g() { return n::x(); }\n",
            ["1:4 definition", "2:11 elsewhere", "2:23 elsewhere", "3:20 member"],
            id="cpp",
        ),
        pytest.param("ruby", "def x; end\n# x\ny = x\n", ["1:4 definition", "2:2 comment", "3:4 use"], id="no scopes"),
    ],
)  # fmt: skip
def test_roles(language: str, text: str, expected: list[str]) -> None:
    assert roles(language, text, Sought("x")) == expected


JAVA = """\
class O {
  void run() {}
  void f() { int run = run(); use(run); }
  class I { void g() { run(); } }
  static class J { void run() { run(); } }
}
class P { int run; void run() {} Runnable r = () -> run(); }
class Q extends O { void f() { run(); } }
class R { void f() { run(); new O() { void g() { run(); } }; } }
enum E implements X { A; void f() { run(); } }
"""


@pytest.mark.parametrize(
    ("line", "lines"),
    [(2, [2, 3, 4, 8, 9, 10]), (5, [5, 5, 8, 9, 10]), (None, [8, 9, 9, 10])],
    ids=["O", "J", "foreign"],
)
def test_a_call_without_an_object_is_of_its_class_or_of_what_that_extends(line: int | None, lines: list[int]) -> None:
    found = roles("java", JAVA, Sought("run", line=line, foreign=line is None))
    assert [int(one.partition(":")[0]) for one in found if not one.endswith("elsewhere")] == lines


def test_without_a_grammar_nothing_is_known() -> None:
    assert references_in("python", b"\0", Sought("x"), 5.0) is None
    assert {"use", "word"} < MEANT
