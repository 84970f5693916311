"""Lines that begin inside a string or a comment."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.text.merging.quoted_lines import begins_quoted
from tests.core.text.strategies import quick


def quoted(language: str, text: str) -> list[int]:
    """The 0-based lines that begin quoted, asked one by one."""
    lines = text.split("\n")
    return [at for at in range(len(lines)) if begins_quoted(language, lines, at, 1)]


@pytest.mark.parametrize(("language", "text", "expected"), [
    pytest.param("python", 'a = """\nimport b\n"""\nimport c', [1, 2], id="Python"),
    pytest.param("python", "a = '''x\n\"\"\"\n'''\nimport c", [1, 2], id="Python, the other quotes inside"),
    pytest.param("python", "# \"\"\"\nimport c\na = '\"\"\"'\nimport d", [], id="Python, quotes in a comment"),
    pytest.param("python", "a = 'x\\\nimport b'\nimport c", [1], id="Python, a string carried on"),
    pytest.param("python", 'a = """\nimport b', [1], id="Python, not ended"),
    pytest.param("javascript", "const a = `\nimport b\n`;\nimport c", [1, 2], id="JavaScript"),
    pytest.param("typescript", "a(/`/);\nimport b\nc(/[/`]/)", [], id="TypeScript, a pattern"),
    pytest.param("typescript", "/*\nimport b\n*/\nimport c", [1, 2], id="TypeScript, a comment"),
    pytest.param("go", "a := `\nimport b\n`\n// `\nimport c", [1, 2], id="Go"),
    pytest.param("rust", 'let a = r#"\nuse b;\n" "#;\nlet c = \'"\';\nuse d;', [1, 2], id="Rust"),
    pytest.param("rust", 'let a: &\'a str = "\nuse b;\n";\nuse d;', [1, 2], id="Rust, an ordinary string"),
    pytest.param("java", 'String a = """\nimport b;\n""";\nimport c;', [1, 2], id="Java"),
    pytest.param("cpp", 'auto a = R"x(\n#include <b>\n)" )x";\n#include <c>', [1, 2], id="C++"),
    pytest.param("text", '"""\nimport b\n"""', [], id="no language"),
])  # fmt: skip
def test_begins_quoted(language: str, text: str, expected: list[int]) -> None:
    assert quoted(language, text) == expected


@quick
@given(
    st.lists(st.sampled_from(['"""', "'''", '"', "'", "#", "\\", "\n", "x", "\nimport a\n"]), max_size=12).map("".join)
)
def test_no_import_of_python_that_counts_stands_in_a_string(text: str) -> None:
    """Against Python's own parser: a line counts if and only if it is a statement."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    imports = {node.lineno - 1 for node in ast.walk(tree) if isinstance(node, ast.Import) and node.col_offset == 0}
    lines = text.split("\n")
    said = {at for at, line in enumerate(lines) if line == "import a" and not begins_quoted("python", lines, at, 1)}
    assert said == {at for at in imports if lines[at] == "import a"}
