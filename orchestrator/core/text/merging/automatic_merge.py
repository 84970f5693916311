"""Three-way merge beyond git's: imports that both sides added at one place are brought together and reported."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.merge_rules import WHY, MergeRule, ResolvedRegion
from orchestrator.core.text.merge import Cluster, ConflictingRegion, clusters, merged_lines
from orchestrator.core.text.merging.doubts import doubts
from orchestrator.core.text.merging.imports import IMPORTING, ImportMerge
from orchestrator.core.text.outline.languages import language_of
from orchestrator.core.three_way import Span, ThreeWay


class AutomaticMerge(msgspec.Struct, frozen=True):
    """Both sides' changes in one text, and how each place came together."""

    lines: tuple[str, ...]
    report: tuple[ResolvedRegion, ...]  # of every place that the proposal changed, ascending
    beyond: ConflictingRegion | None = None  # where git would have seen a conflict; None: nowhere


class UnresolvedMerge(msgspec.Struct, frozen=True):
    """The changes do not go together."""

    clashed: ConflictingRegion  # every region where git would see a conflict
    why: str = ""  # if git sees no conflict there


def merge_automatically(
    base: Sequence[str], current: Sequence[str], proposed: Sequence[str], *, path: WorkspacePath, imports: bool = True
) -> AutomaticMerge | UnresolvedMerge:
    """Merge as `merge3`; with `imports`, regions where both sides only added imports are merged too.

    All regions or none: a text with half of the proposal is nobody's. What `doubts` finds is a conflict.
    Cost: as `merge3`; where it conflicts, O(lines) more.
    """
    found = clusters(base, current, proposed)
    outputs = [cluster.agreed for cluster in found]
    conflicts = [at for at, lines in enumerate(outputs) if lines is None]
    clashed = ConflictingRegion(tuple(found[at].region for at in conflicts))
    if conflicts:
        language = language_of(path)
        if not imports or language not in IMPORTING:
            return UnresolvedMerge(clashed)
        importing = ImportMerge(ThreeWay(base, current, proposed), language)
        for at in conflicts:
            outputs[at] = importing.merged(found[at].region)
            if outputs[at] is None:
                return UnresolvedMerge(clashed)
    merged, report = _reported(base, found, [lines or () for lines in outputs], conflicts, path)
    if (doubt := doubts(base, current, proposed, merged, found, conflicts)) is not None:
        return UnresolvedMerge(ConflictingRegion(doubt.regions), doubt.why)
    return AutomaticMerge(merged, report, clashed if conflicts else None)


def _reported(
    base: Sequence[str],
    found: Sequence[Cluster],
    outputs: Sequence[Sequence[str]],
    conflicts: Sequence[int],
    path: WorkspacePath,
) -> tuple[tuple[str, ...], tuple[ResolvedRegion, ...]]:
    """The merged text, and the report of each place that the proposal changed."""
    report: list[ResolvedRegion] = []
    shift = 0
    for at, (cluster, output) in enumerate(zip(found, outputs, strict=True)):
        region = cluster.region
        if cluster.theirs:
            rule: MergeRule = "imports" if at in conflicts else "same_change" if cluster.ours else "clean"
            merged = Span(region.base.start + shift, len(output))
            report.append(ResolvedRegion(path, rule, WHY[rule], region, merged))
        shift += len(output) - region.base.length
    return merged_lines(base, found, outputs), tuple(report)
