"""The outline of a text without a grammar, by headings or indentation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from orchestrator.core.text.outline.nesting import DEEPEST, MOST_SYMBOLS, NAME_CHARS
from orchestrator.core.text.symbols import Outline, Symbol

_HEADING = re.compile(r"(#{1,6})[ \t]+(\S.*)")
_SECTION = re.compile(r"\[{1,2}([^\[\]]+)\]{1,2}[ \t]*$")
_RULES = {"=": 1, "-": 2}
_DEFINES = re.compile(
    r"(?:\w+[ \t]+){0,4}?\b(class|struct|interface|enum|trait|impl|protocol|module|namespace|object|package|"
    r"def|func|function|fun|fn|sub|proc|procedure|macro)[ \t]+([A-Za-z_$][\w$.:]*)"
)
_KINDS = dict.fromkeys(("def", "func", "function", "fun", "fn", "sub", "proc", "procedure", "macro"), "function")
_CLOSERS = re.compile(r"(?:[\]})]+|end|fi|done|esac)[;,.]?[ \t]*$")
_COMPARED_CHARS = 400


class _Open:
    """A block whose end has not come yet; `depth` is its indentation, or its heading's level."""

    def __init__(self, depth: int, name: str, kind: str, line: int) -> None:
        self.depth, self.name, self.kind, self.line = depth, name, kind, line
        self.children: list[Symbol] = []


def plain_outline(lines: Sequence[str]) -> Outline:
    """What a text shows of its build without being parsed.

    Lines that define something by their looks (`def f`, `class A`) with what is indented under them; else
    headings with what stands under each; else every line with what is indented under it.
    Headings are `# …`, underlined lines and `[sections]`. A line that closes a block (`}`, `end`) at the
    depth of the line that opened it belongs to it. Cost: O(characters), 400 of a line.
    """
    symbols = _by_indentation(lines)
    if all(symbol.kind == "block" for symbol in symbols) and (headings := list(_headings(lines))):
        symbols = _under_headings(headings, lines)
    return Outline("text", symbols, parsed=False)


def _headings(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """(line, level, title) of each, 0-based."""
    fenced = False
    for at, line in enumerate(lines):
        short = line[:_COMPARED_CHARS]
        if short.startswith(("```", "~~~")):
            fenced = not fenced
        if fenced or not short or short[0].isspace():
            continue
        if (found := _HEADING.match(short)) is not None:
            yield at, len(found[1]), found[2].rstrip(" #")
        elif (found := _SECTION.match(short)) is not None:
            yield at, 1, found[1].strip()
        elif at + 1 < len(lines) and (level := _underline(lines[at + 1])) and short[0].isalnum():
            yield at, level, short.strip()


def _underline(line: str) -> int:
    rule = line[:_COMPARED_CHARS].rstrip()
    return _RULES.get(rule[0], 0) if len(rule) > 2 and not rule.strip(rule[0]) else 0


def _under_headings(headings: list[tuple[int, int, str]], lines: Sequence[str]) -> tuple[Symbol, ...]:
    stack: list[_Open] = [_Open(0, "", "", 0)]
    for at, level, title in headings[:MOST_SYMBOLS]:
        while stack[-1].depth >= level:
            _close(stack, _last_written(lines, at))
        stack.append(_Open(level, title[:NAME_CHARS], "heading", at))
    while len(stack) > 1:
        _close(stack, _last_written(lines, len(lines)))
    return tuple(stack[0].children)


def _last_written(lines: Sequence[str], before: int) -> int:
    """The last line before this one that is not blank, 0-based."""
    at = before - 1
    while at > 0 and not lines[at][:_COMPARED_CHARS].strip():
        at -= 1
    return at


def _by_indentation(lines: Sequence[str]) -> tuple[Symbol, ...]:
    stack: list[_Open] = [_Open(-1, "", "", 0)]
    held: tuple[int, int, str] | None = None  # the written line before, its depth and text
    kept = 0
    for at, line in enumerate(lines):
        short = line[:_COMPARED_CHARS].expandtabs(4)
        text = short.strip()
        if not text:
            continue
        depth = len(short) - len(short.lstrip())
        if held is not None and depth > held[1] and kept < MOST_SYMBOLS and len(stack) <= DEEPEST:
            stack.append(_opened(*held))
            kept += 1
        ended = held[0] if held is not None else 0
        while stack[-1].depth >= depth:
            closes = stack[-1].depth == depth and _CLOSERS.match(text)
            _close(stack, at if closes else ended)
        held = at, depth, text
    while len(stack) > 1:
        _close(stack, held[0] if held is not None else 0)
    return tuple(stack[0].children)


def _opened(at: int, depth: int, text: str) -> _Open:
    found = _DEFINES.match(text)
    if found is None:
        return _Open(depth, text[:NAME_CHARS], "block", at)
    return _Open(depth, found[2].rstrip(".:"), _KINDS.get(found[1], found[1]), at)


def _close(stack: list[_Open], last: int) -> None:
    done = stack.pop()
    stack[-1].children.append(
        Symbol(done.name, done.kind, done.line + 1, max(last, done.line) + 1, tuple(done.children))
    )
