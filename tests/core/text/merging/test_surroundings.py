"""A change stays below the heading, item or block of its base."""

from __future__ import annotations

import pytest

from orchestrator.core.text.merge import LineMerge
from orchestrator.core.text.merging.doubts import strayed

TITLED = ["# Title", "", "one", "", "two", "", "three"]
SECTIONS = ["## One", "", "same", "", "## Two", "", "same"]


@pytest.mark.parametrize(
    ("base", "current", "proposed", "astray"),
    [
        pytest.param(
            TITLED, ["# Title", "added", *TITLED[1:]], [*TITLED[:-1], "three, changed"], 0, id="below a title"
        ),
        pytest.param(TITLED, ["added", *TITLED], [*TITLED[:-1], "three, changed"], 0, id="above a title"),
        pytest.param(
            SECTIONS, [*SECTIONS[4:], "", *SECTIONS[:3]], [*SECTIONS[:-1], "same, changed"], 1, id="sections swapped"
        ),
        pytest.param(
            ["# One", "", "same", "", "# Two", "", "same"],
            ["# Two", "", "same", "", "# One", "", "same"],
            ["# One", "", "same", "", "# Two", "", "same, changed"],
            1,
            id="titles swapped",
        ),
        pytest.param(SECTIONS, ["## First", *SECTIONS[1:]], [*SECTIONS[:-1], "changed"], 0, id="another one renamed"),
    ],
)
def test_what_it_is_below(base: list[str], current: list[str], proposed: list[str], astray: int) -> None:
    assert len(list(strayed(LineMerge(base, current, proposed)))) == astray
