"""Changes whose lines stand twice: when that is seen, and that it is seen only then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.content import Region
from orchestrator.core.text.diff import diff
from orchestrator.core.text.merge import LineMerge, Merged
from orchestrator.core.text.merging.ambiguous_hunks import ambiguous_hunks
from tests.core.text.strategies import quick
from tests.core.text.strategies_git import ALPHABETS, Alphabet, edited, three
from tests.regions import region, sides


@pytest.mark.parametrize(
    ("base", "current", "proposed", "found"),
    [
        pytest.param("h x a b t", "h x a b - x a b t", "h x A b t", [region(1, 3, 1, 7, 1, 3)], id="copied above"),
        pytest.param("h x a b t", "h x a b - x a b t", "h x b t", [region(1, 3, 1, 7, 1, 2)], id="copied and removed"),
        pytest.param("h x a b t", "h x a b - x a b t", "h x a b T", [], id="a line that stands once"),
        pytest.param("h x a b t", "h x a b - x a b t", "h x a n b t", [], id="only lines are added"),
        pytest.param("h x a b t", "h y a b - x a b t", "h x A b t", [], id="the copy begins otherwise"),
        pytest.param("h x a b x a b t", "h x a b t", "h x A b x a b t", [region(1, 6, 1, 3, 1, 6)], id="one is gone"),
        pytest.param("h a t", "h a a t", "h t", [], id="both readings give the same"),
        pytest.param("h a t", "h a a t", "h A t", [region(1, 1, 1, 2, 1, 1)], id="one line, doubled"),
        pytest.param("h a b c t", "h a b a b c t", "h A b C t", [region(1, 3, 1, 5, 1, 3)], id="the whole change"),
        pytest.param("h a t u v", "h a a t u v", "h A t u V", [region(1, 1, 1, 2, 1, 1)], id="and no more"),
        pytest.param("h x a b t", "h x a b - x a b t", "h x a b - x a b t", [], id="both made the same copy"),
    ],
)  # fmt: skip
def test_placed_twice(base: str, current: str, proposed: str, found: list[Region]) -> None:
    assert list(ambiguous_hunks(LineMerge(base.split(), current.split(), proposed.split()))) == found


BRANCH = "if a:\n    return 1\nnext()"
BLOCK = "f()\n{\n    x\n}\nt"


@pytest.mark.parametrize(
    ("base", "current", "proposed"),
    [
        pytest.param(
            BRANCH,
            "if a:\n    return 1\nif b:\n    return 1\nnext()",
            BRANCH.replace("1", "2"),
            id="nobody adds a body before a head",
        ),
        pytest.param(
            BLOCK,
            "f()\n{\n    x\n}\n{\n    y\n}\nt",
            BLOCK.replace("x", "z"),
            id="brackets around it stand twice",
        ),
        pytest.param("f()\n\ng()\n\nh()", "f()\n\n\ng()\n\nh()", "\ng()\n\nh()", id="a blank line more"),
        pytest.param("f()\n\ng()\n\nh()", "f()\n\n\ng()\n\nh()", "\nh()", id="removed with a blank line around it"),
    ],
)
def test_one_place_makes_sense(base: str, current: str, proposed: str) -> None:
    assert ambiguous_hunks(LineMerge(base.split("\n"), current.split("\n"), proposed.split("\n"))) == ()


@st.composite
def one_change(draw: st.DrawFn) -> tuple[list[str], list[str], list[str], list[str] | None]:
    """A base, with a block put in or taken out by one side and a line replaced by the other; what that comes to."""
    line = st.sampled_from("ab")
    base = draw(st.lists(line, min_size=1, max_size=8))
    at = draw(st.integers(0, len(base) - 1))
    proposed = [*base[:at], "NEW", *base[at + 1 :]]
    if draw(st.booleans()):
        gap, block = draw(st.integers(0, len(base))), draw(st.lists(line, min_size=1, max_size=4))
        return base, [*base[:gap], *block, *base[gap:]], proposed, [*proposed[:gap], *block, *proposed[gap:]]
    start = draw(st.integers(0, len(base) - 1))
    end = draw(st.integers(start + 1, len(base)))
    merged = None if start <= at < end else [*proposed[:start], *proposed[end:]]
    return base, [*base[:start], *base[end:]], proposed, merged


@quick
@given(one_change())
def test_a_change_goes_to_its_line_or_waits(change: tuple[list[str], list[str], list[str], list[str] | None]) -> None:
    """Where one block came or went, whatever the diff takes it for."""
    base, current, proposed, meant = change
    merged = LineMerge(base, current, proposed).merged()
    if isinstance(merged, Merged) and list(merged.lines) != meant and len(diff(base, current)) == 1:
        assert ambiguous_hunks(LineMerge(base, current, proposed))


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_the_regions_are_regions_of_the_texts(alphabet: str) -> None:
    """Nothing clashes between them, and with the current side in each the file stays as it is there."""
    r = Random(alphabet)
    for _ in range(60):
        base, current, proposed = three(r, ALPHABETS[alphabet])
        if not isinstance(LineMerge(base, current, proposed).merged(), Merged):
            continue
        regions = ambiguous_hunks(LineMerge(base, current, proposed))
        kept = sides(base, current, proposed, regions).assembled({})
        for place in regions:
            lines = place.current.of(current)
            assert any(kept[at : at + len(lines)] == lines for at in range(len(kept) + 1))


def share_refused(r: Random, alphabet: Alphabet, wanted: Callable[[Sequence[str], int], bool]) -> float:
    """Of the stale changes of one wanted line that git merges: how many have no sure place."""
    merged = refused = 0
    while merged < 200:
        base = [alphabet(r) for _ in range(100)]
        current = edited(r, base, alphabet)
        places = [at for at in range(100) if wanted(base, at)]
        if not places:
            continue
        at = r.choice(places)
        proposed = [*base[:at], "changed", *base[at + 1 :]]
        if isinstance(LineMerge(base, current, proposed).merged(), Merged):
            merged += 1
            refused += bool(ambiguous_hunks(LineMerge(base, current, proposed)))
    return refused / merged


@pytest.mark.parametrize(("alphabet", "most"), [("code", 0.02), ("prose", 0.02)])
def test_what_says_something_nearly_always_has_a_sure_place(alphabet: str, most: float) -> None:
    """Others copy a few lines as often as they add new ones; no more is refused than they doubled."""
    refused = share_refused(Random(alphabet), ALPHABETS[alphabet], lambda base, at: any(map(str.isalnum, base[at])))
    assert refused <= most
