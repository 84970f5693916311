"""Where a name is used in a parsed text, and as what: by its syntax tree, and by the scopes that its queries name.

A query's `@scope` is what local names live in, `@local` a name that it binds, `@outer` one that the scope around it
binds, `@global` one that it does not bind though it assigns it, and `@member` a name that belongs to what stands
before it. A `@derived` scope may have a name from elsewhere that it does not bind; a `@function` is bound by an
`@outer` alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal

import msgspec

if TYPE_CHECKING:
    from tree_sitter import Node

Match = tuple[int, Mapping[str, Sequence["Node"]]]

Range = tuple[int, int]
Role = Literal["definition", "import", "use", "member", "word", "elsewhere", "comment", "string"]

MEANT: Final[frozenset[Role]] = frozenset({"definition", "import", "use", "member", "word"})
"""What a name may stand for that is looked for; `word`: nothing more is known of it, without a grammar.

The others are `elsewhere`, another thing of the same name, and the words of comments and strings."""

LINKED: Final = frozenset({"python", "javascript", "typescript", "tsx"})
"""Languages in which a file has no name of another one but by an import."""

UNHELD: Final = frozenset({"cpp"})
"""Languages of which the scopes do not say to which class a name without an object belongs."""

MOST_REFERENCES = 20_000

DERIVED: Final = (-1, -1)
"""Instead of a scope: one that may have the name from elsewhere."""

_INSIDE = (
    "interpolation",
    "template_substitution",
    "string_interpolation",
    "formatted_expression",
    "embedded_expression",
)
"""Code within a string."""


class Reference(msgspec.Struct, frozen=True, array_like=True):
    """One occurrence: its line, 1-based, where it begins in bytes of UTF-8 from there, and its role."""

    line: int
    start: int
    role: Role


class Sought(msgspec.Struct, frozen=True):
    """What is looked for in one text. `line`: of its definition in this text; `foreign`: it is defined in another."""

    name: str
    line: int | None = None
    foreign: bool = False
    imported: bool = True  # an import of this text may bring it
    held: bool = False  # it belongs to a class, or the like

    @property
    def word(self) -> re.Pattern[bytes]:
        return re.compile(rb"(?<![\w\x80-\xff])" + re.escape(self.name.encode()) + rb"(?![\w\x80-\xff])")


class References(msgspec.Struct, frozen=True):
    """The occurrences in one text, and whether scopes were looked at."""

    found: tuple[Reference, ...]
    scoped: bool


def references(
    language: str,
    root: Node,
    outlined: Iterable[Match],
    scoped: Iterable[Match] | None,
    data: bytes,
    sought: Sought,
) -> list[Reference]:
    """Every occurrence of a name as a word, in the text's order. `scoped`: None where no scopes are known."""
    own = sought.name.encode()
    names, imports = dict[int, "Node"](), list[Range]()
    for _, captures in outlined:
        if any(capture.startswith("definition.") for capture in captures):
            names.update((node.start_byte, node) for node in captures.get("name", ()) if node.text == own)
        imports += [(node.start_byte, node.end_byte) for node in captures.get("import", ())]
    scopes = _Scopes(scoped or (), own)
    homes = {DERIVED, None if sought.line is None else scopes.of_definition(data, sought.line, names)}
    if sought.line is None and not sought.foreign:  # any that is defined here may be meant
        homes.update(scopes.of(node) for node in names.values())
    unlinked = language in LINKED and sought.foreign and not sought.imported and scoped is not None
    found: list[Reference] = []
    line, counted = 1, 0
    for match in sought.word.finditer(data):
        if len(found) == MOST_REFERENCES:
            break
        at = match.start()
        line, counted = line + data.count(b"\n", counted, at), at
        start = at - (data.rfind(b"\n", 0, at) + 1)
        node = root.descendant_for_byte_range(at, match.end())
        role: Role = _kind(node) if node is not None else "word"
        if role == "use":
            if any(first <= at < end for first, end in imports):
                role = "import"
            elif at in scopes.members:
                role = "member"
            elif at in names:
                role = "definition"
            if node is not None and role in ("use", "definition") and (unlinked or scopes.of(node) not in homes):
                role = "elsewhere"
        found.append(Reference(line, start, role))
    return found


def _kind(node: Node) -> Role:
    """`use` of what is code, else what it is in."""
    looked: Node | None = node
    while looked is not None:
        if looked.type in _INSIDE:
            return "use"
        if "comment" in looked.type:
            return "comment"
        if "string" in looked.type or looked.type in ("char_literal", "heredoc_body", "raw_text"):
            return "string"
        looked = looked.parent
    return "use"


class _Scopes:
    """Which scopes bind one name; ranges in bytes."""

    def __init__(self, matches: Iterable[Match], name: bytes) -> None:
        self._scopes, self._derived, self._functions = set[Range](), set[Range](), set[int]()
        self.members, self.outer = set[int](), dict[int, "Node"]()
        bound, loose = list["Node"](), list["Node"]()
        for _, captures in matches:
            self._scopes.update((node.start_byte, node.end_byte) for node in captures.get("scope", ()))
            self._derived.update((node.start_byte, node.end_byte) for node in captures.get("derived", ()))
            bound += (node for node in captures.get("local", ()) if node.text == name)
            loose += (node for node in captures.get("global", ()) if node.text == name)
            self.outer.update((node.start_byte, node) for node in captures.get("outer", ()) if node.text == name)
            self.members.update(node.start_byte for node in captures.get("member", ()) if node.text == name)
            self._functions.update(node.start_byte for node in captures.get("function", ()) if node.text == name)
        self._by_outer = {next(islice(self._around(node), 1, None), None) for node in self.outer.values()} - {None}
        around = {next(self._around(node), None) for node in bound} | self._by_outer
        self._binding = around - {next(self._around(node), None) for node in loose} - {None}

    def _around(self, node: Node) -> Iterator[Range]:
        """The scopes around a node, the innermost first."""
        looked: Node | None = node
        while looked is not None:
            if (one := (looked.start_byte, looked.end_byte)) in self._scopes:
                yield one
            looked = looked.parent

    def of(self, node: Node) -> Range | None:
        """The innermost scope that binds the name at a place, or DERIVED; None: the text, or something outside.

        The name of a definition is in the scope around it.
        """
        around = islice(self._around(node), node.start_byte in self.outer, None)
        binding = self._by_outer if node.start_byte in self._functions else self._binding
        known = binding | self._derived
        found = next((one for one in around if one in known), None)
        return found if found in binding or found is None else DERIVED

    def of_definition(self, data: bytes, line: int, names: Mapping[int, Node]) -> Range | None:
        """The scope that binds the definition which begins at a line or, below decorators, soon after."""
        first = 0
        for _ in range(line - 1):
            first = data.find(b"\n", first) + 1
        known = {**names, **self.outer}
        own = min((at for at in known if at >= first), default=None)
        return self.of(known[own]) if own is not None else None
