"""The index of names, against a plain sorted list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core import name_index
from orchestrator.core.globs import Glob, Globs
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.name_index import AFTER, NameIndex, line_of, read_line

LETTERS = st.text("ab-./0", min_size=1, max_size=6)
KINDS = st.sampled_from(("file", "directory", "other", "invalid"))
LINES = st.builds(line_of, LETTERS, KINDS)


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_index, "PIECE_LINES", 3)


@given(
    st.sets(LINES),
    st.lists(st.tuples(LETTERS, LETTERS, st.sets(LINES, max_size=12)), max_size=6),
    LETTERS,
    LETTERS,
    st.lists(st.text("ab-", min_size=1, max_size=2), max_size=2),
)
def test_it_is_a_sorted_list(
    lines: set[str], replaced: list[tuple[str, str, set[str]]], first: str, last: str, holding: list[str]
) -> None:
    plain, index = sorted(lines), NameIndex(sorted(lines))
    for one, other, new in replaced:
        start, end = min(one, other), max(one, other)
        fitting = sorted(line for line in new if start <= line < end)
        reading = index.lines()
        begun = next(reading, [])
        index.replace(start, end, fitting)
        assert [*begun, *(line for piece in reading for line in piece)] == plain, "a reader sees one moment"
        plain = sorted({*(line for line in plain if not start <= line < end), *fitting})
        assert [line for piece in index.lines() for line in piece] == plain
        assert len(index) == len(plain)
    for line in plain:
        assert index.holds(line)
        assert line_of(*read_line(line)) == line
    found = [line for piece in index.lines(first, last, holding) for line in piece]
    wanted = [line for line in plain if first <= line < last]
    assert found == [line for line in wanted if not holding or any(piece in line for piece in holding)]


PATHS = st.lists(st.sampled_from(("a", "a-", "b.", "c")), min_size=1, max_size=5).map("/".join)


@given(st.sets(st.builds(line_of, PATHS, KINDS), max_size=30), st.integers(1, 3), st.sampled_from(("", "a/", "a/a-/")))
def test_what_is_deeper_is_passed_over(lines: set[str], depth: int, above: str) -> None:
    index = NameIndex(sorted(lines))
    found = [line for piece in index.down_to(depth, above, above, above + name_index.LAST) for line in piece]
    below = [line for line in sorted(lines) if line.startswith(above)]
    assert found == [line for line in below if line.removeprefix(above).count("/") < depth]


@given(st.lists(st.tuples(st.sampled_from(("a", "a/b", "a/b/c", "a-b", "a.b", "ab")), st.none() | KINDS), max_size=12))
def test_what_is_put_is_there_alone(puts: list[tuple[str, name_index.NameKind | None]]) -> None:
    index, plain = NameIndex(), dict[str, name_index.NameKind]()
    for path, kind in puts:
        if kind == "invalid":
            continue
        index.put(path, kind)
        if kind != "directory":
            plain = {known: what for known, what in plain.items() if not known.startswith(f"{path}/")}
        plain.pop(path, None)
        if kind is not None:
            plain[path] = kind
        found = [read_line(line) for piece in index.lines() for line in piece]
        assert found == sorted(plain.items())
        assert [path for path, _ in found if f"{path}{AFTER}" > "a-b"] == [p for p in sorted(plain) if p >= "a-b"]


@given(
    st.lists(st.text("ab*?/[]!\\", min_size=1, max_size=8), min_size=1, max_size=3),
    st.lists(st.text("ab", min_size=1, max_size=2), min_size=1, max_size=4),
)
def test_what_a_glob_must_hold_is_in_all_that_it_names(globs: list[str], names: list[str]) -> None:
    path, meant = WorkspacePath("/".join(names)), Globs(globs)
    if meant.match(path):
        assert path.startswith(meant.prefix)
        assert not meant.pieces or any(piece in path for piece in meant.pieces)


@pytest.mark.parametrize(
    ("glob", "piece", "prefix"),
    [
        pytest.param("*.py", ".py", "", id="a suffix"),
        pytest.param("src/**/test_*.py", "test_", "src/", id="a folder, and a name"),
        pytest.param("/src/te*", "src", "src/te", id="from the root on"),
        pytest.param("name", "name", "", id="a name anywhere"),
        pytest.param("a/b.c", "b.c", "a/b.c", id="one path"),
        pytest.param("**/[ab]?*", "", "", id="anything"),
        pytest.param("src/[a-c]x/", "src", "src/", id="directories"),
    ],
)
def test_what_a_glob_must_hold(glob: str, piece: str, prefix: str) -> None:
    assert (Glob(glob).piece, Glob(glob).prefix) == (piece, prefix)
