"""Indentation of what comes new: as the file has it, and never inside of a string."""

from __future__ import annotations

import pytest

from orchestrator.core.errors import SearchNotFound
from orchestrator.core.text.edits import splice
from orchestrator.core.text.encoding import decode, encode
from orchestrator.core.text.indent import fitted, inside_strings, step_of
from orchestrator.core.text.locate import Replacement, locate_changes


@pytest.mark.parametrize(("text", "inside", "docs"), [
    pytest.param('x = """\na\nb"""\nc', [1, 2], [], id="triple"),
    pytest.param("x = '''\na\n'''\nc", [1, 2], [], id="triple, single quotes"),
    pytest.param('def f():\n    """A.\n\n    B.\n    """\n    c', [], [2, 3, 4], id="docstring"),
    pytest.param('def f(\n    a,\n) -> int:\n    """A.\n    """\n    c', [], [4], id="docstring below long parameters"),
    pytest.param('f(\n    """\n    a\n    """\n)', [2, 3], [], id="a string on lines of its own"),
    pytest.param('x = """a"""\nb', [], [], id="closed in its line"),
    pytest.param('x = """a\n\\"""\nb"""\nc', [1, 2], [], id="escaped"),
    pytest.param('# a """\nb\n# c """\n', [], [], id="in a comment"),
    pytest.param("x = '\"\"\"'\nb\ny = '\"\"\"'\n", [], [], id="in a string"),
    pytest.param("x = `a\n${b}\n`;\nc", [1, 2], [], id="template"),
    pytest.param("x = `a`;\ny = 'it`s';\nz = `b`;", [], [], id="templates closed"),
    pytest.param("```py\na\n```\nb", [], [], id="fence"),
    pytest.param("cat <<EOF\n a\nEOF\nb", [1, 2], [], id="here-document"),
    pytest.param("cat <<-'EOF' | x\n a\n\tEOF\nb", [1, 2], [], id="here-document, indented and quoted"),
    pytest.param("a = <<~SQL\n  b\nSQL\n", [1, 2], [], id="in Ruby"),
    pytest.param("cout << a;\nb;\na = 1 << c;\n", [], [], id="streams and shifts"),
    pytest.param("cout <<a;\nx = `\nb\n`;", [2, 3], [], id="what is never closed hides nothing"),
    pytest.param('x = """\na', [], [], id="never closed"),
])  # fmt: skip
def test_inside_strings(text: str, inside: list[int], docs: list[int]) -> None:
    found = inside_strings(text.split("\n"))
    assert [at for at, string in found.items() if not string.doc] == inside
    assert [at for at, string in found.items() if string.doc] == docs


@pytest.mark.parametrize(("text", "step"), [
    pytest.param("a\n  b\n    c\n  d", "  ", id="two"),
    pytest.param("f(a,\n      b)\n    c", "    ", id="a list that goes on counts once"),
    pytest.param("a\n\tb", "\t", id="tab"),
    pytest.param("a\nb", None, id="none"),
])  # fmt: skip
def test_step(text: str, step: str | None) -> None:
    assert step_of(text.split("\n")) == step


GO = "func f() int {\n\tif a {\n\t\treturn 1\n\t}\n\treturn 0\n}"
QUERY = '    def f(self):\n        q = """\n          SELECT 1\n        """\n        return q'


