"""Merge rule: both sides added definitions at one place."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from orchestrator.core.text.diff import Hunk
from orchestrator.core.text.indent import depth_of
from orchestrator.core.text.merge import Cluster
from orchestrator.core.text.merging.independence import independent
from orchestrator.core.text.merging.merge_region import Resolution, Sides, new_lines
from orchestrator.core.text.symbols import Outline, Symbol

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


def settle(cluster: Cluster, sides: Sides) -> Resolution | None:
    """Keep both sides' definitions, the current ones first.

    Only where each side added nothing but whole definitions (with comments and blank lines), in the
    same parent and as deep as the other's;
    where no name that one side added is defined anywhere in the other, but for its case;
    and where neither uses what the other added, or took away.
    """
    sound = sides.parsed_outlines
    if sound is None or len(cluster.ours) != 1 or len(cluster.theirs) != 1:
        return None
    ours, theirs = cluster.ours[0], cluster.theirs[0]
    if ours.old_len or theirs.old_len or ours.old_start != theirs.old_start:
        return None
    _, current, proposed = sound
    mine, other = _added(current, ours, sides.current), _added(proposed, theirs, sides.proposed)
    if mine is None or other is None or (mine.parent, mine.depth) != (other.parent, other.depth):
        return None
    if mine.names & _all(proposed) or other.names & _all(current):
        return None
    if not independent(cluster, sides, mine.whole, other.whole):
        return None
    why = f"both sides only added here, of different names: {_first(mine)} and {_first(other)}"
    return Resolution((*new_lines(sides.current, ours), *new_lines(sides.proposed, theirs)), why)


def _added(outline: Outline, hunk: Hunk, lines: Sequence[str]) -> _Added | None:
    """The definitions that an insertion consists of; None if it holds anything else."""
    said = [line for line in range(hunk.new_start + 1, hunk.new_end + 1) if lines[line - 1].strip()]
    if not said:
        return None
    start, end = said[0], said[-1]  # 1-based, inclusive
    parents: list[str] = []
    symbols = outline.symbols
    while (holder := next((s for s in symbols if s.line < start and end <= s.end_line), None)) is not None:
        parents.append(holder.name)
        symbols = holder.children
    whole = [s for s in symbols if start <= s.line and s.end_line <= end]
    if not whole or any(s.kind in ORDERED for s in whole):
        return None
    covered = {line for s in whole for line in range(s.line, s.end_line + 1)}
    last = max(s.end_line for s in whole)
    for line in range(start, end + 1):
        text = lines[line - 1].strip()
        if line not in covered and text and not (line < last and _is_comment(text)):
            return None
    parent = ".".join(parents)
    prefix = f"{parent}." if parent else ""
    return _Added(
        parent,
        min(depth_of(lines[line - 1]) for line in said),
        frozenset(f"{prefix}{symbol.name}" for symbol in whole),
        frozenset(name.casefold() for symbol in whole for name in _names(symbol, prefix)),
    )


def _names(symbol: Symbol, prefix: str) -> list[str]:
    name = f"{prefix}{symbol.name}"
    return [name, *(inner for child in symbol.children for inner in _names(child, f"{name}."))]


def _all(outline: Outline) -> frozenset[str]:
    return frozenset(name.casefold() for name, _ in outline.walk())


def _is_comment(text: str) -> bool:
    return text.startswith(_COMMENTS) and not text.startswith(_NOT_COMMENTS)


def _first(added: _Added) -> str:
    return min(added.whole)
