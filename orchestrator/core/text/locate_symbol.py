"""Replaces a symbol: the lines it has now, and the indentation of its new content."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec
from rapidfuzz import fuzz, process

from orchestrator.core.errors import ParameterInvalid, SymbolAmbiguous, SymbolExists, SymbolNotFound, shown_lines
from orchestrator.core.text.encoding import Document, Edit, edits_between
from orchestrator.core.text.indent import NEIGHBOURS, depth_of, fitted, indent_of, inside_strings
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


def locate_symbol(document: Document, outline: Outline | None, change: SymbolChange, *, index: int = 0) -> list[Edit]:
    """The edits that replace exactly the symbol's lines, decorators and the comments right above included.

    The content is indented as `fitted` does it, and keeps the `,` or `;` that follows it.
    An empty content removes the symbol. Raises SymbolNotFound (`details`: `change`, 0-based, `nearest` with name,
    line, end_line and score), SymbolAmbiguous (`details`: `change`, `lines`), SymbolExists (`change`,
    `symbol`) where the content defines what is beside it, and ParameterInvalid where other code shares its lines.
    """
    if outline is None or not outline.parsed:
        raise SymbolNotFound(
            f"change {index + 1}: the file could not be parsed, so its symbols are not known.",
            hint="Send {search, replace} instead.",
            details={"change": index},
        )
    found = find_symbols(outline, change.symbol)
    if not found:
        nearest = _nearest(outline, change.symbol)
        meant = f" Nearest: {', '.join(str(one['name']) for one in nearest)}." if nearest else ""
        raise SymbolNotFound(
            f"change {index + 1}: the file has no symbol {change.symbol!r}.{meant}",
            hint=None if nearest else "Nothing in it is called like that. Read the file, or send {search, replace}.",
            details={"change": index, "nearest": nearest},
        )
    if len(found) > 1:
        lines = [symbol.line for _, symbol in found]
        raise SymbolAmbiguous(
            f"change {index + 1}: {len(found)} symbols are called {change.symbol!r}: lines {shown_lines(lines)}.",
            details={"change": index, "lines": lines, "symbols": [dotted for dotted, _ in found]},
        )
    dotted, symbol = found[0]
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
        if (name := defined_beside(new, document.lines, symbol, outline.symbols)) is not None:
            raise SymbolExists(
                f"change {index + 1}: the new content of {dotted!r} defines {name!r}, which is elsewhere in the file.",
                details={"change": index, "symbol": name},
            )
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
    known = list(outline.walk())
    scores: dict[int, float] = {}
    for wanted, names in (
        (name, [dotted for dotted, _ in known]),
        (name.rpartition(".")[2], [symbol.name for _, symbol in known]),
    ):
        likest = process.extract(wanted, names, scorer=fuzz.ratio, score_cutoff=_LEAST, limit=MOST_NAMES)
        for _, score, at in likest:
            scores[at] = max(score, scores.get(at, 0.0))
    return [
        {"name": known[at][0], "line": known[at][1].line, "end_line": known[at][1].end_line, "score": score / 100}
        for at, score in sorted(scores.items(), key=lambda item: (-round(item[1], 1), item[0]))[:MOST_NAMES]
    ]


_COMMENT = re.compile(r"\s*(?:#|//[/!]?|--|/\*\*?|\*|<!--)(?:\s|\Z)")
_LAST_WORD = re.compile(r"(\w+)[\s*&]*$")


def defined_beside(
    content: Sequence[str], lines: Sequence[str], symbol: Symbol, symbols: Sequence[Symbol]
) -> str | None:
    """The name that the content of `symbol` defines although one beside it has it; None for none.

    Only the content's own depth counts, and no parser is asked: a line defines a name if it is written as the other's
    definition is (`def b`, `"b":`, `.b {`), or as a function with a body. `lines`, `symbols`: of the whole file.
    """
    beside = next((some for some in _levels(symbols) if any(one is symbol for one in some)), ())
    inside = inside_strings(content)
    own = indent_of(content[0])
    heads = [line.strip() for at, line in enumerate(content) if at not in inside and indent_of(line) == own]
    heads = [head for head in heads if not _COMMENT.match(head)]
    for other in beside:
        if other.name == symbol.name or other.kind == "impl":
            continue
        written = _written(other, lines)
        if written is not None and any(written.search(head) for head in heads):
            return other.name
    return None


def _levels(symbols: Sequence[Symbol]) -> Iterator[Sequence[Symbol]]:
    yield symbols
    for symbol in symbols:
        yield from _levels(symbol.children)


def _written(symbol: Symbol, lines: Sequence[str]) -> re.Pattern[str] | None:
    """What a line looks like that defines a symbol of that name; None where the name can't be found in its lines."""
    name = rf"(?<![\w-]){re.escape(symbol.name)}(?![\w-])"
    for line in lines[symbol.line - 1 : symbol.end_line]:
        if _COMMENT.match(line) or line.lstrip().startswith(("@", "#[", "[[")):
            continue
        found = re.search(name, line)
        if found is None:
            continue
        before, after = line[: found.start()].strip(), line[found.end() :].lstrip()[:1]
        word = _LAST_WORD.search(before)
        if word is None:
            return re.compile(rf"^{re.escape(before)}\s*{name}\s*{re.escape(after)}")
        ways = rf"(?:^|[\s*&]){word[1]}[\s*&]+{name}"
        return re.compile(rf"{ways}|^[\w<>\[\]*&:,\s]+[\s*&]{name}\s*\(.*\{{$" if after == "(" else ways)
    return None
