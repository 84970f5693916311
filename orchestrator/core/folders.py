"""Which folders of a tree to name where there is no room for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.paths import ancestors


def with_all_below(files_in: Mapping[str, int]) -> dict[WorkspacePath, int]:
    """The files of each folder with those below it, given those in it itself.

    The upper levels first, in each the folders with most files first: none comes before the one that it is in. The
    root, which is the empty name, is left out.
    """
    totals = Counter[WorkspacePath]()
    for folder, files in files_in.items():
        if folder:
            for path in (WorkspacePath(folder), *ancestors(WorkspacePath(folder))):
                totals[path] += files
    return dict(sorted(totals.items(), key=lambda item: (item[0].count("/"), -item[1], item[0])))
