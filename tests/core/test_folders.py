"""Folders of a tree with all that is below them."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.folders import with_all_below
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import parent, within

FOLDERS = st.lists(st.lists(st.sampled_from("abc"), max_size=4).map("/".join))


@given(FOLDERS)
def test_each_has_the_files_below_it(folders: list[str]) -> None:
    totals = with_all_below(Counter(folders))
    for path, files in totals.items():
        assert files == sum(bool(folder) and within(WorkspacePath(folder), path) for folder in folders)
    assert set(filter(None, folders)) <= totals.keys()


@given(FOLDERS)
def test_a_folder_comes_after_the_one_that_it_is_in(folders: list[str]) -> None:
    order = list(with_all_below(Counter(folders)))
    for path in order:
        assert "/" not in path or order.index(parent(path)) < order.index(path)
