"""Where a TOML text says something, for messages that name the line: tomllib keeps no positions."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

import tree_sitter
import tree_sitter_toml

Place = tuple[str | int, ...]
"""`("rule", 2, "paths", 1)`: counted from 1, as a person counts."""


class Positions:
    """The lines (from 1) of a text's tables, keys and array items."""

    def __init__(self, text: str) -> None:
        parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_toml.language()))
        tree = parser.parse(text.encode("utf-8", "surrogatepass"))
        self._lines = dict(_document(tree.root_node))

    def line(self, *place: str | int) -> int:
        """The line of a place, or of the nearest place that holds it; 1 for the text as a whole."""
        return next((line for end in range(len(place), 0, -1) if (line := self._lines.get(place[:end]))), 1)


def _document(root: tree_sitter.Node) -> Iterator[tuple[Place, int]]:
    counts: dict[Place, int] = {}
    for node in root.named_children:
        line = node.start_point.row + 1
        if node.type == "pair":
            yield from _pair((), node)
        elif node.type in ("table", "table_array_element"):
            header, *pairs = (child for child in node.named_children if child.type != "comment")
            place = _names(header)
            if node.type == "table_array_element":
                counts[place] = counts.get(place, 0) + 1
                if counts[place] == 1:
                    yield place, line
                place = (*place, counts[place])
            yield place, line
            for pair in pairs:
                yield from _pair(place, pair)


def _pair(table: Place, node: tree_sitter.Node) -> Iterator[tuple[Place, int]]:
    if node.type != "pair":
        return
    key, *_, value = node.named_children
    place = (*table, *_names(key))
    yield place, node.start_point.row + 1
    yield from _value(place, value)


def _value(place: Place, node: tree_sitter.Node) -> Iterator[tuple[Place, int]]:
    if node.type == "inline_table":
        for pair in node.named_children:
            yield from _pair(place, pair)
    elif node.type == "array":
        items = (child for child in node.named_children if child.type != "comment")
        for number, item in enumerate(items, 1):
            yield (*place, number), item.start_point.row + 1
            yield from _value((*place, number), item)


def _names(key: tree_sitter.Node) -> Place:
    """The parts of a key, without quotes and escapes."""
    if key.type == "dotted_key":
        return tuple(name for part in key.named_children for name in _names(part))
    text = (key.text or b"").decode("utf-8", "replace")
    return tuple(tomllib.loads(f"{text} = 1")) if key.type == "quoted_key" else (text,)
