"""Merges that git finds clean, and that lose a removal or double an addition: each waits."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.conflicts.sides import rebased
from orchestrator.core.text.merge import LineMerge, MergeConflict, Merged
from orchestrator.core.text.merging.automatic_merge import AutomaticMerge, merge_automatically
from tests.core.text.merging.scenarios import PYTHON, lines, merging
from tests.core.text.strategies import quick
from tests.regions import sides

WALL = "".join(f"wall {n}\n" for n in range(4))
JS = "exec() {{\n{}  run()\n}}\n"
CHECKED = "  if (!x) {\n    fail()\n  }\n"
USED = "  const id = x\n  check(id)\n"
WRAPPED = "  if (ready) {\n" + "".join(f"  {line}\n" for line in (CHECKED + USED).splitlines()) + "  }\n"
FUNCTION = "def g():\n    return 1\n\n"


@pytest.mark.parametrize(("base", "current", "proposed", "waits"), [
    pytest.param("b1\na1\nc1", "a1\nb1\nc1", "a1\nc1", True, id="moved down by one, removed by the other"),
    pytest.param(f"b1\na1\n{WALL}z1", f"a1\nb1\n{WALL}z1", f"a1\n{WALL}Z1", True, id="and more done elsewhere"),
    pytest.param(JS.format(CHECKED + USED), JS.format(WRAPPED), JS.format(CHECKED), True,
                 id="wrapped in a block whose bracket is that of an inner one, removed by the other"),
    pytest.param("b1\na1\nc1", "a1\nb1\nc1", "a1\nb1\nc1", False, id="moved by both alike"),
    pytest.param("b1\na1\nc1", "a1\nc1", "a1\nc1", False, id="removed by both"),
    pytest.param(f"f1\nf2\nf3\nret\n{WALL}e1\n{WALL}z1", f"{WALL}g1\nret\ne1\n{WALL}z1", f"{WALL}e1\n{WALL}Z1", False,
                 id="removed by both, and one of many lines came in something new"),
    pytest.param(f"}}\na1\n{WALL}", f"a1\n}}\n{WALL}", f"a1\n{WALL}", False, id="a bracket says nothing"),
    pytest.param(f"a1\n{WALL}b1\n", f"{FUNCTION}a1\n{WALL}b1\n", f"a1\n{WALL}{FUNCTION}b1\n", True,
                 id="one function, at two places"),
    pytest.param(f"a1\n{WALL}b1\n", f"count += 1\na1\n{WALL}b1\n", f"a1\n{WALL}count += 1\nb1\n", True,
                 id="one line, alone, at two places"),
    pytest.param(f"a1\n{WALL}b1\n", f"x1\nelse:\ny1\na1\n{WALL}b1\n", f"a1\n{WALL}x2\nelse:\ny2\nb1\n", False,
                 id="one line alike in two changes"),
    pytest.param(f"a1\n{WALL}b1\n", f"{FUNCTION}a1\n{WALL}b1\n", f"{FUNCTION}a1\n{WALL}b1\n", False,
                 id="one function, at one place"),
    pytest.param(f"a1\n{WALL}b1\n", f"\n}}\na1\n{WALL}b1\n", f"a1\n{WALL}\n}}\nb1\n", False, id="blanks and brackets"),
])  # fmt: skip
def test_doubts(base: str, current: str, proposed: str, *, waits: bool) -> None:
    texts = [lines(side) for side in (base, current, proposed)]
    for one, two, three in (texts, (texts[0], texts[2], texts[1])):
        assert isinstance(LineMerge(one, two, three).merged(), Merged)
        result = merge_automatically(LineMerge(one, two, three), path=PYTHON)
        assert isinstance(result, MergeConflict) == waits
        assert bool(rebased(one, two, three).regions) == waits
        if isinstance(result, MergeConflict):
            assert result.why
            regions = result.regions
            for side, chosen in (("current", two), ("proposed", three)):
                text = sides(one, two, three, regions).assembled(dict.fromkeys(range(len(regions)), side))  # type: ignore[arg-type]
                if len(sides(one, two, three, regions).gaps()) == 2:
                    assert set(text) <= set(chosen) | set(WALL.split("\n")) | {"Z1"}


IMPORTS = ["import os", "import re", "import abc", "from sys import path"]


@pytest.mark.parametrize("count", [3, 4])
def test_an_import_that_one_sorts_and_the_other_removes_never_stays(count: int) -> None:
    for base in permutations(IMPORTS[:count]):
        ordered = sorted(base)
        for gone in base:
            proposed = [line for line in base if line != gone]
            for current, other in ((ordered, proposed), (proposed, ordered)):
                one, two, three = ((*side, "", "x = 1") for side in (base, current, other))
                result = merge_automatically(LineMerge(one, two, three), path=PYTHON)
                assert isinstance(result, MergeConflict) or gone not in result.lines
                dropped = rebased(one, two, three)
                assert dropped.regions or gone not in dropped.lines


def test_a_line_that_one_replaces_and_the_other_removes_never_stays() -> None:
    result = merging("one\ntwo\nthree", "ONE\nnew\nTWO\nTHREE", "TWO\nTHREE")
    assert isinstance(result, MergeConflict)


def test_a_package_that_one_side_renames_is_not_imported_from_by_the_other() -> None:
    base = "import os\n\nfrom old.a import A\n\nx = 1"
    renamed = "import os\nimport re\n\nfrom new.a import A\n\nx = 1"
    adds = "import os\nfrom {} import z\n\nfrom old.a import A\n\nx = 1"
    for name, waits in (("old.a", True), ("old.b", True), ("older", False)):
        for one, two in ((renamed, adds.format(name)), (adds.format(name), renamed)):
            assert isinstance(merging(base, one, two), MergeConflict) == waits


def test_a_conflict_that_a_rule_takes_is_a_region_where_something_is_doubtful() -> None:
    base = f"import a\n\n{WALL}a1\n{WALL}b1\n"
    current = f"import a\nimport c\n\n{WALL}a1\n{FUNCTION}{WALL}b1\n"
    proposed = f"import a\nimport d\n\n{WALL}a1\n{WALL}{FUNCTION}b1\n"
    one, two, three = (lines(side) for side in (base, current, proposed))
    result = merge_automatically(LineMerge(one, two, three), path=PYTHON)
    assert isinstance(result, MergeConflict)
    assert result.why
    sides(one, two, three, result.regions).gaps()


@quick
@given(st.lists(st.lists(st.sampled_from(["a1", "b1", "c1", "d1", "}", ""]), max_size=7), min_size=3, max_size=3))
def test_the_regions_of_a_doubt_are_regions_of_the_texts(texts: list[list[str]]) -> None:
    base, current, proposed = map(tuple, texts)
    result = merge_automatically(LineMerge(base, current, proposed), path=PYTHON)
    if isinstance(result, AutomaticMerge):
        return
    regions = result.regions
    sides(base, current, proposed, regions).gaps()
    turned = merge_automatically(LineMerge(base, proposed, current), path=PYTHON)
    assert isinstance(turned, MergeConflict)
    assert [(r.base.start, r.base.length) for r in turned.regions] == [(r.base.start, r.base.length) for r in regions]
