"""Indentation: the unit that a passage uses, and the passage at another depth or in another unit.

Lines that begin inside a string literal are never indented anew: their blanks are content.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

NEIGHBOURS = 100
"""Lines around a place from which the width of a level of indentation is read."""
TAB = 4
"""Columns that a tab counts beside blanks."""

_OPENER = re.compile(r'"""|\'\'\'|`|<<<?[-~]?[\'"]?[A-Za-z_]')
_PIECE = re.compile(
    r"""(?P<triple>\"\"\"|\'\'\')|(?:^|(?<=[\s(,\[]))<<<?[-~]?(?P<q>['"]?)(?P<word>[A-Za-z_]\w*)(?P=q)"""
    r"""|(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`{3,})|(?P<tick>`)"""
    r"""|(?P<comment>(?:^|(?<=\s))(?:#|//)(?=\s|$).*)""",
    re.DOTALL,
)
_HEADER = re.compile(r"\s*(?:(?:async\s+def|def|class)\b.*|\).*):\s*(?:#.*)?$")
_DOC = re.compile(r"\s*[rRuU]?(?:\"\"\"|\'\'\')")


class Uncertain(Exception):
    """What a change means at a place is not sure; the text says what is in the way."""


def indent_of(line: str) -> str:
    """The spaces and tabs that a line begins with."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def indents(lines: Iterable[str]) -> list[str]:
    """The indentations of the lines that are not blank."""
    return [indent_of(line) for line in lines if line.strip()]


def depth_of(line: str, tab: int = 1) -> int:
    """How far a line is indented, in columns; a tab counts so many."""
    return len(indent_of(line).expandtabs(tab))


def step_of(lines: Iterable[str]) -> str | None:
    """What one level of indentation is here: a tab, some spaces, or None where nothing is indented.

    The commonest growth from a line to the block below it; of equally common ones the smaller.
    """
    found = indents(lines)
    if any(indent.startswith("\t") for indent in found):
        return "\t"
    grown = Counter[int]()
    around: list[int] = []  # the widths of the blocks that a line is in
    for width in map(len, found):
        while around and around[-1] > width:
            around.pop()
        if around and around[-1] < width:
            grown[width - around[-1]] += 1
        if not around or around[-1] < width:
            around.append(width)
    if grown:
        return " " * max(grown, key=lambda width: (grown[width], -width))
    return min((indent for indent in found if indent), key=len, default=None)


class Rebasing:
    """Carries indentation from the way a passage is quoted to the way the file has it.

    Built from lines of the passage with the lines of the file that they represent. `quoted` and
    `present` are the texts from which a level is read, for lines deeper than any that is paired.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]], quoted: Iterable[str], present: Iterable[str]) -> None:
        self._pairs = [(indent_of(a), indent_of(b)) for a, b in pairs if a.strip() and b.strip()]
        known: dict[str, set[str]] = {}
        for here, there in self._pairs:
            known.setdefault(here, set()).add(there)
        self._known = {here: next(iter(there)) for here, there in known.items() if len(there) == 1}
        self.consistent = len(self._known) == len(known)
        self.changes = any(here != there for here, there in self._pairs)
        self._step = step_of(quoted)
        levels = pairwise(sorted(self._known, key=len))
        grown = {b.removeprefix(a): self._known[b].removeprefix(self._known[a]) for a, b in levels if b.startswith(a)}
        self._new_step = grown.get(self._step or "") or step_of(present)

    def indent(self, text: str) -> str:
        """The indentation of a line as the file would have it. Raises Uncertain."""
        return self._of(indent_of(text)) if self.changes else indent_of(text)

    def lines(self, texts: Sequence[str]) -> list[str]:
        """Lines that are together; what lies inside of their strings keeps its blanks. Raises Uncertain."""
        inside = inside_strings(texts) if self.changes else {}
        kept = {at for at, string in inside.items() if not string.doc}
        return [
            text if at in kept else self.indent(text) + text.lstrip(" \t") if text.strip() else text
            for at, text in enumerate(texts)
        ]

    def _of(self, indent: str) -> str:
        if indent in self._known:
            return self._known[indent]
        here = max((known for known in self._known if indent.startswith(known)), key=len, default=None)
        if here is not None:
            return self._known[here] + self._carried(indent[len(here) :])
        here = min(self._known, key=len, default="")
        less = self._carried(here[len(indent) :]) if here.startswith(indent) else ""
        if not less or not self._known[here].endswith(less):
            raise Uncertain("the indentation of a new line is uncertain")
        return self._known[here].removesuffix(less)

    def _carried(self, more: str) -> str:
        if self._step and self._new_step and self._step != self._new_step:
            if more.replace(self._step, ""):
                raise Uncertain("the indentation of a new line is uncertain, since it is indented by no whole levels")
            return restyled(more, self._step, self._new_step)
        if any(more.strip(character) for character in {*"".join(self._known.values())}):
            raise Uncertain("the indentation of a new line is uncertain, since the file uses another indentation")
        return more


