"""Replaces a symbol: the lines it has now, and the indentation of its new content."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import nlargest

import msgspec
from rapidfuzz import fuzz

from orchestrator.core.errors import MOST_PLACES, ParameterInvalid, SymbolAmbiguous, SymbolNotFound, shown_lines
from orchestrator.core.text.edits import Edit, edits_between
from orchestrator.core.text.encoding import Document
from orchestrator.core.text.indent import NEIGHBOURS, depth_of, fitted
from orchestrator.core.text.lines import plain, split
from orchestrator.core.text.symbols import Outline, Symbol

MOST_NAMES = 5
UNINDENTED = frozenset({"markdown", "text"})
"""Languages in which the blanks of one block say nothing of another's."""
COMMENTS = {"toml": "#", "yaml": "#", "markdown": "<!--"}
_LEAST = 50.0


class SymbolChange(msgspec.Struct, frozen=True):
    """What shall be in the place of a symbol: `Class.method`, or `method` where one alone has that name."""

    symbol: str
    content: str


def find_symbols(outline: Outline, name: str) -> list[tuple[str, Symbol]]:
    """The symbols that a name means, with their dotted names.

    Those called exactly so; else those whose last parts are. An implementation (`impl`) gives way to the
    type of its name.
    """
    known = list(outline.walk())
    found = [(dotted, symbol) for dotted, symbol in known if dotted == name]
    found = found or [(dotted, symbol) for dotted, symbol in known if dotted.endswith(f".{name}")]
    return [item for item in found if item[1].kind != "impl"] or found


def only_symbol(
    outline: Outline, name: str, *, prefix: str = "", details: Mapping[str, object] | None = None
) -> tuple[str, Symbol]:
    """The one symbol of a name, with its dotted name.

    Raises SymbolNotFound (`details`: `nearest` with name, line, end_line and score) and SymbolAmbiguous (`details`:
    `lines`, `symbols`).
    """
    found = find_symbols(outline, name)
    if not found:
        nearest = _nearest(outline, name)
        meant = f" Nearest: {', '.join(str(one['name']) for one in nearest)}." if nearest else ""
        raise SymbolNotFound(
            f"{prefix}the file has no symbol {name!r}.{meant}",
            hint=None if nearest else "Nothing is called like that. Read it; in an edit, {search, replace} will do.",
            details={**(details or {}), "nearest": nearest},
        )
    if len(found) > 1:
        lines = [symbol.line for _, symbol in found]
        raise SymbolAmbiguous(
            f"{prefix}{len(found)} symbols are called {name!r}: lines {shown_lines(lines)}.",
            details={
                **(details or {}),
                "lines": lines[:MOST_PLACES],
                "symbols": [dotted for dotted, _ in found[:MOST_PLACES]],
            },
        )
    return found[0]


def locate_symbol(document: Document, outline: Outline | None, change: SymbolChange, *, index: int = 0) -> list[Edit]:
    """The edits that replace exactly the symbol's lines, decorators and the comments right above included.

    The content is indented as `fitted` does it, and keeps the `,` or `;` that follows it.
    An empty content removes the symbol. Raises SymbolNotFound (`details`: `change`, 0-based, `nearest` with name,
    line, end_line and score), SymbolAmbiguous (`details`: `change`, `lines`), and ParameterInvalid where other code
    shares its lines.
    """
    if outline is None or not outline.parsed:
        raise SymbolNotFound(
            f"change {index + 1}: the file could not be parsed, so its symbols are not known.",
            hint="Send {search, replace} instead.",
            details={"change": index},
        )
    dotted, symbol = only_symbol(outline, change.symbol, prefix=f"change {index + 1}: ", details={"change": index})
    if not symbol.alone:
        raise ParameterInvalid(
            "symbol", f"{dotted} shares line {symbol.line} with other code", hint="Send {search, replace} instead."
        )
    new = _bare(split(plain(change.content))[0])
    stop = _own_end(document, symbol, outline.language)
    if new:
        old = document.lines[symbol.line - 1 : stop]
        near = document.lines[max(0, symbol.line - 1 - NEIGHBOURS) : symbol.end_line + NEIGHBOURS]
        new = fitted(new, old, near, restyle=outline.language not in UNINDENTED)
    if symbol.tail and new and not new[-1].rstrip().endswith(symbol.tail):
        new[-1] = new[-1].rstrip() + symbol.tail
    final = document.final_newline if stop == document.line_count else True
    return edits_between(document, new, final, start=symbol.line - 1, stop=stop)


def _own_end(document: Document, symbol: Symbol, language: str) -> int:
    """The last line of its own, 1-based: in `COMMENTS` a section reaches to the next, with what belongs to that."""
    stop, mark = symbol.end_line, COMMENTS.get(language)
    if mark is None or stop >= document.line_count:
        return stop
    depth = depth_of(document.lines[symbol.line - 1])
    while stop > symbol.line:
        last = document.lines[stop - 1]
        if last.strip() and not (last.lstrip().startswith(mark) and depth_of(last) <= depth):
            break
        stop -= 1
    return stop


def _bare(lines: list[str]) -> list[str]:
    """The lines without blank ones at both ends."""
    while lines and not lines[0].strip():
        del lines[0]
    while lines and not lines[-1].strip():
        del lines[-1]
    return lines


def _nearest(outline: Outline, name: str) -> list[dict[str, object]]:
    """The symbols whose names are likest, in full or by their last parts, best first."""
    last = name.rpartition(".")[2]
    known = ((max(fuzz.ratio(name, dotted), fuzz.ratio(last, one.name)), dotted, one) for dotted, one in outline.walk())
    likest = nlargest(MOST_NAMES, (item for item in known if item[0] >= _LEAST), key=lambda item: round(item[0], 1))
    return [
        {"name": dotted, "line": one.line, "end_line": one.end_line, "score": score / 100}
        for score, dotted, one in likest
    ]
