"""The input and the result of a merge rule."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import msgspec

from orchestrator.core.text.diff import Hunk
from orchestrator.core.text.merge import Cluster
from orchestrator.core.text.merging.import_lines import ImportLine, import_lines
from orchestrator.core.text.symbols import Outline

Imports = Sequence[ImportLine | None]


class Outlines(msgspec.Struct, frozen=True):
    """What the three texts define; None where nothing is known of one."""

    base: Outline | None = None
    current: Outline | None = None
    proposed: Outline | None = None

    @property
    def sound(self) -> tuple[Outline, Outline, Outline] | None:
        """All three, if a grammar took each of them without an error: only then do symbols prove anything."""
        base, current, proposed = self.base, self.current, self.proposed
        if base is None or current is None or proposed is None:
            return None
        if any(not outline.parsed or outline.errors for outline in (base, current, proposed)):
            return None
        return base, current, proposed


class Sides(msgspec.Struct, frozen=True, dict=True):
    """A whole three-way merge, as a rule sees it."""

    base: Sequence[str]
    current: Sequence[str]
    proposed: Sequence[str]
    clusters: Sequence[Cluster]
    outlines: Outlines = Outlines()
    language: str | None = None  # a grammar's name
    path: str = ""

    @cached_property
    def imports(self) -> tuple[Imports, Imports, Imports]:
        """For each line of the base, the current and the proposed text what it imports, or None."""
        language = self.language or ""
        return (
            import_lines(language, self.base),
            import_lines(language, self.current),
            import_lines(language, self.proposed),
        )


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
