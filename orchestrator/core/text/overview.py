"""What is said of a text: long lines, what to search for, what changed in its symbols; and the lines that say most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import nlargest

import msgspec

from orchestrator.core.content import LineRange
from orchestrator.core.text.answer_space import MAX_LINE
from orchestrator.core.text.symbols import CODE, Outline, Symbol

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

MOST_HEAD = 12
"""Lines of the leading documentation; where there is none, the first lines that are not blank."""

MOST_DEFINITIONS = 400

_COMMENTS = ("#", "//", "/*", "*", "--", ";", "%", "<!--", '"""', "'''")
_DOCSTRINGS = ('"""', "'''", 'r"""')


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


# --- the lines that say most ---------------------------------------------------------------


class Definition(msgspec.Struct, frozen=True):
    """A symbol as it is announced: by the line on which its name stands."""

    name: str  # dotted
    kind: str
    line: int
    end_line: int
    at: int  # the line that is shown


class KeyLines(msgspec.Struct, frozen=True):
    """What is the same for everybody who asks about a content; definitions: the most telling one first."""

    head: LineRange
    definitions: tuple[Definition, ...]
    symbols: int


def key_lines(outline: Outline, lines: Sequence[str]) -> KeyLines:
    """Cost: O(lines of the head + symbols)."""
    named = list(outline.walk())
    ranked = nlargest(MOST_DEFINITIONS, enumerate(named), key=lambda item: (*_rank(*item[1]), -item[0]))
    definitions = (
        Definition(name, symbol.kind, symbol.line, symbol.end_line, _announced(symbol, lines))
        for _, (name, symbol) in ranked
    )
    return KeyLines(_head(lines), tuple(definitions), len(named))


def _rank(name: str, symbol: Symbol) -> tuple[int, int, int]:
    """Outer before inner, code and public names before others, then the longer one."""
    last = name.rpartition(".")[2]
    private = last.startswith(("_", "test"))
    return -name.count("."), (symbol.kind in CODE) - private, symbol.end_line - symbol.line


def _announced(symbol: Symbol, lines: Sequence[str]) -> int:
    """The first of its lines that holds its name: decorators and comments belong to it, too."""
    for number in range(symbol.line, min(symbol.end_line, len(lines)) + 1):
        if symbol.name in lines[number - 1] and not lines[number - 1].lstrip().startswith(_COMMENTS[:5]):
            return number
    return symbol.line


def _head(lines: Sequence[str]) -> LineRange:
    """The leading comment or docstring; else the first paragraph."""
    first = next((n for n, line in enumerate(lines, 1) if line.strip() and not line.startswith("#!")), 0)
    if not first:
        return LineRange(1, 0)
    text = lines[first - 1].strip()
    most = min(len(lines), first + MOST_HEAD - 1)
    if quote := next((one for one in _DOCSTRINGS if text.startswith(one)), None):
        mark = quote[-3:]
        if text.count(mark) > 1:
            return LineRange(first, first)
        ends = (n for n in range(first + 1, most + 1) if mark in lines[n - 1])
        return LineRange(first, next(ends, most))
    comment = text.startswith(_COMMENTS)
    last = first
    while last < most and (following := lines[last].strip()) and following.startswith(_COMMENTS) == comment:
        last += 1
    return LineRange(first, last)
