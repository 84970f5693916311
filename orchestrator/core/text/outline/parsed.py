"""The outline of a text from its syntax tree.

The queries name what they find: `@definition.KIND` the whole definition, `@name` its name, `@scope` what
the name belongs to where the text says so elsewhere (`func (s *Server) Start`), and `@above` comments
and attributes, which belong to the definition right below them.
"""

from __future__ import annotations

import re
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from orchestrator.core.text.outline.nesting import NAME_CHARS, Definition, nested
from orchestrator.core.text.symbols import Outline

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


def parsed_outline(language: str, root: Node, matches: Iterable[Match], data: bytes) -> Outline:
    """What a parsed text defines. Errors in the tree are counted, and what is between them is outlined.

    `data` is the UTF-8 that was parsed, its lines ended by newlines. Several matches for one name give
    one symbol: the widest, so that decorators and `export` belong to it.
    """
    text = _Lines(data)
    widest: dict[int, Definition] = {}
    for _, captures in matches:
        for above in captures.get("above", ()):
            text.note_above(above)
        for capture, nodes in captures.items():
            if capture.startswith("definition.") and captures.get("name"):
                name = captures["name"][0]
                found = _definition(text, nodes[0], name, capture.removeprefix("definition."), captures)
                known = widest.get(name.start_byte)
                widest[name.start_byte] = found if known is None else _wider(known, found)
    symbols = nested((text.with_above(found) for found in widest.values()), text.count)
    taken = compiles(data) if language == "python" else None
    return Outline(language, symbols, errors=_errors(root), compiles=taken)


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
    called = " ".join(text.of(name).split())[:NAME_CHARS]
    if captures.get("scope"):
        scope = " ".join(text.of(captures["scope"][0]).split())[:NAME_CHARS]
        called = f"{scope}.{called}"
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

    def of(self, node: Node) -> str:
        """Some of the node's text, enough for a name."""
        return self._data[node.start_byte : min(node.end_byte, node.start_byte + 4 * NAME_CHARS)].decode(
            "utf-8", "replace"
        )

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
