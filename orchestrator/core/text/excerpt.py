"""An excerpt for a model: numbered lines, limited in width and number."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.core.text import tokens

MAX_LINE = 1_000
"""Characters of one line that are shown."""


def render(
    lines: Sequence[str], first: int, *, numbers: bool = True, max_line: int = MAX_LINE
) -> tuple[str, tuple[int, ...]]:
    r"""Write lines out for a reader; `first` is the 1-based number of the first of them.

    Each line is ended by `\n`, and with `numbers` begins with its number, right-aligned in six
    columns, and a tab. Of a line over `max_line` characters the first `max_line` are shown, then
    how many were left out. Returns the text and the numbers of the lines that were cut.
    Cost: O(characters shown).
    """
    cut: tuple[int, ...] = ()
    if max(map(len, lines), default=0) > max_line:
        cut = tuple(number for number, line in enumerate(lines, first) if len(line) > max_line)
        lines = [_cut(line, max_line) for line in lines]
    if not numbers:
        return "".join([f"{line}\n" for line in lines]), cut
    return "".join([f"{number:>6}\t{line}\n" for number, line in enumerate(lines, first)]), cut


def fit(
    lines: Sequence[str],
    start: int,
    end: int,
    max_tokens: int,
    *,
    numbers: bool = True,
    max_line: int = MAX_LINE,
) -> int:
    """The last line that can be shown from `start` on, within `end` and the budget.

    `start` and `end` are 1-based and inclusive, `lines` the whole file; the budget counts the
    lines as `render` writes them. At least one line is shown, however long, so that a reader
    always gets on; the answer is `start - 1` only where there is no line at `start`.
    Cost: O(lines shown).
    """
    end = min(end, len(lines))
    budget = max_tokens * tokens.PER_TOKEN
    overhead = 2 * (8 if numbers else 1)  # the number, the tab and the line's end, all ASCII
    if overhead * (end - start + 1) <= budget:  # it may all fit: weighed at once, that takes a tenth of the time
        wanted = lines[start - 1 : end]
        if max(map(len, wanted), default=0) <= max_line:
            whole = tokens.weight("".join(wanted)) + overhead * len(wanted)
            if whole <= budget:
                return max(end, start - 1)
    for number in range(start, end + 1):
        budget -= tokens.weight(_cut(lines[number - 1], max_line)) + overhead
        if budget < 0:
            return max(number - 1, start)
    return max(end, start - 1)


def _cut(line: str, max_line: int) -> str:
    more = len(line) - max_line
    return line if more <= 0 else f"{line[:max_line]} … [{more} characters left out]"
