"""The outline of a text: from its syntax tree, or without a grammar by headings or indentation.

The queries name what they find: `@definition.KIND` the whole definition, `@name` its name, `@scope` what
the name belongs to where the text says so elsewhere (`func (s *Server) Start`), and `@above` comments
and attributes, which belong to the definition right below them. An `@import` takes `@imported` names of a
`@source`, or a `@module` of its own.
"""

from __future__ import annotations

import re
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from orchestrator.core.text.symbols import Import, Outline, Symbol

if TYPE_CHECKING:
    from tree_sitter import Node

Match = tuple[int, Mapping[str, Sequence["Node"]]]

MOST_ERRORS = 1_000
"""Counting stops here; more says no more."""

COMPILED_CHARS = 1024 * 1024
"""Larger texts are not compiled: it takes seconds."""

_TELLING = {"type": 0, "constant": 1, "class": 2, "function": 3}
"""The general words, the vaguest first; of several matches for one name the most telling one says its kind."""

_TAIL = re.compile(rb"[ \t]*([,;]?)[ \t]*(?:(?://|#|/\*|--).*)?$")
MOST_SYMBOLS = 20_000
"""An outline holds no more; generated files have hundreds of thousands of keys."""

MOST_IMPORTS = 2_000
"""Nor does it name more, nor more names of each."""

DEEPEST = 24
"""Definitions nested further are left out, with what is in them."""

NAME_CHARS = 120

SOURCE_CHARS = 2_000
"""Of an import, which in Rust may be a tree of names."""

_HOLDERS = frozenset({"class", "interface", "struct", "enum", "impl", "trait", "union"})
_HEADING = re.compile(r"(#{1,6})[ \t]+(\S.*)")
_SECTION = re.compile(r"\[{1,2}([^\[\]]+)\]{1,2}[ \t]*$")
_DEFINES = re.compile(
    r"(?:\w+[ \t]+){0,4}?\b(class|struct|interface|enum|trait|impl|protocol|module|namespace|object|package|"
    r"def|func|function|fun|fn|sub|proc|procedure|macro)[ \t]+([A-Za-z_$][\w$.:]*)"
)
_KINDS = dict.fromkeys(("def", "func", "function", "fun", "fn", "sub", "proc", "procedure", "macro"), "function")
_CLOSERS = re.compile(r"(?:[\]})]+|end|fi|done|esac)[;,.]?[ \t]*$")
_COMPARED_CHARS = 400


class Definition(NamedTuple):
    """One definition: characters or bytes, half-open, and 1-based lines, both ends included."""

    start: int
    end: int
    name: str
    kind: str
    line: int
    end_line: int
    alone: bool = True
    tail: str = ""


def nested(definitions: Iterable[Definition], line_count: int) -> tuple[Symbol, ...]:
    """The definitions as a tree, each inside the smallest that holds it, in the text's order.

    Of two that cover the same the first given stays. One that overlaps another without being inside
    it, which only a broken text has, ends where that one ends. Lines are kept within the holder's and
    within 1 … `line_count`. Cost: that of sorting.
    """
    top: list[Symbol] = []
    opened: list[tuple[Definition, list[Symbol]]] = []  # with their children
    kept = 0
    last: tuple[int, int] | None = None

    def close() -> None:
        d, children = opened.pop()
        kind = "method" if d.kind == "function" and opened and opened[-1][0].kind in _HOLDERS else d.kind
        symbol = Symbol(d.name, kind, d.line, d.end_line, tuple(children), alone=d.alone, tail=d.tail)
        (opened[-1][1] if opened else top).append(symbol)

    for given in sorted(dict.fromkeys(definitions), key=lambda d: (d.start, -d.end)):
        if (given.start, given.end) == last or kept == MOST_SYMBOLS:
            continue
        while opened and given.start >= opened[-1][0].end:
            close()
        line, end_line, end = max(given.line, 1), min(given.end_line, line_count), given.end
        if opened:
            around = opened[-1][0]
            line, end_line, end = max(line, around.line), min(end_line, around.end_line), min(end, around.end)
        siblings = opened[-1][1] if opened else top
        if siblings:
            line = max(line, siblings[-1].line)
        if len(opened) == DEEPEST or end_line < line:
            continue
        last, kept = (given.start, given.end), kept + 1
        opened.append((given._replace(end=end, line=line, end_line=end_line), []))
    while opened:
        close()
    return tuple(top)


def parsed_outline(language: str, root: Node, matches: Iterable[Match], data: bytes) -> Outline:
    """What a parsed text defines. Errors in the tree are counted, and what is between them is outlined.

    `data` is the UTF-8 that was parsed, its lines ended by newlines. Several matches for one name give
    one symbol: the widest, so that decorators and `export` belong to it.
    """
    text = _Lines(data)
    widest: dict[int, Definition] = {}
    taken_in: dict[tuple[int, str], list[str]] = {}
    for _, captures in matches:
        if "import" in captures:
            text.note_import(taken_in, captures)
        for above in captures.get("above", ()):
            text.note_above(above)
        for capture, nodes in captures.items():
            if capture.startswith("definition.") and captures.get("name"):
                name = captures["name"][0]
                found = _definition(text, nodes[0], name, capture.removeprefix("definition."), captures)
                known = widest.get(name.start_byte)
                widest[name.start_byte] = found if known is None else _wider(known, found)
    symbols = nested((text.with_above(found) for found in widest.values()), text.count)
    by_line = sorted(taken_in.items(), key=lambda item: item[0][0])
    imports = tuple(Import(source, line, tuple(names)) for (line, source), names in by_line)
    return Outline(language, symbols, errors=_errors(root), imports=imports)


