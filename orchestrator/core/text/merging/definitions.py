"""Merge rules about definitions: both sides added some at one place, or changed adjacent lines of different symbols."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise

import msgspec

from orchestrator.core.content import LineHunk
from orchestrator.core.text.indent import depth_of
from orchestrator.core.text.lines import is_significant
from orchestrator.core.text.merge import Cluster
from orchestrator.core.text.merging.rules import Resolution, Sides, insertions, new_lines
from orchestrator.core.text.symbols import Outline, Symbol, walked

SHOWN_NAMES = 3

ORDERED = frozenset({"heading", "text"})
"""Kinds whose order says something, so that no rule can choose it."""

_COMMENTS = ("#", "//", "--", ";")
_NOT_COMMENTS = ("#include", "#define", "#if", "#else", "#endif", "#pragma", "#!", "#[")


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
    if not independent(cluster, sides, mine.whole, other.whole):
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


def disjoint_symbols(cluster: Cluster, sides: Sides) -> Resolution | None:
    """Take each side's lines in their places.

    Only where no line is changed by both, no two insertions meet, and every symbol that one side
    touches, before or after, is another than each that the other touches, neither holding the other,
    nor used in the other's new lines; where neither side moved a line from or to here, for then
    equal lines of two symbols are taken for each other; and only where both sides keep all that is defined around here.
    """
    if sides.parsed_outlines is None or not cluster.ours or not cluster.theirs:
        return None
    base, current, proposed = sides.parsed_outlines
    mine = _touched(cluster.ours, base, sides.base, current, sides.current)
    other = _touched(cluster.theirs, base, sides.base, proposed, sides.proposed)
    if not mine or not other or any(_related(one, two) for one in mine for two in other):
        return None
    if _moves(cluster, sides, by_current=True) or _moves(cluster, sides, by_current=False):
        return None
    if not independent(cluster, sides, mine, other):
        return None
    marked = [(hunk, sides.current) for hunk in cluster.ours] + [(hunk, sides.proposed) for hunk in cluster.theirs]
    marked.sort(key=lambda item: (item[0].old_start, item[0].old_end))
    if any(
        two.old_start < one.old_end or (one.old_start, one.old_end) == (two.old_start, two.old_end)
        for (one, _), (two, _) in pairwise(marked)
    ):
        return None
    lines: list[str] = []
    at = cluster.region.base.start
    for hunk, side in marked:
        lines += [*sides.base[at : hunk.old_start], *new_lines(side, hunk)]
        at = hunk.old_end
    return Resolution(
        tuple(lines), f"the lines touch, but the current text changed {_shown(mine)}, the proposal {_shown(other)}"
    )


def _moves(cluster: Cluster, sides: Sides, *, by_current: bool) -> bool:
    """Whether a significant line is removed or added here, and added or removed by the same side anywhere."""
    side = sides.current if by_current else sides.proposed
    hunks = [hunk for one in sides.clusters for hunk in (one.ours if by_current else one.theirs)]
    taken = {line for hunk in hunks for line in sides.base[hunk.old_start : hunk.old_end]}
    moved = {line for hunk in hunks for line in new_lines(side, hunk) if line in taken and is_significant(line)}
    here = cluster.ours if by_current else cluster.theirs
    return any(
        not moved.isdisjoint((*sides.base[hunk.old_start : hunk.old_end], *new_lines(side, hunk))) for hunk in here
    )


def _touched(
    hunks: Iterable[LineHunk], base: Outline, old: Sequence[str], outline: Outline, new: Sequence[str]
) -> frozenset[str]:
    """The symbols of the lines that are removed and of those that are added."""
    names: set[str] = set()
    for hunk in hunks:
        if hunk.old_len:
            names.update(_names_in(base, hunk.old_start, hunk.old_len, old))
        if hunk.new_len:
            names.update(_names_in(outline, hunk.new_start, hunk.new_len, new))
    return frozenset(names)


def _shown(names: frozenset[str]) -> str:
    listed = ", ".join(sorted(names)[:SHOWN_NAMES])
    return listed if len(names) <= SHOWN_NAMES else f"{listed} and {len(names) - SHOWN_NAMES} more"


def _names_in(outline: Outline, start: int, length: int, lines: Sequence[str]) -> Iterator[str]:
    """The dotted name of the innermost symbol of each line of a 0-based range; "" outside of all, unless blank."""
    for line in range(start + 1, start + length + 1):
        name = ".".join(holder.name for holder in outline.enclosing(line, line))
        if name or lines[line - 1].strip():
            yield name


def _related(one: str, other: str) -> bool:
    """Whether two dotted names are the same symbol, or one holds the other."""
    return not one or not other or f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


NEAR_LINES = 10
"""Above and below a place: who works there had these definitions before the eyes."""

_WORD = re.compile(r"\w+")
_ANCHOR = re.compile(r"(?:^|[\s\[{,:-])[&*][^\s,\[\]{}]")


def independent(cluster: Cluster, sides: Sides, mine: Iterable[str], other: Iterable[str]) -> bool:
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
    lost_mine, lost_other = _lost(base, current), _lost(base, proposed)
    if _near(base, cluster) & (lost_mine | lost_other):
        return False
    own, others = _last(mine), _last(other)
    ours = [line for hunk in cluster.ours for line in new_lines(sides.current, hunk)]
    theirs = [line for hunk in cluster.theirs for line in new_lines(sides.proposed, hunk)]
    return not _used(ours, _last(lost_other) | (others - own)) and not _used(theirs, _last(lost_mine) | (own - others))


def _lost(base: Outline, side: Outline) -> frozenset[str]:
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
    if not names.isdisjoint(_WORD.findall(text)):
        return True
    odd = (name for name in names if not _WORD.fullmatch(name))
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in odd)
