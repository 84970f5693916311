"""What of a text must be shown to somebody who knows the text before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.content import LineRange
from orchestrator.core.decisions.stale_regions import hunks_between
from orchestrator.core.text.regions import delta


@pytest.mark.parametrize(
    ("old", "new", "wanted", "heads"),
    [
        pytest.param("abc", "abc", None, [], id="the same"),
        pytest.param("abc", "axc", None, ["@@ -2,1 +2,1 @@"], id="a line changed"),
        pytest.param("abcd", "axyd", None, ["@@ -2,2 +2,2 @@"], id="two lines changed"),
        pytest.param("abc", "abxc", None, ["@@ -2,0 +3,1 @@"], id="a line added"),
        pytest.param("abc", "ac", None, ["@@ -2,1 +1,0 @@"], id="a line removed"),
        pytest.param("abc", "bc", None, ["@@ -1,1 +0,0 @@"], id="the first line removed"),
        pytest.param("abc", "ab", None, ["@@ -3,1 +2,0 @@"], id="the last line removed"),
        pytest.param("abc", "xabc", None, ["@@ -0,0 +1,1 @@"], id="moved down"),
        pytest.param("abcde", "axcdy", (3, 5), ["@@ -5,1 +5,1 @@"], id="only what is wanted"),
        pytest.param("abcde", "axcdy", (3, 4), [], id="changed elsewhere"),
        pytest.param("abcde", "xyzde", (2, 5), ["@@ -1,3 +2,2 @@"], id="the wanted part of a region"),
        pytest.param("ab", "", (1, 0), ["@@ -1,2 +0,0 @@"], id="emptied"),
    ],
)
def test_regions(old: str, new: str, wanted: tuple[int, int] | None, heads: list[str]) -> None:
    part = LineRange(*(wanted or (1, len(new))))
    assert [region.head for region in delta(hunks_between(old, new), part)] == heads


@given(st.text("abc", max_size=12), st.text("abc", max_size=12))
def test_the_regions_make_the_new_text_of_the_old(old: str, new: str) -> None:
    rebuilt, at = "", 1
    for region in delta(hunks_between(old, new), LineRange(1, len(new))):
        rebuilt += old[at - 1 : region.old_start - 1]
        assert len(rebuilt) == region.start - 1
        rebuilt += new[region.start - 1 : region.start - 1 + region.length]
        at = region.old_start + region.old_len
    assert rebuilt + old[at - 1 :] == new
