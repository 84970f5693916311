"""Differences of lines, paired as git pairs them.

A merge agrees with git's only where both pair the same lines, so of several shortest edit
scripts this picks git's: lines that cannot or hardly match are set aside, `myers` pairs the
others, and changes are slid to where git shows them. Large texts are cut first, at runs of lines that
occur once in each. Beyond what `myers` may spend, where git guesses and Python is slow, rapidfuzz's
bit-parallel LCS finds a shortest script of its own; where even that is too much, all between two cuts
counts as changed.
Source: equal to git 2.39 on some 40,000 seeded merges; tests/core/text/test_merge.py keeps 160, `make soak` 4,000.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, compress, count, groupby, islice
from operator import add, lt, sub

from rapidfuzz.distance import Indel

from orchestrator.core.content import LineHunk
from orchestrator.core.text import myers

MIN_ANCHORED = 10_000
"""Lines a side beyond which runs of unique lines cut the texts first; below, `myers` chooses as git does."""
MIN_RUN = 8
"""Lines of such a run."""
MAX_EXACT = 200_000
"""Lines a side beyond which common lines are looked at like all others, whatever is around them."""
MAX_LINES = 20_000
"""Lines a side that rapidfuzz is given at once: its matrix is a bit for each pair, 50 MB."""
_WINDOW = 100
"""How far a common line looks about for lines without partner, as in git."""
_NOT = bytes([1]) + bytes(255)
_CHANGED = re.compile(rb"\x01+")
_BETWEEN_ABSENT = re.compile(rb"\x00[\x00\x02]*\x00")

Groups = list[tuple[int, int]]
"""The changed lines of one text: (unchanged lines before the run, length of the run), ascending."""


def diff(a: Sequence[str], b: Sequence[str]) -> list[LineHunk]:
    """The changes from `a` to `b`, ascending, with at least one common line between two hunks.

    Lines are compared as given: a caller to whom line endings matter passes them along. The
    hunks are git's (`git diff --no-indent-heuristic`). Cost: as of `align`.
    """
    removed, added = map(dict, align(a, b))
    hunks: list[LineHunk] = []
    minus = plus = 0
    for gap in sorted({*removed, *added}):
        old_len, new_len = removed.get(gap, 0), added.get(gap, 0)
        hunks.append(LineHunk(gap + minus, old_len, gap + plus, new_len))
        minus, plus = minus + old_len, plus + new_len
    return hunks


def counts(hunks: Sequence[LineHunk]) -> tuple[int, int]:
    """How many lines the hunks add, and how many they remove."""
    return sum(hunk.new_len for hunk in hunks), sum(hunk.old_len for hunk in hunks)


def align(a: Sequence[str], b: Sequence[str]) -> tuple[Groups, Groups]:
    """The runs of lines that `a` has and `b` lacks, and the reverse.

    Taking these out of both leaves equal texts. Cost: O(n log n) at most for what is common and
    unique, O(d²) for d edits in a place up to `myers.MAX_STEPS` of all, and O(n²/64) for the n lines
    of a place beyond, up to `MAX_LINES`.
    """
    a, b = list(a), list(b)
    head = myers.run(a, 0, len(a), b, 0, len(b))
    back_a, back_b = a[: head - len(a) - 1 : -1], b[: head - len(b) - 1 : -1]  # what follows, from the end
    tail = myers.run(back_a, 0, len(back_a), back_b, 0, len(back_b))
    len_a, len_b = len(a) - head - tail, len(b) - head - tail
    if not len_a or not len_b:
        removed, added = bytearray(b"\1") * len_a, bytearray(b"\1") * len_b
    else:
        removed, added = _changed(a, b, head, tail)
    groups_a, groups_b = _groups(removed, head), _groups(added, head)
    groups_a = _slid(a, groups_a, {gap for gap, _ in groups_b})
    return groups_a, _slid(b, groups_b, {gap for gap, _ in groups_a})


def _changed(a: list[str], b: list[str], head: int, tail: int) -> tuple[bytearray, bytearray]:
    """For each line between head and tail: 1 if it has no partner."""
    lines_a, lines_b = a[head : len(a) - tail], b[head : len(b) - tail]
    code = dict(zip(dict.fromkeys(chain(lines_a, lines_b)), count(), strict=False))
    mid_a, mid_b = list(map(code.__getitem__, lines_a)), list(map(code.__getitem__, lines_b))
    in_a, in_b = Counter(mid_a), Counter(mid_b)
    edges = Counter(map(code.__getitem__, filter(code.__contains__, chain(a[:head], a[len(a) - tail :]))))
    if edges:  # they count as well
        in_a, in_b = in_a + edges, in_b + edges
    if max(len(mid_a), len(mid_b)) > MAX_EXACT:
        kept_a, kept_b = bytes(map(in_b.__contains__, mid_a)), bytes(map(in_a.__contains__, mid_b))
    else:
        kept_a, kept_b = _kept(mid_a, in_b, _many(len(a))), _kept(mid_b, in_a, _many(len(b)))
    ids_a, ids_b = list(compress(mid_a, kept_a)), list(compress(mid_b, kept_b))
    lost, new = bytearray(len(ids_a)), bytearray(len(ids_b))
    boxes = None
    if max(len(ids_a), len(ids_b)) > MIN_ANCHORED:
        once = {line for line, n in in_a.items() if n == 1 == in_b[line]}
        boxes = list(_boxes(ids_a, ids_b, once))
    for i, i_end, j, j_end in myers.mark(ids_a, ids_b, lost, new, boxes):
        lost[i:i_end], new[j:j_end] = b"\1" * (i_end - i), b"\1" * (j_end - j)
        if i_end - i <= MAX_LINES and j_end - j <= MAX_LINES:
            for op in Indel.opcodes(ids_a[i:i_end], ids_b[j:j_end]):
                if op.tag == "equal":
                    length = op.src_end - op.src_start
                    lost[i + op.src_start : i + op.src_end] = new[j + op.dest_start : j + op.dest_end] = bytes(length)
    return _spread(lost, kept_a), _spread(new, kept_b)


def _spread(flags: bytearray, kept: bytes) -> bytearray:
    """The flags of the kept lines in the places of all; the others are flagged."""
    if 0 not in kept:
        return flags
    spread = bytearray(kept).translate(_NOT)
    for at in compress(compress(count(), kept), flags):
        spread[at] = 1
    return spread


# --- lines that need not be looked at --------------------------------------------------


def _many(lines: int) -> int:
    """How often a line must be in the other text to be called common: about √lines."""
    return min(1 << (lines.bit_length() + 1) // 2, 1024)


def _kept(lines: list[int], others: Counter[int], many: int) -> bytes:
    """1 for each line worth pairing: one that the other text has, but for common ones in a changed run."""
    present = bytes(map(others.__contains__, lines))
    if 0 not in present:
        return present
    common = {line for line, n in others.items() if n >= many}
    kinds = bytes(map(add, present, map(common.__contains__, lines)))  # 0 absent, 1 rare, 2 common
    kept = bytearray(present)
    for run in _BETWEEN_ABSENT.finditer(kinds):
        for at in range(*run.span()):
            kept[at] = kept[at] and not _drowned(kinds, at)
    return bytes(kept)


def _drowned(kinds: bytes, at: int) -> bool:
    """A common line between lines without partner, which outnumber the common ones 3 to 1."""
    absent = common = 0
    for side in (kinds[max(at - _WINDOW, 0) : at][::-1], kinds[at + 1 : at + _WINDOW + 1]):
        unique = side.find(1)
        run = side if unique < 0 else side[:unique]
        if 0 not in run:
            return False
        absent += run.count(0)
        common += run.count(2) + 1
    return 3 * common < absent


# --- large texts -----------------------------------------------------------------------


def _boxes(a: list[int], b: list[int], once: set[int]) -> Iterator[myers.Box]:
    """The texts cut at both ends of each long run of lines that occur `once` in each, equally far apart (patience)."""
    at_a = list(compress(count(), map(once.__contains__, a)))
    place = dict(zip(b, count(), strict=False))
    at_b = [place[a[i]] for i in at_a]
    if not all(map(lt, at_b, islice(at_b, 1, None))):
        longest = _ascending(at_b)
        at_a, at_b = [at_a[n] for n in longest], [at_b[n] for n in longest]
    i = j = n = 0
    for _, run in groupby(map(sub, at_b, at_a)):
        first, n = n, n + len(list(run))
        if n - first >= MIN_RUN:
            for x, y in ((at_a[first], at_b[first]), (at_a[n - 1] + 1, at_b[n - 1] + 1)):
                yield i, x, j, y
                i, j = x, y
    yield i, len(a), j, len(b)


def _ascending(numbers: list[int]) -> list[int]:
    """The places of a longest ascending subsequence."""
    tops: list[int] = []  # the least last number of a chain of each length
    ends: list[int] = []  # the place of that number
    previous: list[int] = []
    for at, number in enumerate(numbers):
        length = bisect_left(tops, number)
        tops[length : length + 1], ends[length : length + 1] = [number], [at]
        previous.append(ends[length - 1] if length else -1)
    chain: list[int] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chain.append(at)
        at = previous[at]
    return chain[::-1]


# --- where a change is shown -----------------------------------------------------------


def _groups(flags: bytearray, head: int) -> Groups:
    groups: Groups = []
    gap = head  # less the changed lines before it
    for run in _CHANGED.finditer(flags):
        groups.append((gap + run.start(), len(run[0])))
        gap -= len(run[0])
    return groups


def _slid(lines: list[str], groups: Groups, others: set[int]) -> Groups:
    """Slide each run as far down as equal lines let it, or to the last of the `others`, the other text's gaps."""
    done: Groups = []
    before = 0  # lines in `done`
    todo = groups[::-1]
    while todo:
        gap, size = todo.pop()
        while True:
            length, partner = size, None
            while (start := gap + before) > 0 and lines[start - 1] == lines[start + size - 1]:
                gap -= 1
                if done and done[-1][0] == gap:
                    size += done[-1][1]
                    before -= done.pop()[1]
            highest = gap
            if gap in others:
                partner = gap
            while (start := gap + before) + size < len(lines) and lines[start] == lines[start + size]:
                gap += 1
                if todo and todo[-1][0] == gap:
                    size += todo.pop()[1]
                if gap in others:
                    partner = gap
            if size == length:
                break
        if gap != highest and partner is not None:
            gap = partner
        done.append((gap, size))
        before += size
    return done
