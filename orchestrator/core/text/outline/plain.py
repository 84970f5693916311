"""The outline of a text without a grammar, by headings or indentation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from orchestrator.core.text.outline.nesting import NAME_CHARS, Definition, nested
from orchestrator.core.text.symbols import Outline

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


def plain_outline(lines: Sequence[str]) -> Outline:
    """What a text shows of its build without being parsed.

    Lines that define something by their looks (`def f`, `class A`) with what is indented under them; else
    headings with what is under each; else every line with what is indented under it.
    Headings are `# …`, underlined lines and `[sections]`. A line that closes a block (`}`, `end`) at the
    depth of the line that opened it belongs to it. Cost: O(characters), 400 of a line.
    """
    symbols = nested(_by_indentation(lines), len(lines))
    if all(symbol.kind == "block" for symbol in symbols) and (headings := list(_headings(lines))):
        symbols = nested(_under_headings(headings, lines), len(lines))
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


def _under_headings(headings: Sequence[tuple[int, int, str]], lines: Sequence[str]) -> Iterator[Definition]:
    for number, (at, level, title) in enumerate(headings):
        later = (headings[n] for n in range(number + 1, len(headings)))
        following = next((other for other, its_level, _ in later if its_level <= level), len(lines))
        yield _definition(at, title, "heading", _last_written(lines, following))


def _last_written(lines: Sequence[str], before: int) -> int:
    """The last line before this one that is not blank, 0-based."""
    at = before - 1
    while at > 0 and not lines[at][:_COMPARED_CHARS].strip():
        at -= 1
    return at


def _by_indentation(lines: Sequence[str]) -> Iterator[Definition]:
    opened: list[tuple[int, int, str]] = []  # the lines of the blocks around, with depth and text
    held: tuple[int, int, str] | None = None  # the written line before
    for at, line in enumerate(lines):
        short = line[:_COMPARED_CHARS].expandtabs(4)
        text = short.strip()
        if not text:
            continue
        depth = len(short) - len(short.lstrip())
        if held is not None and depth > held[1]:
            opened.append(held)
        while opened and opened[-1][1] >= depth:
            closes = opened[-1][1] == depth and _CLOSERS.match(text)
            yield _block(opened.pop(), at if closes or held is None else held[0])
        held = at, depth, text
    while opened and held is not None:
        yield _block(opened.pop(), held[0])


def _block(opened: tuple[int, int, str], last: int) -> Definition:
    at, _, text = opened
    found = _DEFINES.match(text)
    if found is None:
        return _definition(at, text, "block", last)
    return _definition(at, found[2].rstrip(".:"), _KINDS.get(found[1], found[1]), last)


def _definition(at: int, name: str, kind: str, last: int) -> Definition:
    """0-based lines, both included."""
    return Definition(at, last + 1, name[:NAME_CHARS], kind, at + 1, last + 1)
