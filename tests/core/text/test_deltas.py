"""What of a text must be shown to somebody who knows lines of the text before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.content import LineRange
from orchestrator.core.text.deltas import delta
from orchestrator.core.text.diff import diff
from orchestrator.core.text.regions import merged

Ranges = list[tuple[int, int]]


def told(old: str, new: str, known: Ranges, wanted: tuple[int, int] | None = None) -> tuple[list[str], Ranges]:
    """The heads of what is shown, and the lines that are known; each letter of a text is a line."""
    part = LineRange(*(wanted or (1, len(new))))
    found = delta([LineRange(*it) for it in known], len(old), diff(old, new), part, len(new))
    return [region.head for region in found.regions], [(span.start, span.end) for span in found.known]


@pytest.mark.parametrize(
    ("old", "new", "known", "wanted", "heads"),
    [
        pytest.param("abc", "abc", [(1, 3)], None, [], id="the same"),
        pytest.param("abc", "axc", [(1, 3)], None, ["@@ -2,1 +2,1 @@"], id="a line changed"),
        pytest.param("abc", "abxc", [(1, 3)], None, ["@@ -2,0 +3,1 @@"], id="a line added"),
        pytest.param("abc", "ac", [(1, 3)], None, ["@@ -2,1 +1,0 @@"], id="a line removed"),
        pytest.param("abc", "bc", [(1, 3)], None, ["@@ -1,1 +0,0 @@"], id="the first line removed"),
        pytest.param("abc", "ab", [(1, 3)], None, ["@@ -3,1 +2,0 @@"], id="the last line removed"),
        pytest.param("abc", "xabc", [(1, 3)], None, ["@@ -0,0 +1,1 @@"], id="moved down"),
        pytest.param("abcde", "abcde", [(1, 2), (4, 5)], None, ["@@ -3,1 +3,1 @@"], id="a line not seen"),
        pytest.param("abcde", "abde", [(1, 2), (4, 5)], None, ["@@ -3,1 +2,0 @@"], id="a line not seen is gone"),
        pytest.param("abcde", "axcdy", [(1, 5)], (3, 5), ["@@ -5,1 +5,1 @@"], id="only what is wanted"),
        pytest.param("abcde", "axcdy", [(1, 5)], (3, 4), [], id="changed elsewhere"),
        pytest.param("abcde", "xyzde", [(1, 5)], (2, 5), ["@@ -1,3 +2,2 @@"], id="the wanted part of a region"),
        pytest.param("ab", "", [(1, 2)], (1, 0), ["@@ -1,2 +0,0 @@"], id="emptied"),
    ],
)
def test_regions(old: str, new: str, known: Ranges, wanted: tuple[int, int] | None, heads: list[str]) -> None:
    assert told(old, new, known, wanted)[0] == heads


@given(
    st.text("abc", max_size=12),
    st.text("abc", max_size=12),
    st.lists(st.tuples(st.integers(1, 12), st.integers(0, 4)), max_size=3),
)
def test_what_is_known_and_what_is_shown_is_the_new_text(old: str, new: str, seen: Ranges) -> None:
    spans = merged(tuple(LineRange(start, min(start + more, len(old))) for start, more in seen if start <= len(old)))
    hunks = diff(old, new)
    found = delta(spans, len(old), hunks, LineRange(1, len(new)), len(new))
    shown = {n for region in found.regions for n in range(region.start, region.start + region.length)}
    known = {n for span in found.known for n in range(span.start, span.end + 1)}
    assert shown | known == set(range(1, len(new) + 1))
    assert not shown & known
    rebuilt, at = list[str](), 1
    for region in found.regions:  # as the reader does, who has the old text where it was seen
        rebuilt += old[at - 1 : region.old_start - 1]
        rebuilt += new[region.start - 1 : region.start - 1 + region.length]
        at = region.old_start + region.old_len
    rebuilt += old[at - 1 :]
    assert "".join(rebuilt) == new
    unseen = {n for n in range(1, len(old) + 1) if not any(span.start <= n <= span.end for span in spans)}
    replaced = {n for region in found.regions for n in range(region.old_start, region.old_start + region.old_len)}
    assert unseen <= replaced