@pytest.mark.parametrize(("old", "content", "made"), [
    pytest.param(GO, "func f() int {\n    if b {\n        return 2\n    }\n    return 0\n}",
                 "func f() int {\n\tif b {\n\t\treturn 2\n\t}\n\treturn 0\n}", id="blanks for tabs"),
    pytest.param(GO, "func f(a int,\n       b int) {\n  return 2\n}", "func f(a int,\n\t\t\t b int) {\n\treturn 2\n}",
                 id="two blanks for tabs"),
    pytest.param("\tf() {\n\t\treturn 1;\n\t}", "  f() {\n    return 2;\n  }", "\tf() {\n\t\treturn 2;\n\t}",
                 id="blanks for tabs, inside"),
    pytest.param("f() {\n    a\n}", "f() {\n\tif b {\n\t\tc\n\t}\n}", "f() {\n    if b {\n        c\n    }\n}",
                 id="tabs for blanks"),
    pytest.param("    def f():\n        a", "def f():\n  b", "    def f():\n      b", id="blanks stay as they came"),
    pytest.param("    def f():\n        a", 'def f():\n    b = """\n  x\n\ny\n"""\n    c',
                 '    def f():\n        b = """\n  x\n\ny\n"""\n        c', id="a new string"),
    pytest.param(QUERY, QUERY.replace("    def", "def").replace("return q", "return q, 1"),
                 QUERY.replace("return q", "return q, 1").replace("        q", "            q", 1)
                 .replace("        return", "            return"), id="a string as it was"),
    pytest.param(QUERY, "\n".join(line[4:] for line in QUERY.split("\n")), QUERY, id="a string shifted with its code"),
    pytest.param("    def f():\n        a", 'def f():\n    """A.\n\n    B.\n    """\n    c',
                 '    def f():\n        """A.\n\n        B.\n        """\n        c', id="a docstring"),
    pytest.param("\tf() {\n\t\ta\n\t}", "f() {\n  x = `\n  y\n`;\n}", "\tf() {\n\t\tx = `\n  y\n`;\n\t}",
                 id="a template"),
    pytest.param("\tf() {\n\t\ta\n\t}", "f() {\n  cat <<EOF\n  y\nEOF\n}", "\tf() {\n\t\tcat <<EOF\n  y\nEOF\n\t}",
                 id="a here-document"),
])  # fmt: skip
def test_content_is_fitted(old: str, content: str, made: str) -> None:
    assert fitted(content.split("\n"), old.split("\n"), old.split("\n")) == made.split("\n")


PY = 'class A:\n    def f(self):\n        q = """\n  SELECT a\n"""\n        return q\n'


@pytest.mark.parametrize(("text", "search", "replace"), [
    pytest.param(PY, "def f(self):\n    q = \"\"\"\n  SELECT a\n\"\"\"\n",
                 "def f(self):\n    q = \"\"\"\n  SELECT a\n  FROM b\n\"\"\"\n",
                 id="inside of a string that is quoted as it stands"),
    pytest.param(PY, "def f(self):\n    q = \"\"\"\n", "def f(self):\n    p = \"\"\"\n x\n\"\"\"\n    q = \"\"\"\n",
                 id="a new string"),
    pytest.param("f() {\n\tg\n\th = `\n  a\n`;\n}\n", "    g\n    h = `\n  a\n`;\n",
                 "    g(1)\n    h = `\n  a\n  b\n`;\n    i\n", id="template"),
    pytest.param("f() {\n\tcat <<EOF\n  a\nEOF\n}\n", "    cat <<EOF\n  a\nEOF\n",
                 "    cat <<EOF\n  a\n  b\nEOF\n    c\n", id="here-document"),
    pytest.param("f() {\n\tcat <<EOF\n  a\n  b\nEOF\n\tc\n}\n", "  b\nEOF\n    c\n", "  b\n  x\nEOF\n    c\n    d\n",
                 id="from amid a string"),
])  # fmt: skip
def test_a_new_line_inside_of_a_string_is_not_indented_by_guess(text: str, search: str, replace: str) -> None:
    doc = decode(text.encode())
    assert doc is not None
    with pytest.raises(SearchNotFound):
        locate_changes(doc, [Replacement(search, replace, fuzzy=True)], lenient=True)


def test_a_line_of_a_string_that_is_changed_keeps_its_blanks() -> None:
    doc = decode(f"{QUERY}\n".encode())
    assert doc is not None
    search = 'def f(self):\n    q = """\n      SELECT 1\n    """\n'
    found = locate_changes(doc, [Replacement(search, search.replace("1", "2"), fuzzy=True)], lenient=True)
    assert encode(splice(doc, found.edits)).decode() == f"{QUERY}\n".replace("SELECT 1", "SELECT 2")
