"""Merge rule: both sides added definitions at one place."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec

from orchestrator.core.content import LineHunk
from orchestrator.core.text.indent import depth_of
from orchestrator.core.text.merge import Cluster
from orchestrator.core.text.merging.rules import Resolution, Sides, insertions, new_lines
from orchestrator.core.text.symbols import Outline, Symbol, walked

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
