"""Merge rules: what each is given and answers; and the one about lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final

import msgspec

from orchestrator.core.content import LineHunk, ThreeWay
from orchestrator.core.text.merge import Cluster, Lines
from orchestrator.core.text.merging.imports import IMPORTING, ImportMerge
from orchestrator.core.text.symbols import Outline

Entry = tuple[str, ...]
"""The lines of one entry."""

_PROSE = ("md", "markdown", "rst", "txt", "adoc")
_ITEM = re.compile(r"(?P<lead>\s*[-*+•]\s+)\S")
_RULE = re.compile(r"\s*([-*+=~_#^])(\s*\1)+\s*\Z")
_MARKS = re.compile(r"\[x\]|\W", re.IGNORECASE)
_FENCE = re.compile(r"\s*(```|~~~)")

Outlines = ThreeWay[Outline | None]
"""What the three texts define; None where nothing is known of one."""

NO_OUTLINES: Final[Outlines] = ThreeWay(None, None, None)


class Sides(ThreeWay[Lines], frozen=True, dict=True):
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


def list_items(cluster: Cluster, sides: Sides) -> Resolution | None:
    """Unite the list items that both sides added, the current ones first; what both brought comes once.

    Only in prose (Markdown, reStructuredText, AsciiDoc, plain text), outside of fenced blocks, where both sides did
    nothing but insert here: whole items with one marker (`- * + •`, no numbers) at one depth, each with the lines
    that are indented deeper; no blank line and no heading among them.
    """
    inserted = insertions(cluster)
    if inserted is None or sides.path.rpartition(".")[2].lower() not in _PROSE:
        return None
    ours, theirs = inserted
    mine, other = new_lines(sides.current, ours), new_lines(sides.proposed, theirs)
    at = ours.old_start
    if not all(line.strip() and not _RULE.match(line) for line in (*mine, *other)):
        return None
    if sum(bool(_FENCE.match(line)) for line in sides.base[:at]) % 2:
        return None
    one, two = _items(mine, sides.base, at), _items(other, sides.base, at)
    if not one or not two or not _alike(one, two):
        return None
    more = [entry for entry in two if entry not in one]
    why = f"both sides only added entries of a list here: {len(one)} and {len(more)} more"
    return Resolution(tuple(line for entry in (*one, *more) for line in entry), why)


def _items(lines: Sequence[str], base: Sequence[str], at: int) -> list[Entry]:
    """The list items that lines consist of; none if they are anything else, or would part an item of the base."""
    first = _ITEM.match(lines[0])
    if first is None:
        return []
    lead = first["lead"]
    if at < len(base) and _deeper(base[at], lead):
        return []
    entries: list[list[str]] = []
    for line in lines:
        match = _ITEM.match(line)
        if match and match["lead"] == lead:
            entries.append([line])
        elif _deeper(line, lead):
            entries[-1].append(line)
        else:
            return []
    return [tuple(entry) for entry in entries]


def _deeper(line: str, lead: str) -> bool:
    """Whether a line belongs to the item above it, whose marker is behind some blanks."""
    depth = len(lead) - len(lead.lstrip())
    return bool(line.strip()) and len(line) - len(line.lstrip()) > depth


def _alike(one: Sequence[Entry], other: Sequence[Entry]) -> bool:
    """Whether entries of two sides are of one kind, beginning alike, and no two the same but for marks and blanks."""
    leads = {match["lead"] for entry in (*one, *other) if (match := _ITEM.match(entry[0]))}
    texts = {_MARKS.sub("", "".join(entry)).casefold() for entry in {*one, *other}}
    return len(leads) == 1 and len(texts) == len({*one, *other})