def compiles(data: bytes) -> bool | None:
    """Whether the interpreter takes a Python text, whose grammar accepts empty blocks and odd indentation.

    None where the text is too large or too deeply nested to say. It is not run. Not for threads: warnings are off.
    """
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    if len(text) > COMPILED_CHARS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    except (RecursionError, MemoryError):
        return None
    return True


def _definition(text: _Lines, node: Node, name: Node, kind: str, captures: Mapping[str, Sequence[Node]]) -> Definition:
    called = ".".join(map(text.of, (*captures.get("scope", ())[:1], name)))
    start, end = text.trimmed(node.start_byte, node.end_byte)
    line, end_line = text.line_of(start), text.line_of(max(end - 1, start))
    head, tail = text.before(start, line), _TAIL.match(text.after(end, end_line))
    alone = not head.strip() and tail is not None
    return Definition(start, end, called or "?", kind, line, end_line, alone, tail[1].decode() if tail else "")


def _wider(one: Definition, other: Definition) -> Definition:
    """The wider of two, with the more telling kind and the longer name."""
    wide, narrow = (one, other) if one.end - one.start >= other.end - other.start else (other, one)
    clearer = wide if _TELLING.get(wide.kind, 4) >= _TELLING.get(narrow.kind, 4) else narrow
    return wide._replace(kind=clearer.kind, name=max(one.name, other.name, key=len))


class _Lines:
    """The text's lines by byte, and which of them hold nothing but a comment or an attribute."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._starts = [0, *(found.end() for found in re.finditer(rb"\n", data))]
        self.count = len(self._starts) - (not data or data.endswith(b"\n"))
        self._above: dict[int, tuple[int, int]] = {}

    def of(self, node: Node, most: int = NAME_CHARS) -> str:
        """The node's text as a name."""
        data = self._data[node.start_byte : min(node.end_byte, node.start_byte + 4 * most)]
        return " ".join(data.decode("utf-8", "replace").split())[:most]

    def line_of(self, at: int) -> int:
        """The 1-based line that a byte lies in."""
        return bisect_right(self._starts, at)

    def trimmed(self, start: int, end: int) -> tuple[int, int]:
        """A range without the blanks and line ends at its two ends."""
        piece = self._data[start:end]
        return start + len(piece) - len(piece.lstrip()), end - (len(piece) - len(piece.rstrip()))

    def before(self, start: int, line: int) -> bytes:
        """What is left of a byte on its line, but a byte order mark."""
        return self._data[self._starts[line - 1] : start].removeprefix(b"\xef\xbb\xbf")

    def after(self, end: int, line: int) -> bytes:
        """What is right of a byte on its line."""
        stop = self._starts[line] - 1 if line < len(self._starts) else len(self._data)
        return self._data[end:stop]

    def note_import(self, known: dict[tuple[int, str], list[str]], captures: Mapping[str, Sequence[Node]]) -> None:
        """By line and source the names that are taken of it."""
        source = "".join(self.of(node, SOURCE_CHARS) for node in captures.get("source", ())).removeprefix("import ")
        source = source or "".join(f"self::{self.of(node)}" for node in captures.get("module", ()))
        key = self.line_of(captures["import"][0].start_byte), source
        if source and (key in known or len(known) < MOST_IMPORTS):
            names = known.setdefault(key, [])
            imported = (self.of(node) for node in captures.get("imported", ()))
            names += ["*" if name.startswith("*") else name for name in imported if len(names) < MOST_IMPORTS]

    def note_above(self, node: Node) -> None:
        start, end = self.trimmed(node.start_byte, node.end_byte)
        line, end_line = self.line_of(start), self.line_of(max(end - 1, start))
        if self._data[start : start + 2] == b"#!" or self.before(start, line).strip() or end <= start:
            return
        if not self.after(end, end_line).strip():
            self._above[end_line] = (line, start)

    def with_above(self, found: Definition) -> Definition:
        """The definition, from the first of the comments and attributes that are right above it."""
        line, start = found.line, found.start
        if not found.alone:
            return found
        while (above := self._above.get(line - 1)) is not None:
            line, start = above
        return found._replace(line=line, start=start)


def _errors(root: Node) -> int:
    """The ERROR and MISSING nodes. Only branches with an error in them are looked at."""
    count, pending = 0, [root]
    while pending and count < MOST_ERRORS:
        node = pending.pop()
        count += node.is_error or node.is_missing
        if node.has_error:
            pending += [child for child in node.children if child.has_error]
    return count


def plain_outline(lines: Sequence[str]) -> Outline:
    """What a text shows of its build without being parsed.

    Lines that define something by their looks (`def f`, `class A`) with what is indented under them; else
    headings with what is under each; else every line with what is indented under it.
    Headings are `# …` and `[sections]`. A line that closes a block (`}`, `end`) at the
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


def _under_headings(headings: Sequence[tuple[int, int, str]], lines: Sequence[str]) -> Iterator[Definition]:
    for number, (at, level, title) in enumerate(headings):
        later = (headings[n] for n in range(number + 1, len(headings)))
        following = next((other for other, its_level, _ in later if its_level <= level), len(lines))
        yield _by_lines(at, title, "heading", _last_written(lines, following))


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
        return _by_lines(at, text, "block", last)
    return _by_lines(at, found[2].rstrip(".:"), _KINDS.get(found[1], found[1]), last)


def _by_lines(at: int, name: str, kind: str, last: int) -> Definition:
    """0-based lines, both included."""
    return Definition(at, last + 1, name[:NAME_CHARS], kind, at + 1, last + 1)
