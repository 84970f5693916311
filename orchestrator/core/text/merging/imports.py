"""Merge rule: both sides changed a list of imports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from orchestrator.core.text.merge import Cluster
from orchestrator.core.text.merging.import_lines import ImportLine, import_lines
from orchestrator.core.text.merging.import_lists import import_list, with_both
from orchestrator.core.text.merging.merge_region import Resolution, Sides
from orchestrator.core.text.merging.quoted_lines import begins_quoted
from orchestrator.core.three_way import Span

_WORD = re.compile(r"\w+")

Imports = Mapping[str, ImportLine]
"""Lines that import, in their order."""


def settle(cluster: Cluster, sides: Sides) -> Resolution | None:
    """With what either side added: in the current order, the proposal's after.

    Only where every line of the region is an import of the same list, outside of strings; where both
    sides kept each import that the base has, if only with more names on its line; where no line
    stands twice and no name comes to be bound twice; and where neither imports from what the other
    imports no more, anywhere in the text: it may have another name there. What one side took out,
    nobody but a person can weigh against the other's line.
    """
    language = sides.language
    if language is None:
        return None
    base, current, proposed = (
        _region(language, lines, read, span)
        for lines, read, span in zip(sides, sides.imports, cluster.region, strict=True)
    )
    if base is None or current is None or proposed is None:
        return None
    longer: dict[str, str] = {}  # a side's line → what comes of it
    for line in base:
        mine, other = _kept(language, line, base, current), _kept(language, line, base, proposed)
        if mine is None or other is None or mine in longer or other in longer:
            return None
        longer[mine] = longer[other] = _both(language, line, mine, other)
    lines = [longer.get(line, line) for line in current]
    lines += [line for line in proposed if line not in longer and line not in current]
    read = sides.imports
    if _gone(read.base, read.current) & _sources(proposed.values()):
        return None
    if _gone(read.base, read.proposed) & _sources(current.values()):
        return None
    known = {**base, **current, **proposed}
    if len({item.place for item in known.values()}) > 1 or len(set(lines)) < len(lines):
        return None
    if not _once(item for line in lines for item in (known.get(line) or import_lines(language, [line])[0],)):
        return None
    added = len(lines) - len(base)
    more = sum(line not in base for line in longer.values())
    return Resolution(
        tuple(lines),
        f"only imports are here, and none was removed: {added} lines added, {more} made longer by one side or both; "
        "no name is bound twice",
    )


def _region(language: str, lines: Sequence[str], read: Sequence[ImportLine | None], span: Span) -> Imports | None:
    """The imports of a range; None if it holds anything else, a line twice, or what only looks like an import."""
    found: dict[str, ImportLine] = {}
    for line, item in zip(span.of(lines), read[span.start : span.end], strict=True):
        if item is None or line in found:
            return None
        found[line] = item
    return None if begins_quoted(language, lines, span.start, span.length) else found


def _gone(base: Iterable[ImportLine | None], side: Iterable[ImportLine | None]) -> frozenset[str]:
    """What the base imports from, and a side does not."""
    return _sources(base) - _sources(side)


def _sources(items: Iterable[ImportLine | None]) -> frozenset[str]:
    """What is imported from, and the outermost package of each: a package may be renamed with all that it holds."""
    sources = {item.source for item in items if item is not None}
    return frozenset(sources.union(*(_WORD.findall(source)[:1] for source in sources)))


def _kept(language: str, line: str, base: Imports, side: Imports) -> str | None:
    """A line of the base as a side has it: unchanged, or as the one list that holds its names and more."""
    if line in side:
        return line
    listed = import_list(language, line)
    others = [other for other in side if other not in base]
    longer = [other for other in others if listed and (more := import_list(language, other)) and more.extends(listed)]
    return longer[0] if len(longer) == 1 else None


def _both(language: str, line: str, mine: str, other: str) -> str:
    """A line of the base as both sides have it."""
    if other in (mine, line):
        return mine
    base, current, proposed = (import_list(language, text) for text in (line, mine, other))
    return with_both(base, current, proposed).line if base and current and proposed else other


def _once(items: Iterable[ImportLine | None]) -> bool:
    """Whether no name is bound twice; `import a.b` and `import a.c` both bind `a`, to the same."""
    bound: dict[str, bool] = {}  # and whether as a package
    for item in items:
        if item is None:
            return False
        for name in item.names:
            if name in bound and not (item.package and bound[name]):
                return False
            bound[name] = item.package
    return True
