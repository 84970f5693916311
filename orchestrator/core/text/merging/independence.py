"""Decides whether two changes at one place are independent: neither uses what the other removes or changes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from orchestrator.core.text.merge import Cluster
from orchestrator.core.text.merging.rule import Sides, new_lines
from orchestrator.core.text.symbols import Outline

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
    sound = sides.parsed_outlines
    if sound is None:
        return False
    base, current, proposed = sound
    if base.language == "yaml" and any(map(_ANCHOR.search, _lines(cluster, sides))):
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


def _lines(cluster: Cluster, sides: Sides) -> Iterator[str]:
    """All lines of a place, on the three sides."""
    for span, text in zip(cluster.region, sides, strict=True):
        yield from span.of(text)
