"""A shortest edit script of two sequences, and of several the one that git chooses.

E. Myers, "An O(ND) Difference Algorithm and Its Variations", 1986, section 4b: two searches, from
both corners, meet in the middle of a shortest path, which cuts the box in two. git's ties: each
search takes its diagonals from the highest down, and of two ways that come equally far, the one
whose last step passes a line of the old text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

MAX_COST = 256
"""Edits from each end of a box after which git begins to guess, and this gives the box up."""
MAX_STEPS = 400_000
"""Of all boxes together: more than one box and its halves can take, some tenths of a second."""
_STEPS = 8
_MOST_LEAP = 2048

Box = tuple[int, int, int, int]
"""Start and end in the one sequence, start and end in the other."""

Pair = tuple[list[int], list[int]]


def mark(
    a: list[int], b: list[int], removed: bytearray, added: bytearray, boxes: Iterable[Box] | None = None
) -> list[Box]:
    """Flag with 1, in `removed` and `added`, the items of `a` and `b` outside a longest common subsequence.

    Of several, git's. Given ascending `boxes`, of a subsequence that lies within these. Returns the boxes that
    it gave up, without flags: each would need more than `MAX_COST` edits from each end, or came when
    `MAX_STEPS` were taken. Cost: O(n + d²) for d flags.
    """
    size_a, size_b = len(a), len(b)
    back_a, back_b = a[::-1], b[::-1]  # a run that ends at a place begins there in the mirrored text
    todo = [(0, size_a, 0, size_b)] if boxes is None else list(boxes)
    given_up: list[Box] = []
    steps = 0
    while todo:
        i, i_end, j, j_end = todo.pop()
        length = run(a, i, i_end, b, j, j_end)
        i, j = i + length, j + length
        length = run(back_a, size_a - i_end, size_a - i, back_b, size_b - j_end, size_b - j)
        i_end, j_end = i_end - length, j_end - length
        if i == i_end:
            added[j:j_end] = b"\1" * (j_end - j)
        elif j == j_end:
            removed[i:i_end] = b"\1" * (i_end - i)
        else:
            meeting = _meet((a, b), (back_a, back_b), (i, i_end, j, j_end)) if steps < MAX_STEPS else None
            if meeting is None:
                given_up.append((i, i_end, j, j_end))
                steps += MAX_COST**2
            else:
                x, y, cost = meeting
                todo += (x, i_end, y, j_end), (i, x, j, y)
                steps += cost**2
    return given_up


def run(a: Sequence[object], x: int, x_end: int, b: Sequence[object], y: int, y_end: int) -> int:
    """How many pairs match from (x, y) on: one by one at first, then by growing leaps."""
    start, end = x, min(x_end, x + y_end - y)
    shift = y - x
    near = min(end, x + _STEPS)
    while x < near and a[x] == b[x + shift]:
        x += 1
    if x < near or x == end:
        return x - start
    leap, grow = _STEPS, True
    while leap:
        if x + leap <= end and a[x : x + leap] == b[x + shift : x + shift + leap]:
            x += leap
            leap = min(2 * leap, _MOST_LEAP) if grow else leap // 2
        else:
            leap, grow = leap // 2, False
    return x - start


def _meet(texts: Pair, mirrored: Pair, box: Box) -> tuple[int, int, int] | None:
    """Where a shortest path searched from both corners of a box meets, and at what cost; None beyond `MAX_COST`.

    Given are both sequences, and both mirrored.
    `ahead[k]` is how far the forward search has come on diagonal k = x - y, counted from its own
    first diagonal; `back[k]` likewise for the search from the far corner. Nothing in the box's
    first and last pair matches, and neither side is empty.
    """
    (a, b), (back_a, back_b), (i, i_end, j, j_end) = texts, mirrored, box
    size_a, size_b = len(a), len(b)
    low, high = i - j_end, i_end - j  # the box's outermost diagonals
    first, last = i - j, i_end - j_end
    odd = (first - last) % 2 == 1
    ahead = [-1] * (2 * MAX_COST + 5)
    back = [1 << 60] * (2 * MAX_COST + 5)
    to_ahead, to_back = MAX_COST + 2 - first, MAX_COST + 2 - last
    ahead[first + to_ahead], back[last + to_back] = i, i_end
    a_low = a_high = first
    b_low = b_high = last
    for cost in range(MAX_COST):
        a_low += -1 if a_low > low else 1
        a_high += 1 if a_high < high else -1
        for k in range(a_high, a_low - 1, -2):
            at = k + to_ahead
            x = ahead[at - 1] + 1 if ahead[at - 1] >= ahead[at + 1] else ahead[at + 1]
            if x < i_end and x - k < j_end and a[x] == b[x - k]:
                x += run(a, x, i_end, b, x - k, j_end)
            ahead[at] = x
            if odd and b_low <= k <= b_high and back[k + to_back] <= x:
                return x, x - k, cost
        b_low += -1 if b_low > low else 1
        b_high += 1 if b_high < high else -1
        for k in range(b_high, b_low - 1, -2):
            at = k + to_back
            x = back[at - 1] if back[at - 1] < back[at + 1] else back[at + 1] - 1
            if x > i and x - k > j and a[x - 1] == b[x - k - 1]:
                x -= run(back_a, size_a - x, size_a - i, back_b, size_b - x + k, size_b - j)
            back[at] = x
            if not odd and a_low <= k <= a_high and x <= ahead[k + to_ahead]:
                return x, x - k, cost
    return None
