"""What the sweep by ripgrep passes over holds nothing: its choice against a look into every file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.encoding import decode
from orchestrator.core.text.regex import RegexPattern
from orchestrator.core.text.search import Matcher, Pattern, search
from orchestrator.workspace.ripgrep import Ripgrep

TEXTS = [
    "größe\nStraße 5\n", "Kelvin \u212a\nſ long\n", "İstanbul ısı\n", "a.b\tc\n\nlast", "日本語 text\n", "x\u2028y\n",
    "one\r\ntwo\r\n", "one\rtwo\rthree", "naïve café – “q”\n", "", "\n\n", "word_1 word-2\n", "foo(bar)[0]{1}\n",
    "\x0c form\x0bfeed\n", "nul\0in it", "a" * 9000 + "\0tail foo\n", "x\ufeffmark\n", "€5\n", "Ünïcode ÜBER\n",
]  # fmt: skip
CODECS = ("utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252")
DAMAGED = [
    b"caf\xc3 x \xe2\x82 y\n\xc3\xa9\xc3\xa8\xc3\xaa\xc3\xab\xc3\xac\n",
    b"\xff\xfeodd",
    b"\x80\x81\n",
    b"a\xe9b\n",
]

pytestmark = pytest.mark.anyio

PIECES = [
    *("a", "b", "e", "o", "é", "ß", "ö", "ü", "K", "s", "i", "I", "İ", "k", "日", "€", " ", "_", "1", "x", "–"),
    "\ufffd",
    *(r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"\b", r"\B", ".", "^", "$", r"\.", r"\(", r"\x{e9}", r"\xe9", r"\t"),
    *("[a-z]", "[^a-z]", "[éß]", "[^é]", r"[\w-]", r"[\W]", r"[^\W]", "[[:alpha:]]", "[[:^alpha:]]", "[]a]", "[&&~]"),
    *(r"\pL", r"\p{Lu}", r"\PL", r"[\pL]", r"\p{Han}", "{", "}", "(?i:E)", "(?s:.)", r"\A", r"\z", "/", "-", "[[a]"),
]  # fmt: skip
AFTER = ["", "", "", "*", "+", "?", "{2}", "{0,2}", "{1,}", "*?"]

expressions = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(AFTER)), min_size=1, max_size=5).map(
    lambda pieces: "".join(piece if piece in (r"\b", r"\B", "^", "$") else piece + after for piece, after in pieces)
)


class Tree:
    """Files, and what chooses among them."""

    def __init__(self, ripgrep: Ripgrep, files: dict[WorkspacePath, bytes]) -> None:
        self.ripgrep, self.files = ripgrep, files


def contents() -> Iterator[bytes]:
    for text in TEXTS:
        for codec in CODECS:
            try:
                yield text.encode(codec)
            except UnicodeEncodeError:
                continue
    yield from DAMAGED


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    folder = tmp_path_factory.mktemp("tree")
    files = {WorkspacePath(f"{number:03}.txt"): data for number, data in enumerate(contents())}
    files |= {WorkspacePath(name): b"foo\n" for name in ("-", "-e", "--pre=id", "sp ace", "größe", "a\\b", "{x}*")}
    for path, data in files.items():
        (folder / path).write_bytes(data)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    yield Tree(Ripgrep(str(folder), handle), files)
    os.close(handle)


def chosen(ripgrep: Ripgrep, matcher: Matcher, files: dict[WorkspacePath, bytes]) -> set[WorkspacePath]:
    async def run() -> set[WorkspacePath]:
        assert matcher.sweep is not None
        return set(await ripgrep.containing(matcher.sweep, sorted(files), multiline=matcher.multiline))

    return anyio.run(run)


def matching(matcher: Matcher, files: dict[WorkspacePath, bytes]) -> set[WorkspacePath]:
    documents = {path: decode(data) for path, data in files.items()}
    return {path for path, doc in documents.items() if doc is not None and search(doc.lines, matcher).total}


few = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@few
@given(st.text("aeéßöükKsſiIİı日€ _-.–\ufffd5(", min_size=1, max_size=3), st.booleans(), st.booleans())
def test_no_file_with_a_text_is_passed_over(tree: Tree, text: str, case_sensitive: bool, word: bool) -> None:
    ripgrep, files = tree.ripgrep, tree.files
    pattern = Pattern(text, case_sensitive=case_sensitive, word=word)
    assert matching(pattern, files) <= chosen(ripgrep, pattern, files)


@few
@given(expressions, st.booleans(), st.booleans(), st.booleans())
def test_no_file_with_an_expression_is_passed_over(
    tree: Tree,
    expression: str,
    case_sensitive: bool,
    word: bool,
    multiline: bool,
) -> None:
    ripgrep, files = tree.ripgrep, tree.files
    pattern = RegexPattern(expression, case_sensitive=case_sensitive, word=word, multiline=multiline)
    assert pattern.sweep is not None
    assert matching(pattern, files) <= chosen(ripgrep, pattern, files)


@pytest.mark.parametrize(("pattern", "fitting"), [
    pytest.param(Pattern("foo"), 17, id="a text"),
    pytest.param(Pattern("nowhere"), 0, id="a text that is nowhere"),
    pytest.param(RegexPattern(r"fo+\b"), 17, id="an expression"),
    pytest.param(RegexPattern(r"größ[eé]"), 5, id="an expression beyond ASCII"),
])  # fmt: skip
def test_it_chooses_few(tree: Tree, pattern: Matcher, fitting: int) -> None:
    ripgrep, files = tree.ripgrep, tree.files
    assert len(chosen(ripgrep, pattern, files)) == fitting
    assert ripgrep.health == "on"


def test_what_can_not_be_read_is_chosen(tree: Tree) -> None:
    ripgrep, files = tree.ripgrep, tree.files
    gone = {WorkspacePath("gone: really (os error 2)"): b"", WorkspacePath("ge/löscht"): b""}
    assert chosen(ripgrep, Pattern("nowhere"), files | gone) == gone.keys()


def script(folder: Path, text: str) -> str:
    path = folder / "rg"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(("text", "health"), [
    pytest.param("echo ripgrep 12.9.0", "off: {} does not run, or is older than ripgrep 13", id="too old"),
    pytest.param("exit 1", "off: {} does not run, or is older than ripgrep 13", id="broken"),
    pytest.param('[ "$1" = --version ] && echo ripgrep 99.0.0 && exit; exit 7', "on", id="fails"),
    pytest.param('[ "$1" = --version ] && echo ripgrep 99.0.0 && exit; echo oh >&2; exit 2', "on", id="complains"),
])  # fmt: skip
def test_without_a_choice_it_is_all(tmp_path: Path, text: str, health: str) -> None:
    program = script(tmp_path, text)
    handle = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        ripgrep = Ripgrep(str(tmp_path), handle, programs=(program,))
        files = {WorkspacePath(name): b"" for name in ("a", "b")}
        assert chosen(ripgrep, Pattern("x"), files) == files.keys()
        assert ripgrep.health == health.format(program)
        none = Ripgrep(str(tmp_path), handle, programs=())
        assert chosen(none, Pattern("x"), files) == files.keys()
        assert none.health.startswith("off: ripgrep is not installed")
    finally:
        os.close(handle)


async def test_a_file_that_became_a_pipe_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a").write_text("y")
    monkeypatch.setattr("orchestrator.workspace.ripgrep.IDLE_S", 0.2)
    monkeypatch.setattr("orchestrator.workspace.ripgrep.LIMIT_S", 3600.0)
    paths = [WorkspacePath("a"), WorkspacePath("pipe")]
    handle = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert await Ripgrep(str(tmp_path), handle).containing(["x"], paths, multiline=False) == paths
    finally:
        os.close(handle)


async def test_a_cancelled_search_ends_its_process(tmp_path: Path) -> None:
    """The script says that it runs, and then never ends."""
    started = tmp_path / "started"
    os.mkfifo(started)
    program = script(
        tmp_path, f'[ "$1" = --version ] && echo ripgrep 99.0.0 && exit; echo $$ > {started}; exec sleep 3600'
    )
    handle = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    pids = list[int]()

    def read() -> int:
        return int(started.read_text())

    try:
        ripgrep = Ripgrep(str(tmp_path), handle, programs=(program,))
        async with anyio.create_task_group() as tasks:

            async def search_it() -> None:
                await ripgrep.containing(["x"], [WorkspacePath("a")], multiline=False)

            tasks.start_soon(search_it)
            pids.append(await anyio.to_thread.run_sync(read))
            tasks.cancel_scope.cancel()
    finally:
        os.close(handle)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Ripgrep]:
    """Three folders of six files each, one in the other."""
    for folder in ("all", "all/below", "part", "-"):
        (tmp_path / folder).mkdir()
        for number in range(6):
            (tmp_path / folder / f"{number}.txt").write_bytes(b"foo\n")
    handle = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield Ripgrep(str(tmp_path), handle)
    os.close(handle)


def test_of_whole_folders_only_what_was_asked_for_is_chosen(folders: Ripgrep, tmp_path: Path) -> None:
    asked = {WorkspacePath(f"{folder}/{number}.txt"): b"" for folder in ("all", "part", "-") for number in range(6)}
    del asked[WorkspacePath("part/3.txt")]
    assert chosen(folders, Pattern("foo"), asked) == asked.keys()
    assert chosen(folders, Pattern("bar"), asked) == set()
    below = {WorkspacePath(f"all/below/{number}.txt"): b"" for number in range(6)}
    assert chosen(folders, Pattern("foo"), asked | below) == (asked | below).keys()


def test_ripgrep_gets_no_name_that_was_not_asked_for(tmp_path: Path) -> None:
    """A folder goes as a name only if there is no other file in it."""
    said = tmp_path / "said"
    program = script(tmp_path, f'[ "$1" = --version ] && echo ripgrep 99.0.0 && exit; echo "$@" > {said}; exit 1')
    for folder in ("all", "part"):
        (tmp_path / folder / "deep").mkdir(parents=True)
        for number in range(6):
            (tmp_path / folder / f"{number}.txt").touch()
    (tmp_path / "part" / ".env").touch()
    handle = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        ripgrep = Ripgrep(str(tmp_path), handle, programs=(program,))
        asked = {WorkspacePath(f"{folder}/{number}.txt"): b"" for folder in ("all", "part") for number in range(6)}
        assert chosen(ripgrep, Pattern("foo"), asked) == set()
    finally:
        os.close(handle)
    names = said.read_text().partition(" -- ")[2].split()
    assert names == ["all", *(f"part/{number}.txt" for number in range(6))]


def test_of_a_folder_that_can_not_be_read_all_is_chosen(tmp_path: Path) -> None:
    text = '[ "$1" = --version ] && echo ripgrep 99.0.0 && exit; echo "rg: all: Permission denied (os error 13)" >&2'
    program = script(tmp_path, f"{text}; exit 2")
    (tmp_path / "all").mkdir()
    asked = {WorkspacePath(f"all/{number}.txt"): b"" for number in range(6)}
    for path in asked:
        (tmp_path / path).touch()
    handle = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        ripgrep = Ripgrep(str(tmp_path), handle, programs=(program,))
        assert chosen(ripgrep, Pattern("foo"), asked) == asked.keys()
    finally:
        os.close(handle)
