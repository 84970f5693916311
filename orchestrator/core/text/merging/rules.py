"""Merge rules: both sides added imports, items of a list, or definitions at one place."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Final

import msgspec

from orchestrator.core.content import AutomaticRule, LineHunk, ThreeWay
from orchestrator.core.text.indent import depth_of
from orchestrator.core.text.merge import Cluster, Lines
from orchestrator.core.text.merging.imports import IMPORTING, ImportMerge
from orchestrator.core.text.symbols import Outline, Symbol, walked

Entry = tuple[str, ...]
"""The lines of one entry."""

_PROSE = ("md", "markdown", "rst", "txt", "adoc")
_ITEM = re.compile(r"(?P<lead>\s*[-*+•]\s+)\S")
_RULE = re.compile(r"\s*([-*+=~_#^])(\s*\1)+\s*\Z")
_MARKS = re.compile(r"\[x\]|\W", re.IGNORECASE)
_FENCE = re.compile(r"\s*(```|~~~)")

ORDERED = frozenset({"heading", "text"})
"""Kinds whose order says something, so that no rule can choose it."""

_COMMENTS = ("#", "//", "--", ";")
_NOT_COMMENTS = ("#include", "#define", "#if", "#else", "#endif", "#pragma", "#!", "#[")

NEAR_LINES = 10
"""Above and below a place: who works there had these definitions before the eyes."""

_NAME = re.compile(r"\w+")
_ANCHOR = re.compile(r"(?:^|[\s\[{,:-])[&*][^\s,\[\]{}]")

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


def imports(cluster: Cluster, sides: Sides) -> Resolution | None:
    """As `ImportMerge.merged`."""
    lines = sides.imports.merged(cluster.region) if sides.imports is not None else None
    return Resolution(lines, "both sides only added imports, and no name is bound twice") if lines is not None else None


# --- items of a list ----------------------------------------------------------------------


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


# --- definitions --------------------------------------------------------------------------


class _Added(msgspec.Struct, frozen=True):
    """Whole definitions, one after the other."""

    parent: str  # dotted; "" at the top
    depth: int  # of the least indented line: deeper ones may belong to the line above
    whole: frozenset[str]  # their own names, dotted
    names: frozenset[str]  # with all that they hold, whatever their case


def additions(cluster: Cluster, sides: Sides) -> Resolution | None:
    """Keep both sides' definitions, the current ones first.

    Only where each side added nothing but whole definitions (with comments and blank lines), in the
    same parent and as deep as the other's;
    where no name that one side added is defined anywhere in the other, but for its case;
    and where neither uses what the other added, or took away.
    """
    inserted = insertions(cluster)
    if sides.parsed_outlines is None or inserted is None:
        return None
    ours, theirs = inserted
    _, current, proposed = sides.parsed_outlines
    mine, other = _added(current, ours, sides.current), _added(proposed, theirs, sides.proposed)
    if mine is None or other is None or (mine.parent, mine.depth) != (other.parent, other.depth):
        return None
    if mine.names & _caseless(proposed.walk()) or other.names & _caseless(current.walk()):
        return None
    if not _independent(cluster, sides, mine.whole, other.whole):
        return None
    why = f"both sides only added here, of different names: {min(mine.whole)} and {min(other.whole)}"
    return Resolution((*new_lines(sides.current, ours), *new_lines(sides.proposed, theirs)), why)


def _added(outline: Outline, hunk: LineHunk, lines: Sequence[str]) -> _Added | None:
    """The definitions that an insertion consists of; None if it holds anything else."""
    written = [line for line in range(hunk.new_start + 1, hunk.new_end + 1) if lines[line - 1].strip()]
    if not written:
        return None
    start, end = written[0], written[-1]  # 1-based, inclusive
    holders = outline.enclosing(start - 1, end)
    siblings = holders[-1].children if holders else outline.symbols
    whole = [s for s in siblings if start <= s.line and s.end_line <= end]
    if not whole or any(s.kind in ORDERED for s in whole):
        return None
    covered = {line for s in whole for line in range(s.line, s.end_line + 1)}
    last = max(s.end_line for s in whole)
    for line in range(start, end + 1):
        text = lines[line - 1].strip()
        comment = text.startswith(_COMMENTS) and not text.startswith(_NOT_COMMENTS)
        if line not in covered and text and not (line < last and comment):
            return None
    parent = ".".join(holder.name for holder in holders)
    prefix = f"{parent}." if parent else ""
    return _Added(
        parent,
        min(depth_of(lines[line - 1]) for line in written),
        frozenset(f"{prefix}{symbol.name}" for symbol in whole),
        _caseless(walked(whole, prefix)),
    )


def _caseless(named: Iterable[tuple[str, Symbol]]) -> frozenset[str]:
    return frozenset(name.casefold() for name, _ in named)


def _independent(cluster: Cluster, sides: Sides, mine: Iterable[str], other: Iterable[str]) -> bool:
    """Whether both sides kept what the base defines here and near, and neither's new lines use what the other changed.

    `mine` and `other` are the dotted names that the current and the proposed side change or add here.
    A name is used where it is as a word, whatever its case: also one that the other side removed or
    renamed elsewhere. YAML with an anchor or an alias depends on what is nowhere named.
    """
    if sides.parsed_outlines is None:
        return False
    base, current, proposed = sides.parsed_outlines
    texts = (span.of(text) for span, text in zip(cluster.region, sides, strict=True))
    if base.language == "yaml" and any(map(_ANCHOR.search, chain.from_iterable(texts))):
        return False
    lost_mine, lost_other = _undefined_by(base, current), _undefined_by(base, proposed)
    if _near(base, cluster) & (lost_mine | lost_other):
        return False
    own, others = _last(mine), _last(other)
    ours = [line for hunk in cluster.ours for line in new_lines(sides.current, hunk)]
    theirs = [line for hunk in cluster.theirs for line in new_lines(sides.proposed, hunk)]
    return not _used(ours, _last(lost_other) | (others - own)) and not _used(theirs, _last(lost_mine) | (own - others))


def _undefined_by(base: Outline, side: Outline) -> frozenset[str]:
    """The dotted names that a side defines less often than the base."""
    return frozenset(Counter(name for name, _ in base.walk()) - Counter(name for name, _ in side.walk()))


def _near(base: Outline, cluster: Cluster) -> frozenset[str]:
    """What the base defines around a place."""
    region = cluster.region
    first, last = region.base.start + 1 - NEAR_LINES, region.base.end + NEAR_LINES
    return frozenset(name for name, symbol in base.walk() if symbol.line <= last and first <= symbol.end_line)


def _last(names: Iterable[str]) -> frozenset[str]:
    """What a name is called by those who use it."""
    return frozenset(name.rpartition(".")[2].casefold() for name in names) - {""}


def _used(lines: Iterable[str], names: frozenset[str]) -> bool:
    """Whether one of some names is in lines as a word."""
    text = "\n".join(lines).casefold()
    if not names.isdisjoint(_NAME.findall(text)):
        return True
    odd = (name for name in names if not _NAME.fullmatch(name))
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in odd)


RULES: Final[Mapping[AutomaticRule, Rule]] = {"imports": imports, "list_items": list_items, "additions": additions}
