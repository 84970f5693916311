"""What holds of every merge beyond git's, whatever the rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.content import AUTOMATIC_RULES, ThreeWay
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.merge import LineMerge, MergeConflict, Merged
from orchestrator.core.text.merging.automatic_merge import (
    MOST_LINES,
    AutomaticMerge,
    merge_automatically,
)
from orchestrator.core.text.merging.rules import Outlines
from orchestrator.core.text.symbols import Outline
from tests.core.text.merging.scenarios import PYTHON, lines, merging, outline
from tests.core.text.strategies import plain_lines, quick
from tests.core.text.strategies_git import ALPHABETS, three


def outlines(*sides: list[str]) -> Outlines:
    return ThreeWay(*map(outline, sides))


def function(name: str, body: int) -> list[str]:
    return [f"def {name}():", f"    a = {body}", f"    return {name}(a, {body % 3})", ""]


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[str], list[str], list[str]]:
    """A program of imports and short functions, and two edited copies of it, which often meet."""
    names = draw(st.lists(st.sampled_from("fghk"), unique=True, min_size=1, max_size=4))
    imports = draw(st.lists(st.sampled_from("abcd"), unique=True, max_size=3))
    bodies = {name: draw(st.integers(0, 5)) for name in names}

    def text(names: list[str], imports: list[str], bodies: dict[str, int]) -> list[str]:
        head = [f"import {name}" for name in imports]
        return [*head, "", *(line for name in names for line in function(name, bodies.get(name, 9)))]

    def side() -> list[str]:
        own, mine = list(names), dict(bodies)
        for _ in range(draw(st.integers(1, 3))):
            at = draw(st.integers(0, len(own)))
            match draw(st.sampled_from(["add", "remove", "edit", "move", "import"])):
                case "add":
                    own.insert(at, draw(st.sampled_from([name for name in "pqrs" if name not in own] or ["z"])))
                case "remove" if own:
                    own.pop(min(at, len(own) - 1))
                case "edit" if own:
                    mine[own[min(at, len(own) - 1)]] = draw(st.integers(0, 9))
                case "move" if own:
                    own.insert(at, own.pop(draw(st.integers(0, len(own) - 1))))
                case _:
                    imported.append(draw(st.sampled_from([f"m{n}" for n in range(4)])))
        return text(own, list(dict.fromkeys(imported)), mine)

    imported = list(imports)
    base = text(names, imports, bodies)
    one = side()
    imported = draw(st.lists(st.sampled_from(imports), unique=True)) if imports else []
    return base, one, side()


def gone_and_come(old: Sequence[str], new: Sequence[str]) -> tuple[Counter[str], Counter[str]]:
    """How many of each line a side took away, and how many it brought."""
    before, after = Counter(old), Counter(new)
    return before - after, after - before


@quick
@given(programs())
def test_nothing_is_lost_and_nothing_comes_back(sides: tuple[list[str], list[str], list[str]]) -> None:
    """Of each line: at least as many as the base had, less what either side took, with what the one that
    brought more of it brought; and no more than the base had, with what both brought, less what the one
    that took more of it took."""
    base, current, proposed = sides
    merged = merge_automatically(LineMerge(base, current, proposed), outlines(*sides), path=PYTHON)
    if not isinstance(merged, AutomaticMerge) or merged.beyond is None:
        return
    result = Counter(merged.lines)
    gone_c, come_c = gone_and_come(base, current)
    gone_p, come_p = gone_and_come(base, proposed)
    had = Counter(base)
    for line in had | come_c | come_p:
        came = max(come_c[line], come_p[line])
        least = had[line] - gone_c[line] - gone_p[line] + came
        most = had[line] + come_c[line] + come_p[line] - max(gone_c[line], gone_p[line])
        assert least <= result[line] <= most, line


@quick
@given(programs())
def test_the_sides_are_equal_up_to_order(sides: tuple[list[str], list[str], list[str]]) -> None:
    base, current, proposed = sides
    one = merge_automatically(LineMerge(base, current, proposed), outlines(base, current, proposed), path=PYTHON)
    other = merge_automatically(LineMerge(base, proposed, current), outlines(base, proposed, current), path=PYTHON)
    assert isinstance(one, AutomaticMerge) == isinstance(other, AutomaticMerge)
    if isinstance(one, AutomaticMerge) and isinstance(other, AutomaticMerge):
        assert Counter(one.lines) == Counter(other.lines)


def as_git(sides: Sequence[list[str]]) -> None:
    """Without rules a merge is git's, with them it differs only where git has a conflict; but for doubts."""
    base, current, proposed = sides
    plain, free = LineMerge(*sides).merged(), merge_automatically(LineMerge(base, current, proposed), path=PYTHON)
    bound = merge_automatically(LineMerge(base, current, proposed), path=PYTHON, rules=())
    if isinstance(free, MergeConflict) and free.why:
        assert not isinstance(plain, Merged) or (isinstance(bound, MergeConflict) and bound.why == free.why)
    elif isinstance(plain, Merged):
        assert isinstance(free, AutomaticMerge)
        assert isinstance(bound, AutomaticMerge)
        assert free.lines == bound.lines == plain.lines
        assert free.beyond is None
    else:
        assert isinstance(bound, MergeConflict)
        assert bound == plain
        assert (free.beyond if isinstance(free, AutomaticMerge) else free) == plain


