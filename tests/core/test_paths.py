from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core import paths
from orchestrator.core.errors import PathError
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import check_new_name, entry_rank, fold, folded, parse_path, valid_name

ROOTS = ("/srv/W", "/data/real/W")


def code(raw: str, *, directory: bool = False, may_create: bool = False, new: bool = False) -> str:
    """The refusal's code, or `=` and the path."""
    try:
        path = parse_path(raw, roots=ROOTS, directory=directory, may_create=may_create)
        if new:
            check_new_name(path)
    except PathError as error:
        return error.code
    return "=" + path


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param("src/a.py", "=src/a.py", id="plain"),
        pytest.param("./src/a.py", "=src/a.py", id="leading ./"),
        pytest.param("././a", "=a", id="leading ./ twice"),
        pytest.param("/srv/W/a.py", "=a.py", id="own root"),
        pytest.param("/data/real/W/a/b", "=a/b", id="own real root"),
        pytest.param("../S", "path_not_canonical", id="row 1"),
        pytest.param("..", "path_not_canonical", id="row 1, bare"),
        pytest.param("../", "path_not_canonical", id="row 1, slash"),
        pytest.param("./../S", "path_not_canonical", id="row 1, after ./"),
        pytest.param("/srv/W/../S", "path_not_canonical", id="row 1, after the root"),
        pytest.param("a/../../S", "path_not_canonical", id="row 2"),
        pytest.param("a/../b.txt", "path_not_canonical", id="row 3"),
        pytest.param("a/./b.txt", "path_not_canonical", id="dot inside"),
        pytest.param("a//b.txt", "path_not_canonical", id="empty component"),
        pytest.param(".//etc/passwd", "path_not_canonical", id="never absolute after ./"),
        pytest.param(".//srv/W/a", "path_not_canonical", id="root is not cut after ./"),
        pytest.param("/srv/W//a", "path_not_canonical", id="root, then an empty component"),
        pytest.param("cafe\u0301.py", "path_not_canonical", id="NFD"),
        pytest.param("caf\u00e9.py", "=caf\u00e9.py", id="NFC"),
        pytest.param("/etc/passwd", "path_absolute", id="row 4"),
        pytest.param("/srv/W-evil/a", "path_absolute", id="row 5"),
        pytest.param("/etc/../srv/W/a", "path_absolute", id="absolute with dots"),
        pytest.param("//etc//passwd", "path_absolute", id="row 6"),
        pytest.param("//srv/W/a", "path_absolute", id="row 6, own root"),
        pytest.param("a.txt/", "not_a_directory", id="row 8"),
        pytest.param("a.txt//", "path_not_canonical", id="row 8, twice"),
        pytest.param("", "path_invalid", id="row 9, empty"),
        pytest.param(".", "not_a_file", id="row 9, dot"),
        pytest.param("./", "not_a_file", id="row 9, dot slash"),
        pytest.param("/srv/W", "not_a_file", id="row 9, the root by name"),
        pytest.param("/", "path_absolute", id="row 9, slash"),
        pytest.param("~/.ssh/id_rsa", "=~/.ssh/id_rsa", id="row 10, home"),
        pytest.param("~root/x", "=~root/x", id="row 10, user"),
        pytest.param("$HOME/.netrc", "=$HOME/.netrc", id="row 10, variable"),
        pytest.param("file:///etc/passwd", "not_found", id="row 11, URL"),
        pytest.param("file:///../etc", "path_not_canonical", id="row 11, URL with dots"),
        pytest.param("\\\\host\\share", "=\\\\host\\share", id="row 11, UNC"),
        pytest.param("C:\\x", "=C:\\x", id="row 11, drive"),
        pytest.param("%2e%2e/S", "=%2e%2e/S", id="row 12"),
        pytest.param("..%2fS", "=..%2fS", id="row 12, slash"),
        pytest.param("%252e%252e/S", "=%252e%252e/S", id="row 12, twice"),
        pytest.param("a\ud800.txt", "path_invalid", id="row 14"),
        pytest.param("a\0.txt", "path_invalid", id="row 15"),
        pytest.param("a\n.txt", "path_invalid", id="row 16, newline"),
        pytest.param("a\x1b[0m", "path_invalid", id="row 16, ESC"),
        pytest.param("a\x07", "path_invalid", id="row 16, BEL"),
        pytest.param("a\x7f", "path_invalid", id="row 16, DEL"),
        pytest.param("a\x85b", "path_invalid", id="C1 control"),
        pytest.param("a\u2028b", "path_invalid", id="line separator"),
        pytest.param("x" * 255, "=" + "x" * 255, id="255 bytes"),
        pytest.param("x" * 256, "path_too_long", id="row 17, component"),
        pytest.param("\u00e9" * 128, "path_too_long", id="row 17, counted in bytes"),
        pytest.param("/".join(["x" * 99] * 50), "path_too_long", id="row 17, 5,000 bytes"),
        pytest.param("/".join(["a"] * 3000), "path_too_long", id="row 17, 3,000 components"),
        pytest.param(".g\u200cit/config", "path_invalid", id="row 46, ZWNJ"),
        pytest.param(".git\u00ad/config", "path_invalid", id="row 46, soft hyphen"),
        pytest.param("a\u202etxt.py", "path_invalid", id="row 46, bidi override"),
    ],
)
def test_names_of_files(raw: str, expected: str) -> None:
    assert code(raw) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(".", "=.", id="root"),
        pytest.param("./", "=.", id="root with slash"),
        pytest.param("/srv/W", "=.", id="root by name"),
        pytest.param("/srv/W/", "=.", id="root by name, slash"),
        pytest.param("src/", "=src", id="one trailing slash"),
        pytest.param("src//", "path_not_canonical", id="only one"),
        pytest.param(".//", "path_not_canonical", id="root, two slashes"),
        pytest.param("/srv/W//", "path_not_canonical", id="root by name, two slashes"),
        pytest.param("src/.", "path_not_canonical", id="dot at the end"),
        pytest.param("/", "path_absolute", id="slash"),
        pytest.param("", "path_invalid", id="empty"),
        pytest.param("..", "path_not_canonical", id="up"),
    ],
)
def test_names_of_directories(raw: str, expected: str) -> None:
    assert code(raw, directory=True) == expected


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param("file:///etc/passwd", id="row 11, URL"),
        pytest.param("\\\\host\\share", id="row 11, UNC"),
        pytest.param("C:\\x", id="row 11, drive"),
        pytest.param("a.txt ", id="row 18, space"),
        pytest.param("a.txt.", id="row 18, dot"),
        pytest.param("dir./a", id="row 18, in a directory"),
        pytest.param("a.txt::$DATA", id="row 18, stream"),
    ],
)
def test_names_that_may_not_be_made(raw: str) -> None:
    assert code(raw, may_create=True, new=True) == "path_invalid"


