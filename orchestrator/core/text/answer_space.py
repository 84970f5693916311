"""What is shown of a text: the part of an answer that a client passes on to its model, tokens, numbered lines."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

_ENCODER = msgspec.json.Encoder()

PER_TOKEN = 8
"""Units of `weight` in one token."""
MAX_LINE = 1_000
"""Characters of one line that are shown."""
MIN_LINE = 32
"""So many of them, however small the budget."""

NOTHING_BEYOND: Mapping[int, int] = {}

FRAME_BYTES, FRAME_LINES = 600, 8
"""Of an answer around what it shows: its head, the markers, how to go on."""


class AnswerSpace(msgspec.Struct, frozen=True):
    """Bytes of JSON text, as clients count them at most, and lines."""

    bytes: int = 1 << 40
    lines: int = 1 << 40
    typed: bool = False  # a text goes out as typed content, too; the client may count either

    def less(self, taken: int, lines: int = 0) -> AnswerSpace:
        """What is left when so many bytes and lines are taken."""
        return AnswerSpace(max(0, self.bytes - taken), max(0, self.lines - lines), self.typed)

    def framed(self, *texts: str) -> AnswerSpace:
        """What is left beside an answer's head, its way to go on, and these texts in them."""
        return self.less(FRAME_BYTES + sum(map(size, texts)), FRAME_LINES)

    def at_most(self, most_bytes: int) -> AnswerSpace:
        """No more of it than so many bytes."""
        return AnswerSpace(min(self.bytes, most_bytes), self.lines, self.typed)

    def cost(self, text: int, item: Any) -> int:
        """The bytes of an item, which takes so many as text."""
        return max(text, len(_ENCODER.encode(item)) + 1) if self.typed else text

    def holds(self, *texts: str) -> bool:
        """Whether these texts fit, one beside the other."""
        return sum(map(size, texts)) <= self.bytes and sum(text.count("\n") + 1 for text in texts) <= self.lines

    def first(self, costs: Iterable[tuple[int, int]], *, least: int = 1) -> int:
        """How many of these fit, from the first on, each with its bytes and its lines; `least` do where so many are."""
        taken = lines = count = 0
        for cost, rows in costs:
            taken, lines = taken + cost, lines + rows
            if count >= least and (taken > self.bytes or lines > self.lines):
                break
            count += 1
        return count


UNBOUNDED = AnswerSpace()

PROGRAM = AnswerSpace(bytes=16 * 1024 * 1024)
"""What a program is answered at most, on the socket; a model gets what its client passes on."""


def size(text: str) -> int:
    """The bytes of a text within JSON: some clients count it so, and none counts more."""
    return len(_ENCODER.encode(text)) - 2


def json_size(value: Any) -> int:
    """The bytes of a value as JSON within JSON, and of its comma."""
    return size(_ENCODER.encode(value).decode()) + 1


def weight(text: str) -> int:
    """The size of a text in eighths of a token; that of two texts is the sum of theirs.

    Two eighths for each character, and three more for each byte that its UTF-8 form has beyond
    the first: a quarter of a token for ASCII, 5/8 for an accented letter, one for a Chinese
    character, 11/8 for an emoji. Cost: one pass in C; ASCII is not even encoded.
    """
    chars = len(text)
    if text.isascii():
        return 2 * chars
    return 2 * chars + 3 * (len(text.encode("utf-8", "surrogatepass")) - chars)


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has: `weight` in whole tokens, rounded up.

    For English and for code within some 25 % of the common byte-pair vocabularies, which is
    enough to keep an answer inside a budget; it is not a bill.
    """
    return -(-weight(text) // PER_TOKEN)


def render(
    lines: Sequence[str],
    first: int,
    *,
    numbers: bool = True,
    max_line: int = MAX_LINE,
    beyond: Mapping[int, int] = NOTHING_BEYOND,
) -> tuple[str, tuple[int, ...]]:
    r"""Write lines out for a reader; `first` is the number of the first of them.

    Each line is ended by `\n`, and with `numbers` begins with its number, right-aligned in six
    columns, and a tab. Of a line over `max_line` characters the first `max_line` are shown, then
    how many were left out; `beyond`: by place in `lines`, how many it has that are not at hand.
    Returns the text and the numbers of the lines that were cut. Cost: O(characters shown).
    """
    cut: tuple[int, ...] = ()
    if beyond or max(map(len, lines), default=0) > max_line:
        cut = tuple(first + at for at, line in enumerate(lines) if len(line) > max_line or at in beyond)
        lines = [_cut(line, max_line, beyond.get(at, 0)) for at, line in enumerate(lines)]
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
    budget = max_tokens * PER_TOKEN
    overhead = 2 * (8 if numbers else 1)  # the number, the tab and the line's end, all ASCII
    if overhead * (end - start + 1) <= budget:  # it may all fit: weighed at once, that takes a tenth of the time
        wanted = lines[start - 1 : end]
        if max(map(len, wanted), default=0) <= max_line:
            whole = weight("".join(wanted)) + overhead * len(wanted)
            if whole <= budget:
                return max(end, start - 1)
    for number in range(start, end + 1):
        budget -= weight(_cut(lines[number - 1], max_line)) + overhead
        if budget < 0:
            return max(number - 1, start)
    return max(end, start - 1)


def narrowed(shown: Callable[[int], str], max_tokens: int, widest: int = MAX_LINE) -> int:
    """How many characters of a line fit the budget; `shown` writes the line out with that many of them.

    At most `widest`, at least MIN_LINE. Cost: `shown` once, or some ten times where the line does not fit.
    """
    budget = max_tokens * PER_TOKEN
    if weight(shown(widest)) <= budget:
        return widest
    return max(MIN_LINE, bisect_right(range(widest), budget, key=lambda count: weight(shown(count))) - 1)


def _cut(line: str, max_line: int, beyond: int = 0) -> str:
    more = max(0, len(line) - max_line) + beyond
    return line if more <= 0 else f"{line[:max_line]} … [{more} characters left out]"
