from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.content import Region
from orchestrator.core.text.diff import MIN_ANCHORED, diff
from orchestrator.core.text.merge import LineMerge, MergeConflict, Merged
from tests.core.text.strategies import plain_lines, quick
from tests.core.text.strategies_git import ALPHABETS, edited, three, with_hunks
from tests.regions import region


@pytest.mark.parametrize(("base", "current", "proposed", "merged"), [
    pytest.param("abcde", "Abcde", "abcdE", "AbcdE", id="far apart"),
    pytest.param("abc", "Abc", "abC", "AbC", id="one line between"),
    pytest.param("ab", "Xb", "Xb", "Xb", id="the same change"),
    pytest.param("abc", "abc", "ac", "ac", id="only one side"),
    pytest.param("abcdef", "aXcdef", "aXcdeF", "aXcdeF", id="one change the same, one not"),
    pytest.param("ab", "axyb", "axyb", "axyb", id="the same insertion"),
    pytest.param("", "", "ab", "ab", id="into nothing"),
])  # fmt: skip
def test_merged(base: str, current: str, proposed: str, merged: str) -> None:
    assert LineMerge(base, current, proposed).merged() == Merged(tuple(merged))


@pytest.mark.parametrize(("base", "current", "proposed", "region"), [
    pytest.param("abc", "aXc", "aYc", region(1, 1, 1, 1, 1, 1), id="the same line"),
    pytest.param("abc", "aXc", "abY", region(1, 2, 1, 2, 1, 2), id="neighbouring lines"),
    pytest.param("ab", "axb", "ayb", region(1, 0, 1, 1, 1, 1), id="two insertions"),
    pytest.param("abc", "ac", "aXc", region(1, 1, 1, 0, 1, 1), id="removed and changed"),
    pytest.param("abcde", "Abcxe", "abcye", region(3, 1, 3, 1, 3, 1), id="after a change that fits"),
    pytest.param("", "a", "b", region(0, 0, 0, 1, 0, 1), id="both created"),
])  # fmt: skip
def test_conflicted(base: str, current: str, proposed: str, region: Region) -> None:
    assert LineMerge(base, current, proposed).merged() == MergeConflict((region,))


def git_merge(folder: Path, *sides: Sequence[str]) -> str | None:
    """What `git merge-file` makes of base, current and proposed; None for a conflict."""
    for name, lines in zip("oab", sides, strict=True):
        (folder / name).write_bytes("".join(line + "\n" for line in lines).encode())
    done = subprocess.run(
        ["git", "merge-file", "-p", "-q", "a", "o", "b"], cwd=folder, capture_output=True, check=False
    )
    assert done.returncode < 128
    return done.stdout.decode() if done.returncode == 0 else None


def ours(*sides: Sequence[str]) -> str | None:
    merged = LineMerge(*sides).merged()
    return "".join(line + "\n" for line in merged.lines) if isinstance(merged, Merged) else None


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_merges_as_git_does(alphabet: str, tmp_path: Path) -> None:
    r = Random(alphabet)
    for _ in range(40):
        sides = three(r, ALPHABETS[alphabet])
        assert ours(*sides) == git_merge(tmp_path, *sides)


@pytest.mark.soak
@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_a_thousand_texts_merge_as_git_does(alphabet: str, tmp_path: Path) -> None:
    r = Random(f"soak {alphabet}")
    for _ in range(1_000):
        sides = three(r, ALPHABETS[alphabet])
        assert ours(*sides) == git_merge(tmp_path, *sides)


def rewritten(r: Random, alphabet: str) -> tuple[list[str], list[str], list[str]]:
    """A base, a current text so different that `diff` leaves Myers, and a proposal of one new line."""
    line = ALPHABETS[alphabet]
    base = [line(r) for _ in range(1_500)]
    current = list(base)
    for _ in range(r.choice([150, 250, 500])):
        at, length = r.randint(0, len(current)), r.randint(0, 4)
        current[at : at + length] = [line(r) for _ in range(r.randint(0, 4))]
    at = r.randrange(len(base))
    return base, current, [*base[:at], "new", *base[at + 1 :]]


@pytest.mark.parametrize("alphabet", ["code", "prose"])
def test_rewritten_texts_merge_as_in_git(alphabet: str, tmp_path: Path) -> None:
    r = Random(alphabet)
    for _ in range(20):
        sides = rewritten(r, alphabet)
        assert ours(*sides) == git_merge(tmp_path, *sides)