@pytest.mark.parametrize("raw", ["a.txt ", "a.txt.", "a:b"])
def test_such_names_may_be_read(raw: str) -> None:
    assert code(raw) == "=" + raw


def test_the_root_is_in_the_hint() -> None:
    with pytest.raises(PathError) as caught:
        parse_path("/etc/passwd", roots=ROOTS)
    assert "/srv/W" in caught.value.hint


def test_a_refused_path_is_shown_escaped_and_short() -> None:
    with pytest.raises(PathError) as caught:
        parse_path("\x1b[2J" + "x" * 10_000)
    assert "\x1b" not in caught.value.message
    assert len(caught.value.message) < 400


def test_the_longest_root_is_cut() -> None:
    assert parse_path("/w/sub/a", roots=("/w", "/w/sub/")) == "a"
    assert parse_path("/etc", roots=("/",)) == "etc"


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("a.py", True), ("\u00e9", True), (".", False), ("..", False), ("", False), ("a/b", False), ("a\n", False),
        ("e\u0301", False), ("\udcff", False), ("x" * 256, False), ("\u200b", False), ("a ", True),
        ("\u00e9" * 128, False), ("...", True),
    ],
)  # fmt: skip
def test_valid_name(name: str, valid: bool) -> None:
    assert valid_name(name) is valid