@quick
@given(st.lists(plain_lines, min_size=3, max_size=3))
def test_small_texts_without_rules_merge_as_in_git(sides: list[list[str]]) -> None:
    as_git(sides)


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_texts_without_rules_merge_as_in_git(alphabet: str) -> None:
    r = Random(alphabet)
    for _ in range(40):
        as_git(three(r, ALPHABETS[alphabet]))


@quick
@given(programs())
def test_the_report_names_the_lines(sides: tuple[list[str], list[str], list[str]]) -> None:
    """Each place of the report is where it says, in the order of the text; outside of them the current text stands."""
    base, current, proposed = sides
    merged = merge_automatically(LineMerge(base, current, proposed), outlines(*sides), path=PYTHON)
    if not isinstance(merged, AutomaticMerge):
        return
    at = now = 0
    for place in merged.report:
        untouched = merged.lines[at : place.merged.start]
        assert list(untouched) == current[now : place.region.current.start]
        if place.rule == "clean":
            assert place.merged.of(merged.lines) == place.region.proposed.of(proposed)
        assert place.why
        at, now = place.merged.end, place.region.current.end


@pytest.mark.parametrize("rule", AUTOMATIC_RULES)
def test_a_rule_that_policy_leaves_out_is_not_used(rule: str) -> None:
    base, current, proposed, path = CASES[rule]
    allowed = [other for other in AUTOMATIC_RULES if other != rule]
    result = merging(base, current, proposed, path=path, rules=allowed)
    assert isinstance(result, MergeConflict)
    assert isinstance(merging(base, current, proposed, path=path, rules=[rule]), AutomaticMerge)  # type: ignore[list-item]


CASES = {
    "same_change": ("a\nb\nc\nd", "a\nX1\nc\nd", "a\nX1\nY1\nd", PYTHON),
    "additions": ("x", "x\ndef f():\n    a", "x\ndef g():\n    b", PYTHON),
    "imports": ("import a\nx", "import a\nimport b\nx", "import a\nimport c\nx", PYTHON),
    "list_items": ("- a\n- b", "- a\n- b\n- c", "- a\n- b\n- d", WorkspacePath("a.md")),
}


def test_all_regions_are_merged_or_none() -> None:
    base = "import a\nx\n1\n2\n3\ny"
    current, proposed = "import a\nimport b\nx\n1\n2\n3\nz1", "import a\nimport c\nx\n1\n2\n3\nz2"
    result = merging(base, current, proposed)
    assert isinstance(result, MergeConflict)
    assert len(result.regions) == 2


@pytest.mark.parametrize(("count", "taken"), [(3, True), (300, False)])
def test_more_conflicts_than_the_rules_look_at_are_a_conflict(count: int, *, taken: bool) -> None:
    """Each of them alone would be merged."""
    piece = "import m{0}\n" + "".join(f"x{{0}}_{n} = 1\n" for n in range(9))
    base, current, proposed = (
        [line for n in range(count) for line in piece.format(n).replace("\n", more.format(n), 1).splitlines()]
        for more in ("\n", "\nimport a{}\n", "\nimport b{}\n")
    )
    assert (count * len([*base, *current, *proposed]) <= MOST_LINES) == taken
    result = merge_automatically(LineMerge(base, current, proposed), path=PYTHON)
    assert isinstance(result, AutomaticMerge) == taken
    conflicted = result.beyond if isinstance(result, AutomaticMerge) else result
    assert conflicted is not None
    assert len(conflicted.regions) == count


@pytest.mark.parametrize("outlined", [
    pytest.param(None, id="nothing known"),
    pytest.param({"errors": 1}, id="a text with errors"),
    pytest.param({"parsed": False}, id="not parsed"),
])  # fmt: skip
def test_symbols_count_only_where_all_texts_parsed(outlined: dict[str, int] | None) -> None:
    base, current, proposed = (lines(text) for text in CASES["additions"][:3])
    first, *others = map(outline, (base, current, proposed))
    if outlined is None:
        known = ThreeWay(None, *others)
    else:
        known = ThreeWay(Outline("python", first.symbols, **outlined), *others)  # type: ignore[arg-type]  # by name
    assert isinstance(merge_automatically(LineMerge(base, current, proposed), known, path=PYTHON), MergeConflict)
