"""Both sides changed a list of imports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from orchestrator.core.text.merge import Cluster
from orchestrator.core.text.merging.clash import Resolution, Sides
from orchestrator.core.text.merging.import_lines import ImportLine, import_lines

_WORDS = re.compile(r"\w+")


def settle(cluster: Cluster, sides: Sides) -> Resolution | None:
    """Without what either side removed, with what either added: in the current order, the proposal's after.

    Only where every line of the region is an import of the same list, none stands twice, no name
    comes to be bound twice, and no import that one side removed is used in what the other added.
    Where it cannot be told which names a line binds, nothing of that kind may be removed.
    """
    if sides.language is None:
        return None
    region = cluster.region
    base = _region(sides.language, sides.base, region.base_start, region.base_len)
    current = _region(sides.language, sides.current, region.current_start, region.current_len)
    proposed = _region(sides.language, sides.proposed, region.proposed_start, region.proposed_len)
    if base is None or current is None or proposed is None:
        return None
    known = {**base, **current, **proposed}
    gone = [line for line in base if line not in current or line not in proposed]
    kept = [line for line in current if line not in gone or line not in base]
    kept += [line for line in proposed if line not in base and line not in current]
    if len({item.place for item in known.values()}) > 1 or any(not known[line].known for line in gone):
        return None
    if not _once(known[line] for line in kept) or _missed(cluster, sides, base, current, proposed, kept):
        return None
    added = len([line for line in kept if line not in base])
    return Resolution(
        tuple(kept),
        f"only imports stand here: {added} added by one side or both, {len(gone)} removed; no name is bound twice",
    )


def _region(language: str, lines: Sequence[str], start: int, length: int) -> dict[str, ImportLine] | None:
    """The imports of a range, in order; None if it holds anything else, or a line twice."""
    found: dict[str, ImportLine] = {}
    read = import_lines(language, lines[: start + length])  # what follows changes nothing of what came before
    for line, item in zip(lines[start : start + length], read[start:], strict=True):
        if item is None or line in found:
            return None
        found[line] = item
    return found


def _once(items: Iterable[ImportLine]) -> bool:
    """Whether no name is bound twice; `import a.b` and `import a.c` both bind `a`, to the same."""
    bound: dict[str, bool] = {}  # and whether as a package
    for item in items:
        for name in item.names:
            if name in bound and not (item.package and bound[name]):
                return False
            bound[name] = item.package
    return True


def _missed(
    cluster: Cluster,
    sides: Sides,
    base: dict[str, ImportLine],
    current: dict[str, ImportLine],
    proposed: dict[str, ImportLine],
    kept: list[str],
) -> bool:
    """Whether one side's new lines use a name that the other no longer imports."""
    for side, other, text, is_current in (
        (current, proposed, sides.proposed, False),
        (proposed, current, sides.current, True),
    ):
        removed = {name for line, item in base.items() if line not in side for name in item.names}
        removed -= {name for line in kept for name in {**base, **side, **other}[line].names}
        if removed and removed & _new_words(sides, cluster, text, is_current=is_current):
            return True
    return False


def _new_words(sides: Sides, here: Cluster, text: Sequence[str], *, is_current: bool) -> set[str]:
    """Every word of the lines that a side brought, outside of this cluster."""
    words: set[str] = set()
    for cluster in sides.clusters:
        for hunk in (cluster.ours if is_current else cluster.theirs) if cluster is not here else ():
            for line in text[hunk.new_start : hunk.new_end]:
                words.update(_WORDS.findall(line))
    return words
