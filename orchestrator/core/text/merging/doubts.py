"""Finds what a clean merge of lines gets wrong: a lost removal, a doubled addition, a moved surrounding.

One side moved lines and the other removed them where they were: then both took them away there, and
they are where they went, as if nobody had removed them. Or both sides brought the same lines, at two
places. git merges both without a word; here each is a conflict, from the one place to the other. So is a change
that would be below another heading, item or block than in the base (`surroundings`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from orchestrator.core.content import LineHunk
from orchestrator.core.text.lines import is_significant
from orchestrator.core.text.merge import Cluster, MergeConflict, regions_over
from orchestrator.core.text.merging.surroundings import strayed

STRAYED = "the block around the change has moved"

Lines = Sequence[str]
Reach = tuple[int, int]
"""From one cluster to another, by their places in the list; both count."""


def doubts(
    base: Lines,
    current: Lines,
    proposed: Lines,
    merged: Lines,
    found: Sequence[Cluster],
    conflicts: Iterable[int] = (),
) -> MergeConflict | None:
    """What is doubtful about a merged text, given the clusters that it came of; None where nothing is.

    Only lines count that say something. `conflicts` are clusters that git leaves to a person: where there is
    a doubt, they are among its regions. Cost: O(lines).
    """
    checks: tuple[tuple[str, Iterator[Reach]], ...] = (
        ("one side removed lines that the other moved", _lost(base, current, proposed, merged, found)),
        ("both sides added the same lines, at different places", _twice(base, current, proposed, merged, found)),
        (STRAYED, ((at, at) for at in strayed(base, current, proposed, found))),
    )
    for why, doubtful in checks:
        if reaches := list(doubtful):
            reaches += ((at, at) for at in conflicts)
            spans = ((found[first].region.base.start, found[last].region.base.end) for first, last in reaches)
            return MergeConflict(tuple(regions_over(spans, found)), why)
    return None


def removed_already(base: Lines, current: Lines, proposed: Lines) -> bool:
    """Whether the lines that the change base → proposed takes away, and that say something, are gone already.

    A line that others only indented otherwise is not gone.
    """
    had, has, keeps = map(_counted, (base, current, proposed))
    return not any(has[line] > keeps[line] for line in had - keeps if is_significant(line))


def _lost(base: Lines, current: Lines, proposed: Lines, merged: Lines, found: Sequence[Cluster]) -> Iterator[Reach]:
    """Where both sides took lines, and one of them alone has brought half of these, or more, again elsewhere."""
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


def _twice(base: Lines, current: Lines, proposed: Lines, merged: Lines, found: Sequence[Cluster]) -> Iterator[Reach]:
    """Where both sides brought a new line alike: with its neighbour, or as all that they inserted there."""
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
