"""Patterns that name commands, and what of a command is code for an interpreter."""

from __future__ import annotations

import pytest

from orchestrator.core.commands import code_words, command_problem, names_command, shell_argv


@pytest.mark.parametrize(
    ("pattern", "line", "named"),
    [
        pytest.param("make test", "make test", True, id="as it is"),
        pytest.param("make test", "make", False, id="a word less"),
        pytest.param("make test", "make test all", False, id="a word more"),
        pytest.param("pytest **", "pytest", True, id="no further words"),
        pytest.param("pytest **", "pytest -q tests/a.py", True, id="some further words"),
        pytest.param("pytest *", "pytest -q", True, id="any one word"),
        pytest.param("pytest *", "pytest -q tests", False, id="one word is not two"),
        pytest.param("npm run test:*", "npm run test:unit", True, id="within a word"),
        pytest.param("npm run test:*", "npm run build", False, id="another word"),
        pytest.param("go t.st", "go test", False, id="a dot is a dot"),
        pytest.param("pytest **", "pytestx", False, id="a longer name"),
        pytest.param("pytest **", "./pytest", False, id="another program of the name"),
        pytest.param("'a b' c", "ab c", False, id="quoted words keep their spaces"),
        pytest.param("sh **", "sh run.sh", True, id="a script"),
        pytest.param("sh **", "sh -c x", False, id="code, and the pattern does not say -c"),
        pytest.param("* **", "bash -lc x", False, id="code, and the pattern names nothing"),
        pytest.param("sh -c *", "sh -c x", True, id="code, and the pattern says -c"),
        pytest.param("env **", "env sh -c x", False, id="code behind another program"),
        pytest.param("python3 **", "python3 -c x", False, id="python's"),
        pytest.param("python3 -m pytest **", "python3 -m pytest -q", True, id="a module"),
        pytest.param("node **", "node --eval=x", False, id="node's"),
    ],
)
def test_a_pattern_allows(pattern: str, line: str, *, named: bool) -> None:
    assert names_command((pattern,), line.split(), allowing=True) is named


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        pytest.param("curl **", "/usr/bin/curl x", id="by its path"),
        pytest.param("curl **", "curl x", id="by its name"),
        pytest.param("* **", "sh -c x", id="code, too"),
    ],
)
def test_a_pattern_that_denies_names_a_program_however_it_is_called(pattern: str, line: str) -> None:
    assert names_command((pattern,), line.split(), allowing=False)


@pytest.mark.parametrize(
    ("line", "places"),
    [
        pytest.param("sh -c x", (0, 1), id="a shell's"),
        pytest.param("/bin/bash -xec x", (0, 1), id="among other options"),
        pytest.param("python3.11 -I -c x", (0, 2), id="behind another option"),
        pytest.param("timeout 5 sh -c x", (2, 3), id="behind another program"),
        pytest.param("perl -E x", (0, 1), id="perl's"),
        pytest.param("deno eval x", (0, 1), id="deno's"),
        pytest.param("pytest -c x", (), id="an option of a program that takes none"),
        pytest.param("sh -- -c", (), id="behind the end of options"),
        pytest.param("python3 x.py", (), id="a script"),
    ],
)
def test_the_words_that_say_that_code_follows(line: str, places: tuple[int, ...]) -> None:
    assert code_words(line.split()) == places


@pytest.mark.parametrize(
    ("pattern", "fine"),
    [
        pytest.param("pytest **", True, id="fine"),
        pytest.param("", False, id="empty"),
        pytest.param("**", False, id="every command"),
        pytest.param("make 'test", False, id="a quote that is open"),
        pytest.param("a ** b", False, id="any words in the middle"),
        pytest.param("a x**", False, id="any words within a word"),
    ],
)
def test_what_is_wrong_with_a_pattern(pattern: str, *, fine: bool) -> None:
    assert (command_problem(pattern) is None) is fine


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        pytest.param("pytest -q", ("pytest", "-q"), id="plain words"),
        pytest.param("pytest -k 'a b' --maxfail=1", ("pytest", "-k", "a b", "--maxfail=1"), id="quotes"),
        *(
            pytest.param(text, ("sh", "-c", text), id=text)
            for text in (
                "pytest; ls", "pytest && ls", "pytest | tail", "pytest &", "pytest > x", "pytest < x", "pytest $X",
                "pytest `ls`", "pytest $(ls)", "pytest *.py", "pytest a?", "pytest [ab]", "pytest {a,b}", "pytest ~",
                "pytest\nls", "X=1 pytest", "! pytest", "pytest # all", "pytest 'x", "pytest \\", "pytest '$X'", "",
            )
        ),
    ],
)  # fmt: skip
def test_the_text_for_a_shell_as_a_command(text: str, argv: tuple[str, ...]) -> None:
    assert shell_argv(text) == argv
