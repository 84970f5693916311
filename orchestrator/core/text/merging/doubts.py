"""Finds what a clean merge of lines gets wrong: a lost removal, a doubled addition, a moved surrounding.

One side moved lines and the other removed them where they were: then both took them away there, and
they are at their new place, as if nobody had removed them. Or both sides brought the same lines, at two
places. git merges both without a word; here each is a conflict, from the one place to the other.

So is a change that would be below another block, list item or section than in the base. A diff pairs equal lines,
whatever they are below: of two sections with equal bodies that changed places, it takes the names for changed and the
bodies for unchanged. What each line is below tells them apart.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import chain, islice, takewhile

from orchestrator.core.content import LineHunk
from orchestrator.core.text.indent import TAB, depth_of
from orchestrator.core.text.lines import is_significant
from orchestrator.core.text.merge import LineMerge, Lines, MergeConflict, regions_over

STRAYED = "the block around the change has moved"

Reach = tuple[int, int]
"""From one cluster to another, by their places in the list; both count."""
MOST_MEMBERS = 100
"""Lines of a block whose members say which one it is."""

_SECTION = re.compile(r"\[+[^\W\d][^,]*\]+\s*\Z|(?P<marks>#{1,6}) \s*\S")
"""A heading without indentation: of INI, TOML and Markdown."""
_ITEM = re.compile(r"\s*- ")

Place = tuple[int, Lines]
"""A 0-based line, and the rows that go from there or come there."""


def doubts(texts: LineMerge, merged: Lines, conflicts: Iterable[int] = ()) -> MergeConflict | None:
    """What is doubtful about a text that was merged of the clusters; None where nothing is.

    Only lines count that say something. `conflicts` are clusters that git leaves to a person: where there is
    a doubt, they are among its regions. Cost: O(lines).
    """
    checks: tuple[tuple[str, Iterator[Reach]], ...] = (
        ("one side removed lines that the other moved", _lost(texts, merged)),
        ("both sides added the same lines, at different places", _twice(texts, merged)),
        (STRAYED, ((at, at) for at in strayed(texts))),
    )
    for why, doubtful in checks:
        if reaches := list(doubtful):
            reaches += ((at, at) for at in conflicts)
            found = texts.clusters
            spans = ((found[first].region.base.start, found[last].region.base.end) for first, last in reaches)
            return MergeConflict(tuple(regions_over(spans, found)), why)
    return None


def removed_already(texts: LineMerge) -> bool:
    """Whether the lines that the change base → proposed takes away, and that say something, are gone already.

    A line that others only indented otherwise is not gone.
    """
    had, has, keeps = map(_counted, texts)
    return not any(has[line] > keeps[line] for line in had - keeps if is_significant(line))


def _lost(texts: LineMerge, merged: Lines) -> Iterator[Reach]:
    """Where both sides took lines, and one of them alone has brought half of these, or more, again elsewhere."""
    (base, current, proposed), found = texts, texts.clusters
    both = [at for at, cluster in enumerate(found) if cluster.ours and cluster.theirs and cluster.region.base.length]
    had, has, keeps, comes = map(_counted, (base, current, proposed, merged)) if both else (Counter[str](),) * 4
    for at in both:
        taken = _taken(found[at].ours) & _taken(found[at].theirs)
        gone = [base[n].strip() for n in taken if is_significant(base[n])]
        moved = {
            line
            for line in gone
            if comes[line] >= had[line]
            and (keeps[line] < had[line] == has[line] or has[line] < had[line] == keeps[line])
        }
        if moved and 2 * sum(line in moved for line in gone) >= len(gone):
            to = [
                n
                for n, cluster in enumerate(found)
                for _, line in chain(_said(cluster.ours, current), _said(cluster.theirs, proposed))
                if line.strip() in moved
            ]
            yield min([at, *to]), max([at, *to])


def _counted(lines: Lines) -> Counter[str]:
    """Lines but for their indentation."""
    return Counter(line.strip() for line in lines)


def _taken(hunks: Sequence[LineHunk]) -> set[int]:
    return {at for hunk in hunks for at in range(hunk.old_start, hunk.old_end)}


def _twice(texts: LineMerge, merged: Lines) -> Iterator[Reach]:
    """Where both sides brought a new line alike: with its neighbour, or as all that they inserted there."""
    (base, current, proposed), found = texts, texts.clusters
    mine = [(at, hunk, line) for at, cluster in enumerate(found) for hunk, line in _said(cluster.ours, current)]
    other = [(at, hunk, line) for at, cluster in enumerate(found) for hunk, line in _said(cluster.theirs, proposed)]
    n_mine, n_other = (Counter(line for *_, line in side) for side in (mine, other))
    shared = {line for line, n in n_mine.items() if n == 1 == n_other[line]}.difference(base)
    if not shared:
        return
    comes = Counter(line for line in merged if line in shared)
    place = {line: at for at, (*_, line) in enumerate(mine) if comes[line] == 2}
    for at, (cluster, hunk, line) in enumerate(other):
        if line not in place or mine[place[line]][0] == cluster:
            continue  # at one place git sees a conflict, and the rules look at what comes twice
        its_cluster, its_hunk, _ = mine[place[line]]
        around = [
            [side[n][2] if 0 <= n < len(side) and side[n][1] is own else None for n in (it - 1, it + 1)]
            for side, own, it in ((mine, its_hunk, place[line]), (other, hunk, at))
        ]
        alike = any(one is not None and one == two for one, two in zip(*around, strict=True))
        alone = not (its_hunk.old_len or hunk.old_len) and all(text is None for text in chain(*around))
        if alike or alone:
            yield min(cluster, its_cluster), max(cluster, its_cluster)


def _said(hunks: Sequence[LineHunk], side: Lines) -> Iterator[tuple[LineHunk, str]]:
    """The lines that hunks bring, and that say something."""
    for hunk in hunks:
        for line in side[hunk.new_start : hunk.new_end]:
            if is_significant(line):
                yield hunk, line


def strayed(texts: LineMerge) -> Iterator[int]:
    """The clusters of the proposal alone whose lines are below others in the current text; ascending.

    Cost: O(lines), and for each hunk the depth that it is at.
    """
    (base, current, proposed), found = texts, texts.clusters
    if not any(cluster.ours for cluster in found) or all(cluster.ours for cluster in found):
        return
    surroundings = Surroundings(base, current)
    for at, cluster in enumerate(found):
        shift = cluster.region.current.start - cluster.region.base.start
        for hunk in () if cluster.ours else cluster.theirs:
            rows = base[hunk.old_start : hunk.old_end] if hunk.old_len else proposed[hunk.new_start : hunk.new_end]
            if surroundings.differ((hunk.old_start, rows), (hunk.old_start + shift, rows)):
                yield at
                break


class Surroundings:
    """What lines are below in two texts, of which others made the second from the first."""

    def __init__(self, base: Lines, current: Lines) -> None:
        titles = frozenset(line for text in (base, current) for line in _titles(text))
        self._base, self._current = _Text(base, titles), _Text(current, titles)
        self._had, self._has = (Counter(line.strip() for line in text) for text in (base, current))

    def differ(self, before: Place, after: Place) -> bool:
        """Whether rows are below other lines than before.

        A line counts that others neither wrote nor took away, but have somewhere else than above these rows. One that
        they renamed, and a block around that they opened or closed, are no other.
        """
        was, now = Counter(self._base.above(before)), Counter(self._current.above(after))
        lost, gained = was - now, now - was
        moved = any(self._has[line] >= self._had[line] for line in lost)
        return moved or any(self._had[line] >= (1 if lost else self._has[line]) for line in gained)


class _Text:
    """The lines of a text, and below which of them each one is."""

    def __init__(self, lines: Lines, titles: Set[str]) -> None:
        self._lines, self._titles = lines, titles
        self._depths = [depth_of(line, TAB) if line.strip() else None for line in lines]
        self._parents: list[int] = []  # of each line; of a blank one the line above it that is not blank
        self._sections: list[tuple[int, tuple[str, ...]]] = []  # where each one begins, and its headings
        last = -1
        headings: list[tuple[int, str]] = []
        for at, depth in enumerate(self._depths):
            parent = last
            if depth is not None:
                while parent >= 0 and (self._depths[parent] or 0) >= depth:
                    parent = self._parents[parent]
                last = at
            self._parents.append(parent)
            if depth == 0 and (level := self._level(at)):
                headings = [*(outer for outer in headings if outer[0] < level), (level, lines[at].strip())]
                self._sections.append((at, tuple(text for _, text in headings)))

    def above(self, place: Place) -> Iterator[str]:
        """What some rows are below: the lines that open the blocks around them, and the headings."""
        at, rows = place
        depth = min((depth_of(row, TAB) for row in rows if row.strip()), default=0)
        parent = at - 1
        while parent >= 0:
            if (here := self._depths[parent]) is not None and here < depth:
                depth = here
                yield from self._opening(parent)
            parent = self._parents[parent]
        if section := bisect_left(self._sections, (at,)):
            yield from self._sections[section - 1][1]

    def _opening(self, at: int) -> Iterator[str]:
        """A line that opens a block. Of a bracket it is the line above; if that says nothing, the block's members.

        So it is of a list's item, which any of its members may name.
        """
        line, depth = self._lines[at], self._depths[at] or 0
        if is_significant(line):
            yield line.strip()
            if not _ITEM.match(line):
                return
        elif at and self._depths[at - 1] == depth and is_significant(self._lines[at - 1]):
            yield self._lines[at - 1].strip()
            return
        below = islice(self._depths, at + 1, at + 2 + MOST_MEMBERS)
        inside = list(takewhile(lambda inner: inner is None or inner > depth, below))
        least = min((inner for inner in inside if inner is not None), default=0)
        for member, inner in enumerate(inside if len(inside) <= MOST_MEMBERS else (), at + 1):
            if inner == least and is_significant(self._lines[member]):
                yield self._lines[member].strip()

    def _level(self, at: int) -> int:
        """Of a heading, 1 being the outermost; 0 for other lines."""
        line = self._lines[at]
        section = _SECTION.match(line)
        if section is None:
            return 0
        level = len(section["marks"] or "#")
        return level if level > 1 or not section["marks"] or line in self._titles else 0


def _titles(lines: Lines) -> Iterator[str]:
    """The lines with one `#` that have no text beside them: no comments, also if the other text has a line there."""
    for at, line in enumerate(lines):
        if line.startswith("# ") and not any(map(str.strip, (*lines[max(0, at - 1) : at], *lines[at + 1 : at + 2]))):
            yield line
