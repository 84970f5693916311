"""Merge rules: what each is given and answers; and those about the same change on both sides and about lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain, takewhile
from typing import Final

import msgspec

from orchestrator.core.content import LineHunk, ThreeWay
from orchestrator.core.text.lines import is_significant
from orchestrator.core.text.merge import Cluster, Lines
from orchestrator.core.text.merging.imports import IMPORTING, ImportMerge
from orchestrator.core.text.symbols import Outline

Entry = tuple[str, ...]
"""The lines of one entry."""

LEAST_SORTED = 3
"""Lines of the base that show that a block is sorted; two are in order by chance."""

_PROSE = ("md", "markdown", "rst", "txt", "adoc")
_ITEM = re.compile(r"(?P<lead>\s*[-*+•]\s+)\S")
_RULE = re.compile(r"\s*([-*+=~_#^])(\s*\1)+\s*\Z")
_MARKS = re.compile(r"\[x\]|\W", re.IGNORECASE)
_FENCE = re.compile(r"\s*(```|~~~)")
_ROW = re.compile(r"\s*\|.*\S.*\|\s*\Z")
_WORD = re.compile(r"(?P<key>\S+)\Z")
_NAME = re.compile(r"(?:[^\s=<>!~;,@:(\[\]\"']|:(?=//))+")
_STRING = re.compile(r"""(?P<lead>\s*)(?P<key>"[^"\\]*"|'[^'\\]*')(?:\s*:\s*(?:"[^"\\]*"|'[^'\\]*'|[\w.+-]+))?,\s*\Z""")

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


def same_change(cluster: Cluster, sides: Sides) -> Resolution | None:
    """Take the side that holds the other's whole change and more, at its head or its tail.

    Only where each side has one hunk, what was removed has no equal block beside it,
    and what they share says something: a bracket or a blank line
    may be the same by chance.
    """
    if len(cluster.ours) != 1 or len(cluster.theirs) != 1:
        return None
    ours, theirs = cluster.ours[0], cluster.theirs[0]
    mine, other = new_lines(sides.current, ours), new_lines(sides.proposed, theirs)
    if _holds(theirs, other, ours, mine, sides.base):
        return Resolution(tuple(other), _why_same(mine, "the proposal"))
    if _holds(ours, mine, theirs, other, sides.base):
        return Resolution(tuple(mine), _why_same(other, "the current text"))
    return None


def _holds(wide: LineHunk, wide_lines: list[str], narrow: LineHunk, lines: list[str], base: Sequence[str]) -> bool:
    """Whether the wide hunk is the narrow one with more lines behind or before it.

    A narrow one that replaces lines must leave some to the wide one, and bring no fewer than it takes: else it
    may have removed a line that is, changed, in what the wide one brings.
    """
    if wide.old_start > narrow.old_start or wide.old_end < narrow.old_end:
        return False
    more_old, more_new = wide.old_len - narrow.old_len, len(wide_lines) - len(lines)
    if more_new < 0 or not more_old | more_new:
        return False
    if not lines:  # both removed lines; the wide one must do nothing but that
        removed = base[narrow.old_start : narrow.old_end]
        sure = any(map(is_significant, removed)) and not _slides(wide, base)
        return more_old > 0 and not wide_lines and sure
    if not any(map(is_significant, lines)) or (narrow.old_len and (not more_old or len(lines) < narrow.old_len)):
        return False
    at_head = wide.old_start == narrow.old_start and wide_lines[: len(lines)] == lines
    at_tail = wide.old_end == narrow.old_end and wide_lines[more_new:] == lines
    return at_head or at_tail


def _slides(removal: LineHunk, base: Sequence[str]) -> bool:
    """Whether an equal block next to it may be the one that was removed."""
    start, end = removal.old_start, removal.old_end
    below = takewhile(lambda at: base[at] == base[at - removal.old_len], range(end, len(base)))
    above = takewhile(lambda at: base[at] == base[at + removal.old_len], range(start - 1, -1, -1))
    return any(is_significant(base[at]) for at in chain(above, below))


def _why_same(shared: list[str], wider: str) -> str:
    what = f"brought the same {len(shared)} lines" if shared else "removed the same lines"
    return f"both sides {what}; only {wider} changed what is next to them"


