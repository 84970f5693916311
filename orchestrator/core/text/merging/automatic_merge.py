"""Three-way merge beyond git's: regions that a rule can resolve safely are resolved and reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from orchestrator.core.ids import WorkspacePath
from orchestrator.core.merge_rules import AUTOMATIC_RULES, AutomaticRule, MergeRule, ResolvedRegion
from orchestrator.core.text.merge import Cluster, ConflictingRegion, agreed_lines, clusters
from orchestrator.core.text.merging import additions, disjoint_symbols, imports, list_items, same_change
from orchestrator.core.text.merging.doubts import doubts
from orchestrator.core.text.merging.import_lines import language_of
from orchestrator.core.text.merging.merge_region import NO_OUTLINES, Outlines, Resolution, Sides
from orchestrator.core.three_way import Span

Settling = Callable[[Cluster, Sides], Resolution | None]

RULES: Final[Mapping[AutomaticRule, Settling]] = {
    "same_change": same_change.settle,
    "imports": imports.settle,
    "list_items": list_items.settle,
    "additions": additions.settle,
    "disjoint_symbols": disjoint_symbols.settle,
}
"""In the order in which they are tried."""

NEED_OUTLINES: Final[frozenset[AutomaticRule]] = frozenset({"additions", "disjoint_symbols"})

MOST_LINES: Final = 1_000_000
"""How many lines the rules look at, all clashes of a merge together: beyond that it is a conflict as it is."""


class AutomaticMerge(msgspec.Struct, frozen=True):
    """Both sides' changes in one text, and how each place came together."""

    lines: tuple[str, ...]
    report: tuple[ResolvedRegion, ...]  # of every place that the proposal changed, ascending
    beyond: ConflictingRegion | None = None  # where git would have seen a conflict; None: nowhere


class UnresolvedMerge(msgspec.Struct, frozen=True):
    """The changes do not go together."""

    clashed: ConflictingRegion  # every region where git would see a conflict
    disabled_rules: tuple[AutomaticRule, ...] = ()  # rules that were not to be used, and would settle all that is left
    why: str = ""  # if git sees no conflict there


def merge_automatically(
    base: Sequence[str],
    current: Sequence[str],
    proposed: Sequence[str],
    outlines: Outlines = NO_OUTLINES,
    *,
    path: WorkspacePath,
    rules: Iterable[AutomaticRule] = AUTOMATIC_RULES,
    known: Iterable[AutomaticRule] = AUTOMATIC_RULES,
) -> AutomaticMerge | UnresolvedMerge:
    """Merge as `merge3`; where that clashes, settle each region by the first rule that takes it.

    All regions or none: a text with half of the proposal is nobody's. Of the `known` rules only
    `rules` may settle anything; of the others it is said whether they would. With no `rules` this
    is `merge3`, with a report, but for what `doubts` finds. The result may still not parse: a rule sees
    lines and symbols, not syntax. Cost: as `merge3`; where it clashes, O(lines) more for each region, up
    to `MOST_LINES`.
    """
    allowed = frozenset(rules)
    tried = sorted((rule for rule in RULES if rule in allowed.union(known)), key=lambda rule: rule not in allowed)
    found = clusters(base, current, proposed)
    agreed = [agreed_lines(cluster, current, proposed) for cluster in found]
    clashing = [at for at, lines in enumerate(agreed) if lines is None]
    clashed = ConflictingRegion(tuple(found[at].region for at in clashing))
    if len(clashing) * (len(base) + len(current) + len(proposed)) > MOST_LINES:
        return UnresolvedMerge(clashed)
    sides = Sides(base, current, proposed, found, outlines, _language(outlines, path), path)
    outputs = [lines or () for lines in agreed]
    reasons = [_plain(cluster) for cluster in found]
    wanted: dict[AutomaticRule, None] = {}
    for at in clashing:
        settled = _first(found[at], sides, tried)
        if settled is None:
            return UnresolvedMerge(clashed)
        rule, resolution = settled
        if rule not in allowed:
            wanted[rule] = None
        outputs[at], reasons[at] = resolution.lines, (rule, resolution.why)
    if wanted:
        return UnresolvedMerge(clashed, tuple(wanted))
    merged, report = _joined(base, found, outputs, reasons, path)
    if (doubt := doubts(base, current, proposed, merged, found, clashing)) is not None:
        return UnresolvedMerge(ConflictingRegion(doubt.regions), why=doubt.why)
    return AutomaticMerge(merged, report, clashed if clashing else None)


def _language(outlines: Outlines, path: WorkspacePath) -> str | None:
    known = outlines.current or outlines.proposed or outlines.base
    return known.language if known is not None and known.parsed else language_of(path)


def _first(cluster: Cluster, sides: Sides, tried: Iterable[AutomaticRule]) -> tuple[AutomaticRule, Resolution] | None:
    """What the first rule says that takes this clash."""
    for rule in tried:
        resolution = RULES[rule](cluster, sides)
        if resolution is not None:
            return rule, resolution
    return None


def _plain(cluster: Cluster) -> tuple[MergeRule, str]:
    if cluster.ours and cluster.theirs:
        return "same_change", "both sides made the same change"
    return "clean", "no other change touched these lines or their neighbours"


def _joined(
    base: Sequence[str],
    found: Sequence[Cluster],
    outputs: Sequence[Sequence[str]],
    reasons: Sequence[tuple[MergeRule, str]],
    path: WorkspacePath,
) -> tuple[tuple[str, ...], tuple[ResolvedRegion, ...]]:
    """The merged text, and the report of each place that the proposal changed."""
    lines: list[str] = []
    report: list[ResolvedRegion] = []
    at = 0
    for cluster, output, (rule, why) in zip(found, outputs, reasons, strict=True):
        region = cluster.region
        lines += base[at : region.base.start]
        at = region.base.end
        if cluster.theirs:
            report.append(ResolvedRegion(path, rule, why, region, Span(len(lines), len(output))))
        lines += output
    lines += base[at:]
    return tuple(lines), tuple(report)
