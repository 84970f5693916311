"""Globs: what they name, beside git, and that none of them takes long."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.core.globs import MOST_CHARACTERS, Glob, Globs
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.ignore_file import IgnoreFile, IgnoreFileOverBudget, as_bytes
from orchestrator.core.policy.matcher import Matcher
from orchestrator.core.policy.rules import Rule

GIT = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}

DEEP = "/".join("a" * 15 for _ in range(256))
WIDE = "/".join("a" * 255 for _ in range(16))

# Each with a path for which a matcher that goes back to earlier choices runs for years.
HOSTILE = [
    pytest.param("*a*a*a*a/*a*a*a*a/b", f"{'a' * 200}/{'a' * 200}/c", id="stars in two names"),
    pytest.param("**/*a*a*a*a/*a*a*a*a/b", WIDE, id="stars in two names, at any depth"),
    pytest.param("**/a/" * 10 + "b", "/".join("a" * 100), id="many double stars"),
    pytest.param("**/a*/" * 60 + "b", DEEP, id="double stars and stars"),
    pytest.param("*a" * 127 + "/" + "*a" * 127 + "b", WIDE, id="2 x 255 letters"),
    pytest.param("**/" + "*a" * 127 + "/" + "*a" * 127 + "b", DEEP, id="2 x 255 letters on 256 levels"),
    pytest.param("**/" + "*a?[ab]" * 140, WIDE + "/b", id="sets and question marks"),
    pytest.param("*a" * 499 + "b", "a" * 255, id="as long as a glob may be"),
    pytest.param("[!b]*" * 199 + "c", "a" * 255, id="negated sets"),
    pytest.param("**/" * 300 + "b", DEEP, id="nothing but double stars"),
    pytest.param("*" * 900 + "b", "a" * 255, id="one long run of stars"),
]


@pytest.mark.parametrize(("glob", "path"), HOSTILE)
def test_a_hostile_glob_is_answered_by_every_matcher(glob: str, path: str) -> None:
    name = path.rpartition("/")[2]
    rule = Rule(name="r", agents=("*",), actions=("read",), paths=(glob,), verdict="deny")
    assert Glob(glob).names(path, directory=False) is False
    assert Globs([glob]).match(WorkspacePath(path)) is False
    assert Matcher([rule]).matching(WorkspacePath(path)) == 0
    assert IgnoreFile(glob.encode()).verdict(path, name, directory=True) is None


@pytest.mark.parametrize(("glob", "path"), HOSTILE)
def test_the_effort_is_bounded(glob: str, path: str) -> None:
    assert len(glob) <= MOST_CHARACTERS
    assert_bounded(glob)


@given(st.text(alphabet="ab*?[]!-/\\", max_size=60))
def test_no_glob_takes_more(glob: str) -> None:
    assert_bounded(glob)


def assert_bounded(glob: str) -> None:
    """The steps that its expressions can take grow with the glob's length times the square of the path's, at most."""
    size = 4096
    for source in (Glob(glob).source, Glob(glob).covering):
        _, steps = effort(importlib.import_module("re._parser").parse(source, re.DOTALL), size)
        assert steps <= 10 * (len(glob) + 1) * size**2


def effort(expression: Iterable[tuple[Any, Any]], size: int) -> tuple[int, int]:
    """How often what follows an expression may be tried, and its own steps, on a text of `size` characters."""
    ways, steps = 1, 0
    for kind, value in expression:
        match str(kind):
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                _, most, body = value
                turns = min(int(most), size)
                inner = effort(body, size)
                own = inner[0] ** turns * turns * inner[1]
                choices = 1 if str(kind) == "POSSESSIVE_REPEAT" else inner[0] ** turns * (turns + 1)
            case "ATOMIC_GROUP":
                choices, own = 1, effort(value, size)[1]
            case "SUBPATTERN":
                choices, own = effort(value[-1], size)
            case "BRANCH":
                branches = [effort(branch, size) for branch in value[1]]
                choices, own = sum(b[0] for b in branches), sum(b[1] for b in branches)
            case _:
                choices, own = 1, 1
        steps += ways * own
        ways *= choices
    return ways, steps


@pytest.mark.parametrize(
    ("globs", "path", "meant"),
    [
        ("*.py", "x/y/a.py", True), ("*.py", "d.py/a.txt", True), ("*.py", "a.pyc", False), ("/a", "x/a", False),
        ("src", "src/a/b", True), ("src", "x/src/b", True), ("src/a", "x/src/a", False), ("src/a", "src/a/b", True),
        ("build/", "build", False), ("build/", "build/a", True), ("build/", "x/build/a", True),
        ("a/**", "a/b", True), ("a/**", "a", False), ("a/**/b", "a/b", True), ("a/**/b", "a/x/y/b/c", True),
        ("a/**/", "a/b", False), ("a/**/", "a/b/c", True), ("**", "a/b", True), ("*", "a", True),
        ("[z-a]", "a", False), ("[!z-a]", "a", True), ("[az-a]", "a", True), ("[a", "[a", False), ("a\\", "a", False),
        ("", "a", False), ("/", "a", False), ("#a", "#a", True), (r"\!a", "!a", True), (r"a\*", "a*", True),
        (r"a\*", "ab", False), ("a?b", "aéb", True), ("[é-ü]", "ö", True), ("[[:alpha:]]x", "bx", True),
        ("!a", "a/b", False), ("!a", "b", True), ("* !a", "a/b", False), ("*.md !docs", "docs/a.md", False),
        ("*.md !docs docs/a.md", "docs/a.md", True), ("src !src/gen", "src/gen/a", False),
        ("src !src/gen", "src/a", True), ("*.{py,ts}", "x/a.ts", True), ("*.{py,ts}", "a.tsx", False),
        ("{src,lib}/**/*.{c,h{,pp}}", "lib/x/a.hpp", True), ("{src,lib}/**/*.{c,h{,pp}}", "lib/x/a.h", True),
        ("* !*.{py,ts}", "a.ts", False), ("{a}", "{a}", True), (r"\{a,b}", "{a,b}", True), ("{a,b", "a", False),
        ("{a,b}" * 12, "b" * 12, False),
    ],
)  # fmt: skip
def test_what_a_list_means(globs: str, path: str, meant: bool) -> None:
    assert Globs(globs.split(" ")).match(WorkspacePath(path)) is meant


WORDS = st.builds(str.__add__, st.text(alphabet="ab.", max_size=2), st.sampled_from("ab"))
PATHS = st.lists(WORDS, min_size=1, max_size=5).map("/".join)
PARTS = st.one_of(
    st.sampled_from("** * ? a b *.a a*b [ab] [!a] [a-] []a] [b-a] \\a *** a?*".split()),
    st.text(alphabet=r"ab.*?[]!^-\:", min_size=1, max_size=6),
)  # fmt: skip
LINES = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["", "", "!", "/", "!/"]),
        st.lists(PARTS, min_size=1, max_size=4).map("/".join),
        st.sampled_from(["", "", "", "/", " ", r"\ ", "\r"]),
    ),
).filter(lambda line: not re.search(r"[^/*!]\*\*+(/|$)", line))  # git's manual and git differ


@given(LINES, PATHS)
def test_a_list_asks_of_the_path_and_of_all_above_it(glob: str, path: str) -> None:
    glob = glob.lstrip("!")
    parts = path.split("/")
    above = ["/".join(parts[:count]) for count in range(1, len(parts))]
    one = Glob(glob)
    named = one.names(path, directory=False) or any(one.names(folder, directory=True) for folder in above)
    assert Globs([glob]).match(WorkspacePath(path)) is named


@pytest.fixture(scope="module")
def repository() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "init", "-q", "--template=", folder], check=True, env=GIT)
        yield Path(folder)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(max_examples=200, deadline=None)
@given(lines=st.lists(LINES, min_size=1, max_size=5), paths=st.lists(PATHS, min_size=1, max_size=12, unique=True))
def test_as_git_ignores(repository: Path, lines: list[str], paths: list[str]) -> None:
    data = "\n".join(lines).encode()
    (repository / ".gitignore").write_bytes(data)
    command = ["git", "-C", str(repository), "check-ignore", "--no-index", "-z", "--stdin"]
    reported = subprocess.run(command, input="\0".join(paths).encode(), check=False, capture_output=True, env=GIT)
    assert {path for path in paths if ignored(IgnoreFile(data), path)} == set(reported.stdout.decode().split("\0")) - {
        ""
    }


def ignored(rules: IgnoreFile, path: str) -> bool:
    """Parents first, as the workspace asks."""
    parts = path.split("/")
    for count in range(1, len(parts) + 1):
        asked = as_bytes("/".join(parts[:count]))
        if rules.verdict(asked, as_bytes(parts[count - 1]), directory=count < len(parts)):
            return True
    return False


@pytest.mark.parametrize(
    ("data", "says"),
    [
        pytest.param(b"#" * (1024 * 1024 + 1), "larger than 1,048,576 bytes", id="too large"),
        pytest.param(b"\n".join(b"n%d" % n for n in range(10_001)), "10,001 rules, of at most 10,000", id="rules"),
        pytest.param(
            b"\n".join(b"*/n%05d" % n for n in range(5000)), "40,000 bytes, of at most 32,768", id="wildcards"
        ),
    ],
)
def test_an_ignore_file_has_a_budget(data: bytes, says: str) -> None:
    with pytest.raises(IgnoreFileOverBudget, match=says):
        IgnoreFile(data)


def test_many_plain_rules_are_a_look_up() -> None:
    rules = IgnoreFile(b"\n".join(b"d/n%d" % n for n in range(9_999)) + b"\n!d/n7")
    assert rules.verdict("d/n9998", "n9998", directory=False) is True
    assert rules.verdict("d/n7", "n7", directory=False) is False
    assert rules.verdict("n9", "n9", directory=False) is None