@pytest.mark.parametrize(
    "spelling",
    [
        ".GIT", ".Git", ".git.", ".git ", ".git. .", ".g\u200cit", ".git\u00ad", "\uff0egit", ".\uff47it", ".g\u0131t",
        "\u2024git", "git~1", "GIT~1", ".g\u202eit", ".git\ufe0f", ".\u034fgit", ".git\u00a0", "\u200b.git",
    ],
)  # fmt: skip
def test_spellings_of_git(spelling: str) -> None:
    dotless = "\u0131" in spelling  # no file system takes it for an i
    assert (fold(spelling) == ".git") is not dotless


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/.GIT/b", ("a", ".git", "b")),
        (".git::$INDEX_ALLOCATION/config", (".git", "config")),
        (".git\\hooks", (".git", "hooks")),
        ("\uff0fgit/x", ("git", "x")),
        (".../.GIT", ("...", ".git")),
        (":x", (":x",)),
        ("README.md", ("readme.md",)),
    ],
)
def test_folded(path: str, expected: tuple[str, ...]) -> None:
    assert folded(path) == expected


def test_relations() -> None:
    path = WorkspacePath("a/b/c")
    assert (paths.parent(path), paths.name(path), paths.ancestors(path)) == ("a/b", "c", ("a", "a/b"))
    top = WorkspacePath("a")
    assert (paths.parent(top), paths.name(top), paths.ancestors(top)) == (".", "a", ())
    assert (paths.parent(paths.ROOT), paths.ancestors(paths.ROOT)) == (".", ())
    assert (paths.join(paths.ROOT, "a"), paths.join(top, "b")) == ("a", "a/b")
    assert paths.within(path, paths.ROOT)
    assert paths.within(path, top)
    assert paths.within(top, top)
    assert not paths.within(WorkspacePath("ab"), top)
    assert not paths.within(top, path)


RAW = st.one_of(
    st.text(),
    st.text(alphabet="ab./\\~:% \u0301\u00e9\u200b\uff0e\udc80", max_size=20),
    st.lists(st.sampled_from(["", ".", "..", "a", "srv", "W", ".git", "e\u0301"])).map("/".join),
)


@given(RAW, st.booleans(), st.booleans())
def test_what_is_parsed_is_canonical(raw: str, directory: bool, may_create: bool) -> None:
    try:
        path = parse_path(raw, roots=ROOTS, directory=directory, may_create=may_create)
    except PathError:
        return
    assert parse_path(path, directory=directory) == path
    assert ".." not in path.split("/")
    assert not path.startswith("/")
    assert path == "." or all(valid_name(component) for component in path.split("/"))
    assert unicodedata.is_normalized("NFC", path)


def test_an_empty_path_is_said_without_its_name() -> None:
    with pytest.raises(PathError) as refused:
        parse_path("")
    assert refused.value.message == "the path is empty"


@given(st.text())
def test_folding_is_idempotent(component: str) -> None:
    assert fold(fold(component)) == fold(component)
    assert bool(fold(component)) == bool(component)


@given(st.text(min_size=1, alphabet=st.characters(exclude_characters="/")))
def test_a_folded_path_folds_to_itself(component: str) -> None:
    once = folded(component)
    assert "" not in once
    assert folded("/".join(once)) == once


@pytest.mark.parametrize(
    ("path", "depth"),
    [
        pytest.param("README.md", 0, id="of the root"),
        pytest.param(".cursorrules", 0, id="hidden, of the root"),
        pytest.param("a/b/AGENTS.md", 2, id="of a folder"),
        pytest.param(".github/copilot-instructions.md", 0, id="kept apart, of the root"),
        pytest.param("a/.cursor/rules/x.mdc", 1, id="kept apart, of a folder"),
        pytest.param(".venv/lib/README.md", 2, id="in a hidden folder like any other"),
        pytest.param("a/rules/x.mdc", None, id="rules of something else"),
        pytest.param("a/README.mdx", None, id="another name"),
    ],
)
def test_entrypoint_documents_are_ranked_by_the_folder_they_speak_of(path: str, depth: int | None) -> None:
    rank = entry_rank(WorkspacePath(path))
    assert (rank and rank[0]) == depth
