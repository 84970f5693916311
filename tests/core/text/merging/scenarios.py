"""Merges, written briefly."""

from __future__ import annotations

from textwrap import dedent

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.merging.automatic_merge import AutomaticMerge, UnresolvedMerge, merge_automatically

PYTHON = WorkspacePath("a.py")


def lines(text: str) -> list[str]:
    """The lines of an indented text."""
    return dedent(text).strip("\n").split("\n") if text.strip() else []


def merging(
    base: str, current: str, proposed: str, *, path: WorkspacePath = PYTHON, imports: bool = True
) -> AutomaticMerge | UnresolvedMerge:
    """What becomes of three texts."""
    return merge_automatically(lines(base), lines(current), lines(proposed), path=path, imports=imports)