@pytest.mark.parametrize("alphabet", ["two lines", "six lines"])
def test_rewritten_repetitive_texts_lose_nothing(alphabet: str) -> None:
    """Here git guesses and we do not, so some 7 % come out otherwise; but both sides' changes are there."""
    r = Random(alphabet)
    clean = 0
    for _ in range(20):
        base, current, proposed = rewritten(r, alphabet)
        merged = LineMerge(base, current, proposed).merged()
        if isinstance(merged, Merged):
            clean += 1
            at = merged.lines.index("new")
            assert [*merged.lines[:at], *merged.lines[at + 1 :]] == [*current[:at], *current[at + 1 :]]
    assert clean


def two_sided(r: Random, alphabet: str, lines: int) -> tuple[list[str], list[str], list[str]]:
    """A large base, and two copies of it that are edited in turns, with unedited lines between."""
    line = ALPHABETS[alphabet]
    base: list[str] = []
    sides: list[list[str]] = [[], []]
    for turn in range(lines // 100):
        piece = [line(r) for _ in range(100)]
        base += piece
        for number in (0, 1):
            own = [*piece[:20], *edited(r, piece[20:80], line), *piece[80:]]
            sides[number] += own if turn % 2 == number else piece
    return base, sides[0], sides[1]


@pytest.mark.parametrize("alphabet", ["code", "prose"])
def test_large_texts_merge_as_in_git(alphabet: str, tmp_path: Path) -> None:
    """More edits than `myers` alone would take, in more lines than it is given at once."""
    r = Random(alphabet)
    for _ in range(2):
        base, current, proposed = two_sided(r, alphabet, MIN_ANCHORED + 2_000)
        merged = ours(base, current, proposed)
        assert merged is not None
        assert merged == git_merge(tmp_path, base, current, proposed)


@pytest.mark.parametrize("letters", ["a", "ab", "abcdefgh"])
def test_large_texts_of_few_lines_are_taken_as_a_whole(letters: str) -> None:
    """Where nothing stands once and a shortest script would cost too much: what differs is one change, or a clash."""
    r = Random(letters)
    base, one, other = ([r.choice(letters) + mark for _ in range(30_000)] for mark in ("", "", "1"))
    assert with_hunks(base, one, diff(base, one)) == one
    merged = LineMerge(base, [*one, "end"], other).merged()
    assert isinstance(merged, MergeConflict)
    assert len(diff(base, one)) <= 1


@quick
@given(plain_lines, plain_lines, plain_lines)
def test_merges_small_texts_as_git_does(
    tmp_path_factory: pytest.TempPathFactory, base: list[str], current: list[str], proposed: list[str]
) -> None:
    sides = [[line.replace("\0", "0") for line in side] for side in (base, current, proposed)]
    assert ours(*sides) == git_merge(tmp_path_factory.getbasetemp(), *sides)


@quick
@given(plain_lines, plain_lines, plain_lines)
def test_sides_are_equal_before_the_merge(base: list[str], a: list[str], b: list[str]) -> None:
    assert (
        LineMerge(base, a, base).merged()
        == LineMerge(base, base, a).merged()
        == LineMerge(base, a, a).merged()
        == Merged(tuple(a))
    )
    one, other = LineMerge(base, a, b).merged(), LineMerge(base, b, a).merged()
    if isinstance(one, Merged):
        assert one == other
    else:
        assert isinstance(other, MergeConflict)
        assert [(r.base.start, r.base.length) for r in one.regions] == [
            (r.base.start, r.base.length) for r in other.regions
        ]


@quick
@given(st.lists(plain_lines, min_size=4, max_size=4))
def test_changes_of_one_side_survive(parts: list[list[str]]) -> None:
    """Each side changes one half; unique lines between the halves keep the changes apart."""
    wall = [f"wall {n}\x1f" for n in range(30)]
    top, bottom, new_top, new_bottom = parts
    merged = LineMerge(top + wall + bottom, new_top + wall + bottom, top + wall + new_bottom).merged()
    assert merged == Merged((*new_top, *wall, *new_bottom))


@quick
@given(plain_lines, plain_lines, plain_lines)
def test_regions_name_what_differs(base: list[str], current: list[str], proposed: list[str]) -> None:
    merged = LineMerge(base, current, proposed).merged()
    if isinstance(merged, MergeConflict):
        for r in merged.regions:
            mine = current[r.current.start : r.current.start + r.current.length]
            other = proposed[r.proposed.start : r.proposed.start + r.proposed.length]
            assert mine != other
            assert base[r.base.start : r.base.start + r.base.length] not in (mine, other)
