"""Three-way merge beyond git's: regions that a rule can merge safely are merged and reported."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, takewhile
from typing import Final

import msgspec

from orchestrator.core.content import AUTOMATIC_RULES, AutomaticRule, LineHunk, MergeRule, ResolvedRegion, Span
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.lines import is_significant
from orchestrator.core.text.merge import Cluster, LineMerge, MergeConflict
from orchestrator.core.text.merging.doubts import doubts
from orchestrator.core.text.merging.rules import NO_OUTLINES, RULES, Outlines, Resolution, Rule, Sides, new_lines
from orchestrator.core.text.symbols import language_of

MOST_LINES: Final = 1_000_000
"""How many lines the rules look at, all conflicts of a merge together; beyond that it is a conflict as it is."""


CLEAN: Final = "no other change touched these lines or their neighbours"


class AutomaticMerge(msgspec.Struct, frozen=True):
    """Both sides' changes in one text, and how each place came together."""

    lines: tuple[str, ...]
    report: tuple[ResolvedRegion, ...]  # of every place that the proposal changed, ascending
    beyond: MergeConflict | None = None  # where git would have seen a conflict; None: nowhere


def merge_automatically(
    texts: LineMerge,
    outlines: Outlines = NO_OUTLINES,
    *,
    path: WorkspacePath,
    rules: Collection[AutomaticRule] = AUTOMATIC_RULES,
) -> AutomaticMerge | MergeConflict:
    """Merge as `LineMerge.merged`; where that conflicts, merge each region by the first of `rules` that takes it.

    All regions or none: a text with half of the proposal is nobody's. What `doubts` finds is a conflict. The result
    may still not parse: a rule sees lines and symbols, not syntax. Cost: as that; where it conflicts, O(lines)
    more for each region, up to `MOST_LINES`.
    """
    found = texts.clusters
    conflicts = [at for at, cluster in enumerate(found) if cluster.agreed is None]
    conflict = MergeConflict(tuple(found[at].region for at in conflicts))
    if conflicts and (not rules or len(conflicts) * sum(map(len, texts)) > MOST_LINES):
        return conflict
    sides = Sides(texts.base, texts.current, texts.proposed, found, outlines, language_of(path) or "", path)
    outputs: list[Sequence[str]] = []
    report: list[ResolvedRegion] = []
    shift = 0
    for cluster in found:
        region, output = cluster.region, cluster.agreed
        rule: MergeRule = "same_change" if cluster.ours else "clean"
        why = "both sides made the same change" if cluster.ours else CLEAN
        if output is None:
            tried = ((name, _RULES[name](cluster, sides)) for name in _RULES if name in rules)
            first = next(((name, resolution) for name, resolution in tried if resolution is not None), None)
            if first is None:
                return conflict
            rule, why, output = first[0], first[1].why, first[1].lines
        outputs.append(output)
        if cluster.theirs:
            report.append(ResolvedRegion(path, rule, why, region, Span(region.base.start + shift, len(output))))
        shift += len(output) - region.base.length
    merged = texts.with_outputs(outputs)
    if (doubt := doubts(texts, merged, conflicts)) is not None:
        return doubt
    return AutomaticMerge(merged, tuple(report), conflict if conflicts else None)


def same_change(cluster: Cluster, sides: Sides) -> Resolution | None:
    """Take the side that holds the other's whole change and more, at its head or its tail.

    Only where each side has one hunk, what was removed has no equal block beside it, and what they share says
    something: a bracket or a blank line may be the same by chance.
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


_RULES: Final[Mapping[AutomaticRule, Rule]] = {"same_change": same_change, **RULES}
