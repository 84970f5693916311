"""The symbols that a change touches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from orchestrator.core.text.diff import Hunk
from orchestrator.core.text.symbols import Outline

OUTSIDE = ""
"""The name that stands for lines in no symbol."""


def symbols_touched(outline: Outline, hunks: Iterable[Hunk], *, new: bool = False) -> frozenset[str]:
    """The dotted names of the innermost symbols that the hunks' lines lie in; without what is outside of all.

    The outline is of the old text, or with `new` of the new one. An empty range lies in the symbols
    that hold both of its neighbours.
    """
    ranges = ((h.new_start, h.new_len) if new else (h.old_start, h.old_len) for h in hunks)
    return frozenset(name for start, length in ranges for name in names_in(outline, start, length)) - {OUTSIDE}


def names_in(outline: Outline, start: int, length: int, *, lines: Sequence[str] | None = None) -> Iterator[str]:
    """The dotted name of the innermost symbol of each line of a 0-based range, `OUTSIDE` included.

    Given the text's `lines`, blank ones outside of symbols are passed over.
    """
    if not length:
        yield name_between(outline, start)
    for line in range(start, start + length):
        name = _dotted(outline, line + 1)
        if name != OUTSIDE or lines is None or lines[line].strip():
            yield name


def name_between(outline: Outline, at: int) -> str:
    """The innermost symbol that holds both the 0-based line `at` and the one before it."""
    names = []
    for before, after in zip(outline.enclosing(at), outline.enclosing(at + 1), strict=False):
        if before is not after and before != after:
            break
        names.append(before.name)
    return ".".join(names)


def related(one: str, other: str) -> bool:
    """Whether two dotted names are the same symbol, or one holds the other."""
    return not one or not other or f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def _dotted(outline: Outline, line: int) -> str:
    return ".".join(symbol.name for symbol in outline.enclosing(line))
