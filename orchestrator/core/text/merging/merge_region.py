"""The input and the result of a merge rule."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Final

import msgspec

from orchestrator.core.text.diff import Hunk
from orchestrator.core.text.merge import Cluster
from orchestrator.core.text.merging.import_lines import ImportLine, import_lines
from orchestrator.core.text.symbols import Outline
from orchestrator.core.three_way import ThreeWay

Imports = Sequence[ImportLine | None]


Outlines = ThreeWay[Outline | None]
"""What the three texts define; None where nothing is known of one."""

NO_OUTLINES: Final[Outlines] = ThreeWay(None, None, None)


class Sides(ThreeWay[Sequence[str]], frozen=True, dict=True):
    """The three texts of a whole merge, as a rule sees it."""

    clusters: Sequence[Cluster]
    outlines: Outlines = NO_OUTLINES
    language: str | None = None  # a grammar's name
    path: str = ""

    @property
    def parsed_outlines(self) -> ThreeWay[Outline] | None:
        """All three, if a grammar took each of them without an error: only then do symbols prove anything."""
        base, current, proposed = self.outlines
        if base is None or current is None or proposed is None:
            return None
        outlines = ThreeWay(base, current, proposed)
        return outlines if all(outline.parsed and not outline.errors for outline in outlines) else None

    @cached_property
    def imports(self) -> ThreeWay[Imports]:
        """For each line of the three texts what it imports, or None."""
        return self.map(partial(import_lines, self.language or ""))


class Resolution(msgspec.Struct, frozen=True):
    """What to put in place of a clash, and why that is safe."""

    lines: tuple[str, ...]
    why: str


def new_lines(side: Sequence[str], hunk: Hunk) -> list[str]:
    """The lines that a hunk brings."""
    return list(side[hunk.new_start : hunk.new_end])


def is_significant(line: str) -> bool:
    """Whether a line says anything: more than blanks and brackets, which meet by chance."""
    return any(map(str.isalnum, line))
