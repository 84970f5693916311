"""Conflicts that move with their file, and the texts that choices give."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.conflicts.sides import (
    GapConflict,
    changed_regions,
    rebased,
    within,
)
from orchestrator.core.text.merge import LineMerge, Merged
from tests.regions import sides

lines = st.lists(st.sampled_from("abcd"), max_size=8).map(tuple)


@given(base=lines, current=lines, proposed=lines)
def test_the_proposed_side_of_every_region_is_what_choosing_the_proposal_gives(
    base: tuple[str, ...], current: tuple[str, ...], proposed: tuple[str, ...]
) -> None:
    found = rebased(base, current, proposed)
    favoured = LineMerge(base, current, proposed).favouring_proposed()
    if not found.regions:
        assert found.lines == favoured
        return
    if isinstance(LineMerge(base, current, proposed).merged(), Merged):
        return  # a doubt, of which git knows nothing
    every = dict.fromkeys(range(len(found.regions)), "proposed")
    try:
        text = sides(base, current, proposed, found.regions).assembled(every)  # type: ignore[arg-type]
    except GapConflict:
        return  # lines beside a region pair otherwise by themselves: then no choice by region is taken
    assert text == favoured


@given(base=lines, current=lines, proposed=lines, chosen=st.lists(lines, min_size=8, max_size=8))
def test_what_is_chosen_for_regions_never_strays(
    base: tuple[str, ...], current: tuple[str, ...], proposed: tuple[str, ...], chosen: list[tuple[str, ...]]
) -> None:
    found = rebased(base, current, proposed)
    if not found.regions:
        return
    try:
        text = sides(base, current, proposed, found.regions).assembled(dict(enumerate(chosen)))
    except GapConflict:
        return  # then no choice by region is taken
    assert within(sides(base, current, proposed, found.regions).gaps(), text)


@given(current=lines, proposed=lines)
def test_a_change_that_would_apply_is_made_of_its_regions(current: tuple[str, ...], proposed: tuple[str, ...]) -> None:
    regions = changed_regions(current, proposed)
    assert sides(current, current, proposed, regions).assembled({}) == current
    every = dict.fromkeys(range(len(regions)), "proposed")
    assert sides(current, current, proposed, regions).assembled(every) == proposed  # type: ignore[arg-type]


BASE = tuple("abcdefgh")
CURRENT = tuple("abCdefgH")
PROPOSED = ("a", "b", "c2", "d", "e", "f", "g", "h2")


@pytest.mark.parametrize(
    ("text", "stays"),
    [
        pytest.param("ab1defg2", True, id="both regions"),
        pytest.param("abdefg", True, id="both empty"),
        pytest.param("abXYZdefgW", True, id="longer"),
        pytest.param("aBCdefgH", False, id="before"),
        pytest.param("abCdeEfgH", False, id="between"),
        pytest.param("abCdefg", True, id="the last region gone"),
        pytest.param("abCdef", False, id="cut short"),
        pytest.param("ab", False, id="the rest gone"),
        pytest.param("", False, id="all gone"),
    ],
)
def test_a_text_stays_within_the_regions(text: str, stays: bool) -> None:
    found = rebased(BASE, CURRENT, PROPOSED)
    assert len(found.regions) == 2
    assert within(sides(BASE, CURRENT, PROPOSED, found.regions).gaps(), tuple(text)) is stays


def test_a_conflict_that_only_moved_is_the_same() -> None:
    texts = BASE, CURRENT, PROPOSED
    before = rebased(*texts)
    later = ("new", *CURRENT)
    after = rebased(BASE, later, PROPOSED)
    assert sides(*texts, before.regions).same_conflict(sides(BASE, later, PROPOSED, after.regions))
    other = tuple("abXdefgH")
    changed = rebased(BASE, other, PROPOSED)
    assert not sides(*texts, before.regions).same_conflict(sides(BASE, other, PROPOSED, changed.regions))


@pytest.mark.parametrize(
    ("base", "before", "after", "proposed"),
    [
        pytest.param("xbxdx", "abade", "abada", "cbcdc", id="the last holds another line"),
        pytest.param("xbxdx", "abadx", "xbada", "cbcdc", id="equal lines, elsewhere"),
    ],
)
def test_a_conflict_at_another_place_is_another(base: str, before: str, after: str, proposed: str) -> None:
    texts = [(tuple(base), tuple(current), tuple(proposed)) for current in (before, after)]
    old, new = (sides(*three, rebased(*three).regions) for three in texts)
    assert not old.same_conflict(new)


def test_a_conflict_dissolves_when_the_file_comes_back() -> None:
    assert rebased(BASE, BASE, PROPOSED).lines == PROPOSED
