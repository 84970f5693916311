"""What a merge rule is given, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final

import msgspec

from orchestrator.core.content import LineHunk, ThreeWay
from orchestrator.core.text.merge import Cluster
from orchestrator.core.text.merging.imports import IMPORTING, ImportMerge
from orchestrator.core.text.symbols import Outline

Outlines = ThreeWay[Outline | None]
"""What the three texts define; None where nothing is known of one."""

NO_OUTLINES: Final[Outlines] = ThreeWay(None, None, None)


class Sides(ThreeWay[Sequence[str]], frozen=True, dict=True):
    """The three texts of a whole merge."""

    clusters: Sequence[Cluster]
    outlines: Outlines = NO_OUTLINES
    language: str = ""  # a grammar's name
    path: str = ""

    @cached_property
    def parsed_outlines(self) -> ThreeWay[Outline] | None:
        """All three, if a grammar took each of them without an error: only then do symbols prove anything."""
        base, current, proposed = self.outlines
        if base is None or current is None or proposed is None:
            return None
        outlines = ThreeWay(base, current, proposed)
        return outlines if all(outline.parsed and not outline.errors for outline in outlines) else None

    @cached_property
    def imports(self) -> ImportMerge | None:
        """The imports of the three texts; None in a language whose imports nobody knows."""
        return ImportMerge(self, self.language) if self.language in IMPORTING else None


class Resolution(msgspec.Struct, frozen=True):
    """What to put in place of a conflict, and why that is safe."""

    lines: tuple[str, ...]
    why: str


Rule = Callable[[Cluster, Sides], Resolution | None]


def new_lines(side: Sequence[str], hunk: LineHunk) -> list[str]:
    """The lines that a hunk brings."""
    return list(side[hunk.new_start : hunk.new_end])


def insertions(cluster: Cluster) -> tuple[LineHunk, LineHunk] | None:
    """The current hunk and the proposed one, where each side did nothing but insert, at the same place."""
    if len(cluster.ours) != 1 or len(cluster.theirs) != 1:
        return None
    ours, theirs = cluster.ours[0], cluster.theirs[0]
    return None if ours.old_len or theirs.old_len or ours.old_start != theirs.old_start else (ours, theirs)
