"""The lines of a search as a model is shown them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.api import results as r
from orchestrator.core.text.search import Pattern, search
from orchestrator.servers.blocks import text_block

ROW = re.compile(r" *(\d+)([:-])\t(.*)")


def shown(lines: list[str], context_lines: int) -> dict[int, tuple[str, str]]:
    """What stands in the block of a search for `x`: number → mark and text; each line at most once."""
    found = search(lines, Pattern("x"), context_lines=context_lines, max_hits=100)
    hits = [
        r.Hit(path="a.txt", line=match.line, text=match.text, before=match.before, after=match.after)
        for match in found.hits
    ]
    block = text_block(r.SearchResult(hits=tuple(hits), total=found.total, files_searched=1, files_left_out=0))
    rows = [match for row in (block or "").splitlines() if (match := ROW.fullmatch(row))]
    numbers = [int(row[1]) for row in rows]
    assert numbers == sorted(set(numbers))
    return {int(row[1]): (row[2], row[3]) for row in rows}


@pytest.mark.parametrize("context_lines", [0, 1, 2, 10])
@given(lines=st.lists(st.sampled_from(["x", "y"]), max_size=12))
def test_every_matching_line_is_shown_as_one(lines: list[str], context_lines: int) -> None:
    rows = shown(lines, context_lines)
    matching = [number for number, line in enumerate(lines, 1) if line == "x"]
    around = {n for at in matching for n in range(at - context_lines, at + context_lines + 1) if 1 <= n <= len(lines)}
    assert rows == {n: (":" if n in matching else "-", lines[n - 1]) for n in around}
