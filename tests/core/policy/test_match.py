from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.policy.matcher import Matcher
from orchestrator.core.policy.protected import literal
from orchestrator.core.policy.rules import Answer, Rule


def matches(verdict: Answer, globs: str | list[str], path: str, *, directory: bool = False) -> bool:
    paths = tuple(globs.split()) if isinstance(globs, str) else tuple(globs)
    rule = Rule(name="r", agents=("*",), actions=("read",), paths=paths, verdict=verdict)
    return bool(Matcher([rule]).matching(WorkspacePath(path), directory=directory))


@pytest.mark.parametrize("verdict", ["allow", "deny"])
@pytest.mark.parametrize(
    ("globs", "path", "matched"),
    [
        ("*.py", "a.py", True), ("*.py", "x/y/a.py", True), ("*.py", "a.pyc", False), ("*.py", "d.py/a.txt", True),
        ("/a", "a", True), ("/a", "x/a", False), ("/a", "a/b/c", True), ("a/b", "a/b/c", True), ("a/b", "x/a/b", False),
        ("**/a/b", "x/a/b/c", True), ("a/**", "a/b/c", True), ("a/**", "a", False), ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True), ("a/*", "a/b/c", True), ("a/*", "a", False), ("a/", "a/b", True),
        ("**", ".", True), ("*", ".", True), ("a", ".", False), (".*", ".", False), ("**", "a/b", True),
        ("*/**", "a", False), ("*/**", "a/b", True), ("**/*/**", "a", False), ("**/*/**", "a/b", True),
        ("a?c", "abc", True), ("a[!x]c", "abc", True), ("a[!x]c", "axc", False), ("a[!x]c", "a/c", False),
        ("foo/**/", "foo/bar/baz", True), ("**/a/**", "a/a", True),
    ],
)  # fmt: skip
def test_globs(verdict: Answer, globs: str, path: str, matched: bool) -> None:
    assert matches(verdict, globs, path) is matched


@pytest.mark.parametrize(
    ("verdict", "globs", "path", "matched"),
    [
        pytest.param("deny", "*.pem !*.example.pem", "a.example.pem", False, id="excepted"),
        pytest.param("deny", "private !private/readme.md", "private/readme.md", True, id="not under a matched parent"),
        pytest.param("deny", "private/* !private/readme.md", "private/readme.md", False, id="parent not matched"),
        pytest.param("deny", "private/** !private/a/b", "private/a/b", True, id="the parent a is matched"),
        pytest.param("deny", "** !docs", "docs", False, id="top level"),
        pytest.param("deny", "** !docs", "docs/a", True, id="an exception is for what it names"),
        pytest.param("deny", "conf* !conf-public", "conf-public/conf.pem", True, id="not for what lies in it"),
        pytest.param("deny", "*.pem !x *.pem", "x/a.pem", True, id="the last decides"),
        pytest.param("deny", "*.env !a.env", "A.env", True, id="an exception in another spelling"),
        pytest.param("deny", "id_* !id_*/", "id_dir", True, id="not known to be a directory"),
        pytest.param("deny", "id_* !id_*/", "id_dir/a.py", False, id="a directory for certain"),
        pytest.param("allow", "** !private/keys", "private/keys", False, id="allow: inside what is matched"),
        pytest.param("allow", "** !private/keys", "private/keys/a", False, id="allow: and below"),
        pytest.param("allow", "** !private/keys", "private/a", True, id="allow: beside"),
        pytest.param("allow", "** !private private/a", "private/a", False, id="allow: never granted again below"),
        pytest.param("allow", "** !private", "PRIVATE/a", False, id="allow: exception in another spelling"),
        pytest.param("allow", "** !build/", "build", False, id="allow: may be a directory"),
        pytest.param("allow", "Docs/**", "Docs/a", True, id="allow: capitals in the pattern"),
        pytest.param("allow", "Docs/**", "docs/a", False, id="allow: both spellings"),
        pytest.param("deny", "Docs/**", "docs/a", True, id="deny: either spelling"),
        pytest.param("deny", "ＤＯＣＳ", "docs", True, id="a fullwidth pattern"),
    ],
)
def test_exceptions_and_spellings(verdict: Answer, globs: str, path: str, matched: bool) -> None:
    assert matches(verdict, globs, path) is matched


@pytest.mark.parametrize(
    ("verdict", "directory", "matched"), [("deny", False, True), ("allow", False, False), ("allow", True, True)]
)
def test_a_glob_for_directories(verdict: Answer, directory: bool, matched: bool) -> None:
    assert matches(verdict, "build/", "build", directory=directory) is matched


@given(st.text(min_size=1, alphabet="ab[]!*?# \\.-").filter(lambda s: s.strip(". ") != ""))
def test_a_literal_names_itself_and_nothing_else(name: str) -> None:
    assert matches("deny", [literal(WorkspacePath(name))], name)
    assert matches("deny", [literal(WorkspacePath(name))], name + "/below")
    assert not matches("deny", [literal(WorkspacePath(name))], "x" + name)
    assert not matches("deny", [literal(WorkspacePath(name))], "x/" + name)