def list_items(cluster: Cluster, sides: Sides) -> Resolution | None:
    """Unite the entries, the current ones first, those of a sorted block in its order; what both bring comes once.

    Only where both sides did nothing but insert here, no blank line and no heading among it, and all of it is

    - in prose (Markdown, reStructuredText, AsciiDoc, plain text), outside of fenced blocks: whole list items
      with one marker (`- * + •`, no numbers) at one depth, each with the lines that are indented deeper; or
      rows of one Markdown table, below its head, of as many cells as the row above;
    - or lines of a block of the base that is sorted, and stays so, with no key twice and no name in both sides'
      lines: in prose lines of one
      word each, elsewhere strings in quotes that end with a comma, alone or as keys of a plain value.

    Statements of a program are none of these: their order means something, and so does one more of them.
    """
    inserted = insertions(cluster)
    if inserted is None:
        return None
    ours, theirs = inserted
    mine, other = new_lines(sides.current, ours), new_lines(sides.proposed, theirs)
    at = ours.old_start
    if not mine or not other or not all(line.strip() and not _RULE.match(line) for line in (*mine, *other)):
        return None
    prose = sides.path.rpartition(".")[2].lower() in _PROSE
    if prose and sum(bool(_FENCE.match(line)) for line in sides.base[:at]) % 2 == 0:
        for entries in (_items, _rows):
            one, two = entries(mine, sides.base, at), entries(other, sides.base, at)
            if one and two and _alike(one, two):
                more = [entry for entry in two if entry not in one]
                lines = tuple(line for entry in (*one, *more) for line in entry)
                return Resolution(
                    lines, f"both sides only added entries of a list here: {len(one)} and {len(more)} more"
                )
    united = _sorted(mine, other, sides.base, at, _WORD if prose else _STRING)
    if united is None:
        return None
    return Resolution(united, f"both sides only added lines of a sorted block here, {len(united)} in all")


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


def _rows(lines: Sequence[str], base: Sequence[str], at: int) -> list[Entry]:
    """The rows of a table that lines are; none if they do not go on with the one above."""
    if at < 2 or not all(_ROW.match(line) for line in (base[at - 2], base[at - 1], *lines)):
        return []
    cells = _cells(base[at - 1])
    return [(line,) for line in lines] if all(_cells(line) == cells for line in lines) else []


def _cells(row: str) -> int:
    return len(re.findall(r"(?<!\\)\|", row))


def _alike(one: Sequence[Entry], other: Sequence[Entry]) -> bool:
    """Whether entries of two sides are of one kind, beginning alike, and no two the same but for marks and blanks."""
    leads = {match["lead"] if (match := _ITEM.match(entry[0])) else "" for entry in (*one, *other)}
    texts = {_MARKS.sub("", "".join(entry)).casefold() for entry in {*one, *other}}
    return len(leads) == 1 and len(texts) == len({*one, *other})


def _sorted(
    mine: Sequence[str], other: Sequence[str], base: Sequence[str], at: int, form: re.Pattern[str]
) -> tuple[str, ...] | None:
    """Both sides' lines in the order of the block around them; None if it is not sorted, or has a key twice."""
    start, end = at, at
    while start and form.match(base[start - 1]):
        start -= 1
    while end < len(base) and form.match(base[end]):
        end += 1
    united = dict.fromkeys([*mine, *other])
    block = [*base[start:at], *united, *base[at:end]]
    matches = [match for line in block if (match := form.match(line))]
    if end - start < LEAST_SORTED or len(matches) < len(block):
        return None
    if "lead" in form.groupindex and len({match["lead"] for match in matches}) > 1:
        return None
    key_of = {match.string: match["key"] for match in matches}
    if len({key.casefold() for key in key_of.values()}) < len(block):
        return None
    names = [{_name(key_of[line]) for line in brought} for brought in (set(mine) - {*other}, set(other) - {*mine})]
    if names[0] & names[1]:
        return None
    orders: tuple[Callable[[str], str], ...] = (str, str.casefold)
    for order in orders:
        lines = sorted(united, key=lambda line: order(key_of[line]))
        for brought in (mine, other, lines):
            keys = [order(key_of[line]) for line in (*base[start:at], *brought, *base[at:end])]
            if keys != sorted(keys):
                break
        else:
            return tuple(lines)
    return None


def _name(key: str) -> str:
    """What an entry is called, without a version or a value behind it: `name==1`, `name>=2`."""
    match = _NAME.search(key)
    return match[0].casefold() if match else key
