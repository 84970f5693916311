"""Checks that the new content of one symbol does not define a neighbouring symbol again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from orchestrator.core.text.indent import indent_of
from orchestrator.core.text.literals import inside_strings
from orchestrator.core.text.symbols import Symbol

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