def restyled(indent: str, step: str | None, new: str | None) -> str:
    """Levels of one style in the other's; blanks short of a level stay blanks."""
    if not step or not new or step == new:
        return indent
    levels, rest = 0, indent
    while rest.startswith(step):
        levels, rest = levels + 1, rest[len(step) :]
    return new * levels + rest


def fitted(content: Sequence[str], old: Sequence[str], near: Sequence[str], *, restyle: bool = True) -> list[str]:
    """Content that takes the place of lines, with the indentation of the first of these.

    It is shifted as a whole. With `restyle` its levels also become tabs where those lines, or else those `near`, are
    indented by tabs, and blanks where they are by blanks. What lies inside of a string keeps its own blanks, unless it
    lost them with its code: the old lines have it then, deeper by just the shift.
    """
    own, indent = indent_of(content[0]), indent_of(old[0])
    inside = {at for at, string in inside_strings(content).items() if not string.doc}
    step = step_of(line for at, line in enumerate(content) if at not in inside)
    new = step_of(old) or step_of(near)
    if not restyle or (step == "\t") == (new == "\t"):
        step = new = None
    known = set(old)
    strings = [content[at] for at in inside if content[at].strip()]
    shifted = any(f"{indent}{line}" in known for line in strings) and not any(line in known for line in strings)
    made: list[str] = []
    for at, line in enumerate(content):
        if (at in inside and not (shifted and own == "")) or not line.strip() or not line.startswith(own):
            made.append(line)
        elif at in inside:
            made.append(f"{indent}{line}")
        else:
            more = line[len(own) :]
            made.append(indent + restyled(indent_of(more), step, new) + more.lstrip(" \t"))
    return made


class Opened(NamedTuple):
    """A string in which a line begins: what closes it, and whether it is a Python docstring."""

    quote: str
    doc: bool


def inside_strings(lines: Sequence[str]) -> dict[int, Opened]:
    """The 0-based lines that begin inside of a triple-quoted string, a template string or a here-document.

    A Python docstring is marked as such: it is indented with its code, and its reader removes the indentation.
    A string that is never closed is none. Cost: O(characters) of lines that hold such a quote.
    """
    opened: Opened | None = None
    inside: dict[int, Opened] = {}
    pending: dict[int, Opened] = {}
    for at, line in enumerate(lines):
        if opened is None and not _OPENER.search(line):
            continue
        if opened is not None:
            pending[at] = opened
        before, (closed, quote) = opened, _through(line, opened.quote if opened else None)
        if closed:
            inside |= pending
            pending = {}
        if quote is None:
            opened = None
        elif closed or before is None:
            opened = Opened(quote, _DOC.match(line) is not None and _heads(lines, at))
            if quote.isidentifier() and quote not in map(str.strip, lines[at + 1 :]):
                opened = None  # a shift, or a stream
    return inside


def _through(line: str, opened: str | None) -> tuple[bool, str | None]:
    """One line on: whether it closes the string that was open, and what closes the one that is open at its end."""
    start, closed = 0, False
    if opened is not None:
        if opened.isidentifier():  # a here-document
            return (True, None) if line.strip() == opened else (False, opened)
        end = _end(line, opened, 0)
        if end is None:
            return False, opened
        start, closed = end, True
    here: str | None = None
    while (found := _PIECE.search(line, start)) is not None:
        start = found.end()
        quote = found["triple"] or found["tick"]
        if found["word"] is not None:
            here = here or found["word"]
        elif quote is not None:
            end = _end(line, quote, start)
            if end is None:
                return closed, quote
            start = end
    return closed, here


def _end(line: str, quote: str, start: int) -> int | None:
    """Where a string ends, behind its quote."""
    while (at := line.find(quote, start)) >= 0:
        slashes = len(line[:at]) - len(line[:at].rstrip("\\"))
        if slashes % 2 == 0:
            return at + len(quote)
        start = at + 1
    return None


def _heads(lines: Sequence[str], at: int) -> bool:
    """Whether the line above begins the body of a function or class."""
    above = next((line for line in reversed(lines[:at]) if line.strip()), None)
    return above is not None and _HEADER.match(above) is not None
