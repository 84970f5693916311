"""What is said of a text without showing it: long lines, what to search for, what changed in its symbols."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from orchestrator.core.text.answer_space import MAX_LINE
from orchestrator.core.text.symbols import Outline, Symbol

LONG_LINE = MAX_LINE
"""Characters; longer lines are cut in answers."""

MOST_NAMED = 10
"""Long lines that are named by number."""

MOST_HINTS = 8

_PATTERNS = (
    *("TODO", "FIXME", "XXX", "HACK", "deprecated", "ERROR", "WARN", "FATAL", "CRITICAL", "Traceback", "Exception"),
    *("panic", "def ", "class ", "function ", "func ", "fn ", "struct ", "interface "),
)
"""What is often looked for; the later ones say how much code a text without a grammar holds."""


class LongLines(msgspec.Struct, frozen=True):
    """Lines that answers cut: how many, the longest in characters, and the numbers of the first."""

    count: int
    longest: int
    lines: tuple[int, ...]


class TextFacts(msgspec.Struct, frozen=True):
    """What is the same for everybody who asks about a content."""

    long_lines: LongLines | None
    hints: tuple[tuple[str, int], ...]  # what stands in it, and how often


def facts_of(lines: Sequence[str]) -> TextFacts:
    """Cost: a pass over the text for each pattern, in C."""
    text = "\n".join(lines)
    counted = [(pattern, text.count(pattern)) for pattern in _PATTERNS]
    hints = tuple(item for item in counted if item[1])[:MOST_HINTS]
    if max(map(len, lines), default=0) <= LONG_LINE:
        return TextFacts(None, hints)
    long = {number: len(line) for number, line in enumerate(lines, 1) if len(line) > LONG_LINE}
    return TextFacts(LongLines(len(long), max(long.values()), tuple(long)[:MOST_NAMED]), hints)


class ChangedSymbol(msgspec.Struct, frozen=True):
    """A symbol whose own lines are others than before; `line`: where it is now, or was."""

    name: str
    kind: str
    change: str  # added, modified, removed
    line: int


class SymbolChanges(msgspec.Struct, frozen=True):
    """What became of the symbols of a text, in the order of their lines; the removed ones last."""

    symbols: tuple[ChangedSymbol, ...] = ()
    outside: bool = False  # lines that belong to no symbol changed, blank ones aside


def symbol_changes(old: Outline, old_lines: Sequence[str], new: Outline, new_lines: Sequence[str]) -> SymbolChanges:
    """Which symbols were added, modified and removed.

    A symbol is the same where its dotted name is, of several the first is the first. Lines of what it holds are
    not its own, nor are blank ones. Cost: O(lines).
    """
    before, after = dict(_own(old, old_lines)), dict(_own(new, new_lines))
    changed: list[ChangedSymbol] = []
    for (name, number), (symbol, text) in after.items():
        known = before.get((name, number))
        if known is None or known[1] != text:
            changed.append(ChangedSymbol(name, symbol.kind, "added" if known is None else "modified", symbol.line))
    removed = [
        ChangedSymbol(key[0], symbol.kind, "removed", symbol.line)
        for key, (symbol, _) in before.items()
        if key not in after
    ]
    outside = _without(old_lines, 1, len(old_lines), old.symbols) != _without(new_lines, 1, len(new_lines), new.symbols)
    return SymbolChanges((*changed, *removed), outside)


def _own(outline: Outline, lines: Sequence[str]) -> Iterator[tuple[tuple[str, int], tuple[Symbol, list[str]]]]:
    """By name, and number among those of its name, each symbol with its own lines."""
    seen: dict[str, int] = {}
    for name, symbol in outline.walk():
        seen[name] = number = seen.get(name, 0) + 1
        yield (name, number), (symbol, _without(lines, symbol.line, symbol.end_line, symbol.children))


def _without(lines: Sequence[str], first: int, last: int, children: Sequence[Symbol]) -> list[str]:
    """Of 1-based lines those that are not blank and that no child has all for itself."""
    own: list[str] = []
    at = first
    for child in children:
        if child.alone:
            own += lines[at - 1 : child.line - 1]
            at = max(at, child.end_line + 1)
    own += lines[at - 1 : last]
    return [line for line in own if line.strip()]


def count(symbols: Sequence[Symbol]) -> int:
    """All of them, with what they hold."""
    return sum(1 + count(symbol.children) for symbol in symbols)
