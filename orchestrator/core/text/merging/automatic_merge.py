"""Three-way merge beyond git's: regions that a rule can merge safely are merged and reported."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from orchestrator.core.content import AUTOMATIC_RULES, AutomaticRule, MergeRule, ResolvedRegion, Span
from orchestrator.core.ids import WorkspacePath
from orchestrator.core.text.merge import LineMerge, MergeConflict
from orchestrator.core.text.merging.doubts import doubts
from orchestrator.core.text.merging.rules import NO_OUTLINES, RULES, Outlines, Sides
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
            tried = ((name, RULES[name](cluster, sides)) for name in RULES if name in rules)
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
